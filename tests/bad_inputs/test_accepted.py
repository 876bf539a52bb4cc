"""What looks odd and is in order: a refusal here would be a false alarm."""

from __future__ import annotations

import numpy as np
import pytest

from . import files as f
from .cases import DONE, Case
from .test_kinds import GAUSS, SAMPLE, WHOLE
from .test_posterior_files import BROKEN_DRAWS, FINDINGS, LEFT_ALONE, STRUCTURE
from .test_programs import MADE

ALIGN = "align run.nc --out out.nc --exchangeable mu,sigma"
SHAPE = (f.CHAINS, f.DRAWS)


def _taken(id: str, words: str, files: dict, *says: str, makes: tuple[str, ...] = ()) -> Case:
    return Case(id, words, says, files, code=DONE, makes=makes)


def _diagnosed(id: str, write: object, *says: str, name: str = "run.nc", options: str = "") -> Case:
    return _taken(id, f"diagnose '{name}' {options}", {name: write}, *says)


def _plus(name: str, values: np.ndarray) -> object:
    return f.with_posterior(lambda p: p.assign({name: (("chain", "draw"), values)}))


def test_odd_but_in_order(refuse):
    refuse(
        [
            _diagnosed(
                "draws-before-chains",
                f.with_posterior(lambda p: p.transpose("draw", "chain", ...)),
                "mu[0]",
            ),
            _diagnosed(
                "chains-last",
                f.with_posterior(lambda p: p.transpose(..., "draw", "chain")),
                "mu[0]",
            ),
            _diagnosed(
                "single-precision", f.with_posterior(lambda p: p.astype("float32")), "mu[0]"
            ),
            _diagnosed(
                "whole-numbers",
                _plus("count", np.arange(f.CHAINS * f.DRAWS).reshape(SHAPE)),
                "count",
            ),
            _diagnosed(
                "truth-values",
                _plus("flag", np.arange(f.CHAINS * f.DRAWS).reshape(SHAPE) % 2 == 0),
                "flag",
            ),
            _diagnosed("no-statistics", f.with_posterior(lambda p: p)),
            _diagnosed("one-chain", f.with_posterior(lambda p: p.isel(chain=slice(0, 1)))),
            _diagnosed("four-draws", f.with_posterior(lambda p: p.isel(draw=slice(0, 4)))),
            _diagnosed("variable-that-never-varies", _plus("fixed", np.ones(SHAPE))),
            _diagnosed("no-attributes", f.with_change(lambda _, attributes: attributes.clear())),
            _diagnosed("unknown-attribute", f.with_attribute("mood", "good")),
            _diagnosed("blank-in-the-name", f.good, name="my run.nc"),
            _diagnosed("letters-of-all-languages", f.good, name="взвод 号.nc"),
            _diagnosed("no-ending", f.good, name="run"),
            _diagnosed("dash-in-the-name", f.good, name="a--force.nc"),
            _diagnosed("variable-asked-for-twice", f.good, "mu[0]", options="--var mu --var mu"),
            _diagnosed("text-left-out", BROKEN_DRAWS["text"], "mu[0]", options="--var mu"),
            _diagnosed("nan-left-out", BROKEN_DRAWS["all-nan"], "mu[0]", options="--var mu"),
            *(
                _diagnosed(f"{name}-is-left-out", BROKEN_DRAWS[name], "finite")
                for name in STRUCTURE
            ),
            *(
                _diagnosed(f"{name}-is-found", BROKEN_DRAWS[name], "Not usable")
                for name in FINDINGS
            ),
            *(
                _taken(
                    f"compare-leaves-out-{name}",
                    "compare run.nc b.nc --permutations 9",
                    {"run.nc": BROKEN_DRAWS[name], "b.nc": BROKEN_DRAWS[name]},
                )
                for name in STRUCTURE
            ),
            _taken(
                "report-leaves-out-nan",
                "report run.nc --out out.html",
                {"run.nc": BROKEN_DRAWS["nan"]},
                makes=("out.html",),
            ),
            _diagnosed(
                "variable-named-like-an-argument",
                _plus("posterior", np.random.default_rng(1).normal(size=SHAPE)),
                "posterior",
            ),
            *(
                _taken(
                    f"align-leaves-{name}-alone",
                    ALIGN,
                    {"run.nc": BROKEN_DRAWS[name]},
                    makes=("out.nc",),
                )
                for name in LEFT_ALONE
            ),
            _taken(
                "align-replaces-by-force", f"{ALIGN} --force", {"run.nc": f.good}, makes=("out.nc",)
            ),
            _taken(
                "align-into-a-new-folder",
                ALIGN.replace("out.nc", "new/out.nc"),
                {"run.nc": f.good},
                makes=("new",),
            ),
            _taken(
                "compare-by-the-second",
                "compare run.nc b.nc --truth b.nc --permutations 9",
                {"run.nc": f.good, "b.nc": f.other},
            ),
            _taken(
                "compare-one-variable",
                "compare run.nc b.nc --var mu --permutations 9",
                {"run.nc": f.good, "b.nc": f.other},
            ),
            _taken(
                "report-without-statistics-with-markup-in-its-title",
                "report run.nc --out page.html --title '<b>&'",
                {"run.nc": f.with_posterior(lambda p: p)},
                makes=("page.html",),
            ),
            _taken("studies-listed-beside-a-name", "study boston --list", {}, "relu-teacher"),
            _taken("studies-as-json", "study --list --json", {}, "relu-teacher"),
        ]
    )


def _sampled(
    id: str, content: str | bytes, words: str = SAMPLE, program: str = "gauss.stan"
) -> Case:
    return _taken(id, words, {program: GAUSS, "data.json": content}, "wrote run.nc", makes=MADE)


@pytest.mark.stan
def test_data_that_a_program_takes(refuse):
    refuse(
        [
            _sampled("data-with-a-mark-of-byte-order", b"\xef\xbb\xbf" + f.data(**WHOLE).encode()),
            _sampled(
                "data-with-more-than-is-declared", f.data(**WHOLE, note="of 2019", other=[1, None])
            ),
            _sampled("data-whole-numbers-for-reals", f.data(**WHOLE | {"mu": [1, 2]})),
            _sampled(
                "program-below-a-blank",
                f.data(**WHOLE),
                SAMPLE.replace("gauss.stan", "'my models/gauss.stan'"),
                "my models/gauss.stan",
            ),
        ]
    )
