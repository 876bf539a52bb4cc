"""Models, data, symmetries and targets, made of what they cannot be made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist

import onebasin as ob

from .cases import Call, table

ANYTHING: Any = ob
"""The package without its types, which users may not look at."""

LABELS = (ob.Exchangeable({"mu": 0, "sigma": 0}),)
X, Y = np.zeros((3, 1)), np.zeros((3, 1))


def three() -> None:
    """State a model of three exchangeable numbers."""
    numpyro.sample("mu", dist.Normal(0, 1).expand([3]).to_event(1))


def target(model: Any = three, **more: Any) -> Any:
    return ANYTHING.Target("t", numpyro_model=model, **more)


def network(**more: Any) -> Any:
    return ANYTHING.BayesianNetwork(ob.Network(1, (2,)), **more)


MODELS = [
    Call("network-no-inputs", lambda: ANYTHING.Network(0, (2,)), ("`in_dim`",)),
    Call("network-width-zero", lambda: ANYTHING.Network(1, (0,)), ("`hidden`",)),
    Call("network-width-negative", lambda: ANYTHING.Network(1, (-3,)), ("`hidden`",)),
    Call("network-width-half", lambda: ANYTHING.Network(1, (2.5,)), ("`hidden`",)),
    Call("network-width-text", lambda: ANYTHING.Network(1, ("a",)), ("`hidden`",)),
    Call("network-widths-a-number", lambda: ANYTHING.Network(1, 3), ("`hidden`",)),
    Call(
        "network-activation",
        lambda: ANYTHING.Network(1, (2,), activation="x"),
        ("`activation`", "tanh"),
    ),
    Call("network-skip", lambda: ANYTHING.Network(1, (2,), skip="x"), ("`skip`",)),
    Call("bayesian-of-a-number", lambda: ANYTHING.BayesianNetwork(3), ("`network`",)),
    Call("bayesian-likelihood", lambda: network(likelihood="normal"), ("`likelihood`",)),
    Call("bayesian-prior", lambda: network(prior=1.0), ("`prior`",)),
    Call(
        "bayesian-parametrisation",
        lambda: network(parametrisation="givens"),
        ("`parametrisation`",),
    ),
    Call("classifier-of-one-class", lambda: network(likelihood=ob.Categorical()), ("`out_dim`",)),
    *[
        Call(f"prior-{value!r}", lambda v=value: ANYTHING.NormalPrior(v), ("`weight_scale`",))
        for value in (0, -1, float("nan"), float("inf"), "1")
    ],
    *[
        Call(f"noise-{value!r}", lambda v=value: ANYTHING.Gaussian(v), ("`noise_sd`",))
        for value in (0, -1, float("nan"), float("inf"), "1")
    ],
    Call("parametrisation-unknown", lambda: ANYTHING.Parametrisation("x"), ("givens",)),
    *[
        Call(f"data-{word}", lambda a=x, b=y: network().condition(a, b), (name,))
        for word, name, x, y in (
            ("x-flat", "`x`", np.zeros(3), Y),
            ("x-wide", "`x`", np.zeros((3, 2)), Y),
            ("x-nan", "`x`", np.full((3, 1), np.nan), Y),
            ("x-text", "`x`", [["a"], ["b"], ["c"]], Y),
            ("x-ragged", "`x`", [[1], [1, 2]], Y),
            ("x-none", "`x`", None, Y),
            ("x-empty", "`x`", np.zeros((0, 1)), np.zeros((0, 1))),
            ("x-complex", "`x`", 1j * np.zeros((3, 1)), Y),
            ("y-short", "`y`", X, np.zeros((2, 1))),
            ("y-infinite", "`y`", X, np.full((3, 1), np.inf)),
            ("y-text", "`y`", X, ["a", "b", "c"]),
        )
    ],
    Call(
        "labels-out-of-range",
        lambda: ANYTHING.BayesianNetwork(
            ob.Network(1, (2,), out_dim=2), likelihood=ob.Categorical()
        ).condition(X, [0, 1, 2]),
        ("`y`", "0 to 1"),
    ),
    Call("target-without-a-name", lambda: ANYTHING.Target(3, numpyro_model=three), ("`name`",)),
    Call("target-model-a-number", lambda: target(3), ("`numpyro_model`",)),
    Call(
        "target-model-with-arguments", lambda: target(lambda y: y), ("`numpyro_model`", "arguments")
    ),
    Call("target-symmetry-a-number", lambda: target(symmetry=3), ("`symmetry`",)),
    Call("target-symmetry-a-block", lambda: target(symmetry=LABELS[0]), ("`symmetry`", "tuple")),
    Call("target-symmetry-of-words", lambda: target(symmetry=("mu",)), ("`symmetry`",)),
    Call("target-dims-a-list", lambda: target(dims=["a"]), ("`dims`",)),
    Call("block-empty", lambda: ANYTHING.Exchangeable({}), ("`axes`",)),
    Call("block-a-number", lambda: ANYTHING.Exchangeable(3), ("`axes`",)),
    Call("block-a-list", lambda: ANYTHING.Exchangeable(["mu"]), ("`axes`",)),
    Call("block-axis-a-word", lambda: ANYTHING.Exchangeable({"mu": "x"}), ("`axes`",)),
    Call("block-axis-a-half", lambda: ANYTHING.Exchangeable({"mu": 0.5}), ("`axes`",)),
    Call(
        "block-flips-a-stranger",
        lambda: ANYTHING.Exchangeable({"mu": 0}, flips=("nu",)),
        ("`flips`", "nu"),
    ),
    Call(
        "block-complements-its-own",
        lambda: ANYTHING.Exchangeable({"mu": 0}, complements=("mu",)),
        ("mu",),
    ),
    Call("complement-a-mapping", lambda: ANYTHING.Complement({}), ("`names`",)),
    Call("complement-a-number", lambda: ANYTHING.Complement(3), ("`names`",)),
    Call("rescalable-a-number", lambda: ANYTHING.Rescalable(3), ("`incoming`",)),
    *[
        Call(f"data-set-{value!r}", lambda v=value: ANYTHING.load_data(v), ("`name`", "boston"))
        for value in ("bosten", "", 3, None)
    ],
    *[
        Call(f"program-{value!r}", lambda v=value: ANYTHING.stan_program(v), ("`path`",))
        for value in ("no.stan", "", 3, None, "a\0b.stan")
    ],
]


@table(MODELS)
def test_what_cannot_be_taken_is_one_error(refuse_call, case):
    refuse_call(case)
