"""What reads and writes posteriors, called with what it cannot take."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import onebasin as ob

from . import files as f
from .cases import Call, table

ANYTHING: Any = ob
"""The package without its types, which users may not look at."""

LABELS = (ob.Exchangeable({"mu": 0, "sigma": 0}),)
X, Y = np.zeros((3, 1)), np.zeros((3, 1))


POSTERIORS = [
    *[
        Call(f"{name}-of-{word}", lambda n=name, v=value: getattr(ANYTHING, n)(v), ("`posterior`",))
        for name in ("diagnose", "align", "fit_gaussian")
        for word, value in (
            ("a-number", 3),
            ("nothing", None),
            ("an-empty-tree", xr.DataTree()),
            ("an-empty-dataset", xr.Dataset()),
            ("draws-without-axes", xr.Dataset({"mu": ("x", np.zeros(8))})),
        )
    ],
    Call(
        "diagnose-a-stranger",
        lambda: ANYTHING.diagnose(f.mixture(), var_names=["nu"]),
        ("nu", "mu"),
    ),
    Call(
        "diagnose-rhat-below-one",
        lambda: ANYTHING.diagnose(f.mixture(), rhat_max=0.5),
        ("`rhat_max`",),
    ),
    Call(
        "diagnose-ess-nan",
        lambda: ANYTHING.diagnose(f.mixture(), ess_threshold=float("nan")),
        ("`ess_threshold`",),
    ),
    Call("align-undeclared", lambda: ANYTHING.align(f.mixture()), ("`symmetry`", "mu,sigma")),
    Call("align-by-a-number", lambda: ANYTHING.align(f.mixture(), 3), ("`symmetry`",)),
    Call(
        "align-by-a-block", lambda: ANYTHING.align(f.mixture(), LABELS[0]), ("`symmetry`", "tuple")
    ),
    Call(
        "align-a-stranger",
        lambda: ANYTHING.align(f.mixture(), (ob.Exchangeable({"nu": 0}),)),
        ("nu", "mu"),
    ),
    Call(
        "align-to-a-word",
        lambda: ANYTHING.align(f.mixture(), LABELS, reference="median"),
        ("mean",),
    ),
    Call(
        "align-to-a-number",
        lambda: ANYTHING.align(f.mixture(), LABELS, reference=3),
        ("`reference`",),
    ),
    Call("align-cost", lambda: ANYTHING.align(f.mixture(), LABELS, cost="x"), ("`cost`",)),
    Call(
        "align-activations-of-no-network",
        lambda: ANYTHING.align(f.mixture(), LABELS, cost="activations"),
        ("network",),
    ),
    Call(
        "align-restarts", lambda: ANYTHING.align(f.mixture(), LABELS, restarts=0), ("`restarts`",)
    ),
    Call(
        "align-sweeps",
        lambda: ANYTHING.align(f.mixture(), LABELS, max_sweeps=-1),
        ("`max_sweeps`",),
    ),
    Call("align-seed", lambda: ANYTHING.align(f.mixture(), LABELS, seed=-1), ("`seed`",)),
    Call("compare-nothing", lambda: ANYTHING.compare({}, truth="a"), ("`posteriors`",)),
    Call("compare-a-list", lambda: ANYTHING.compare([f.mixture()], truth="a"), ("`posteriors`",)),
    Call(
        "compare-one",
        lambda: ANYTHING.compare({"a": f.mixture()}, truth="a"),
        ("`posteriors`", "two"),
    ),
    Call(
        "compare-a-number", lambda: ANYTHING.compare({"a": f.mixture(), "b": 3}, truth="a"), ("b",)
    ),
    Call(
        "compare-other-models",
        lambda: ANYTHING.compare({"a": f.mixture(), "b": f.network()}, truth="a"),
        (),
    ),
    Call(
        "compare-permutations",
        lambda: ANYTHING.compare(
            {"a": f.mixture(), "b": f.mixture(seed=2)}, truth="a", permutations=0
        ),
        ("`permutations`",),
    ),
    Call("report-nothing", lambda: ANYTHING.report({}, "page.html"), ("`posteriors`",)),
    Call("report-a-number", lambda: ANYTHING.report(3, "page.html"), ()),
    Call("report-to-a-number", lambda: ANYTHING.report(f.mixture(), 3), ("`path`",)),
    Call("distil-no-network", lambda: ANYTHING.distil(f.mixture(), X), ("network",)),
    Call(
        "gaussian-covariance",
        lambda: ANYTHING.fit_gaussian(f.mixture(), covariance="round"),
        ("`covariance`",),
    ),
    Call(
        "scores-of-draws-without-axes",
        lambda: ANYTHING.score_predictions(np.zeros(3), Y),
        ("`draws`",),
    ),
    *[
        Call(f"open-{value!r}", lambda v=value: ANYTHING.open_posterior(v), ("`path`",))
        for value in ("no.nc", "", ".", 3, None, "a\0b")
    ],
    Call("save-a-number", lambda: ANYTHING.save(3, "a.nc"), ("`tree`",)),
    Call("save-an-empty-tree", lambda: ANYTHING.save(xr.DataTree(), "a.nc"), ("`tree`",)),
    Call("save-to-a-number", lambda: ANYTHING.save(f.mixture(), 3), ("`path`",)),
    Call("save-to-nothing", lambda: ANYTHING.save(f.mixture(), ""), ("`path`",)),
    Call("save-to-a-folder", lambda: ANYTHING.save(f.mixture(), "."), ("a folder",)),
    Call("planted-components", lambda: ANYTHING.PlantedComponents(components=1), ("`components`",)),
    Call("planted-draws", lambda: ANYTHING.PlantedComponents(draws=0), ("`draws`",)),
    Call("failure-rates-separations", lambda: ANYTHING.failure_rates([-1.0]), ("`separations`",)),
]


@table(POSTERIORS)
def test_what_cannot_be_taken_is_one_error(refuse_call, case):
    refuse_call(case)
