"""Methods and their settings, called with what they cannot take."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import onebasin as ob

from .cases import Call, table

ANYTHING: Any = ob
"""The package without its types, which users may not look at."""

SHORT = ob.NutsSettings(chains=1, warmup=5, draws=5)
X, Y = np.zeros((3, 1)), np.zeros((3, 1))


def three() -> None:
    """State a model of three exchangeable numbers."""
    numpyro.sample("mu", dist.Normal(0, 1).expand([3]).to_event(1))


def one(name: Any = "x", scale: float = 1.0) -> None:
    """State a model of one number."""
    numpyro.sample(name, dist.Normal(0, scale))


def discrete() -> None:
    """State a model with a count."""
    numpyro.sample("k", dist.Poisson(3))


def nothing() -> None:
    """State no variable at all."""


def twice() -> None:
    """State two variables of one name."""
    one()
    one()


def pair() -> None:
    """State a tuple of values."""
    one()
    numpyro.deterministic("pair", (1.0, 2.0))


def nowhere() -> None:
    """State a density that is zero everywhere."""
    one()
    numpyro.factor("never", -jnp.inf)


def target(model: Any = three, **more: Any) -> Any:
    return ANYTHING.Target("t", numpyro_model=model, **more)


def network(**more: Any) -> Any:
    return ANYTHING.BayesianNetwork(ob.Network(1, (2,)), **more)


def nuts(model: Any, **more: Any) -> Any:
    return ANYTHING.nuts(target(model), settings=SHORT, **more)


def sampled(name: str, *words: str, **arguments: Any) -> Call:
    """A call of `nuts` on the three numbers."""
    return Call(name, lambda: ANYTHING.nuts(target(), **arguments), words)


METHODS = [
    *[
        Call(f"{name}-of-{kind}", lambda n=name, v=value: getattr(ANYTHING, n)(v), ("`target`",))
        for name in (
            *("nuts", "hmc", "advi", "symmetrised_vi", "ensemble", "check_symmetry"),
            *("optimize", "laplace", "pathfinder"),
        )
        for kind, value in (("a-number", 3), ("nothing", None), ("a-model", three))
    ],
    *[
        Call(
            f"{name}-with-settings-of-{wrong.__name__}",
            lambda n=name, w=wrong: getattr(ANYTHING, n)(target(), settings=w()),
            ("`settings`", wrong.__name__, name),
        )
        for name, wrong in (
            ("nuts", ob.HmcSettings),
            ("nuts", dict),
            ("hmc", ob.NutsSettings),
            ("advi", ob.NutsSettings),
            ("optimize", ob.LaplaceSettings),
            ("laplace", ob.OptimizeSettings),
            ("pathfinder", ob.AdviSettings),
            ("symmetrised_vi", ob.AdviSettings),
        )
    ],
    Call(
        "ensemble-with-other-settings",
        lambda: ANYTHING.ensemble(network().condition(X, Y), settings=SHORT),
    ),
    sampled("engine-unknown", "numpyro, stan", engine="jags"),
    sampled("engine-a-number", "`engine`", engine=3),
    sampled("engine-without-a-program", "no Stan program", engine="stan"),
    sampled("seed-negative", "4294967295", seed=-1),
    sampled("seed-too-large", "4294967295", seed=2**32),
    sampled("seed-a-half", "`seed`", seed=1.5),
    sampled("seed-a-flag", "`seed`", seed=True),
    sampled("seed-text", "`seed`", seed="1"),
    sampled("checkpoint-a-number", "`checkpoint`", checkpoint=3, settings=SHORT),
    sampled("checkpoint-empty", "`checkpoint`", checkpoint="", settings=SHORT),
    sampled("checkpoint-null-byte", "`checkpoint`", checkpoint="a\0b", settings=SHORT),
    Call("model-without-variables", lambda: nuts(nothing), ("nothing to infer",)),
    Call("model-discrete", lambda: nuts(discrete), ("k", "no gradient")),
    Call("model-one-name-twice", lambda: nuts(twice), ("x",)),
    Call("model-of-a-tuple", lambda: nuts(pair), ("pair", "tuple")),
    Call("model-zero-everywhere", lambda: nuts(nowhere), ("starting point",)),
    *[
        Call(f"model-variable-{word}", lambda n=name: nuts(lambda: one(n)), ("variable",))
        for word, name in (
            ("draw", "draw"),
            ("chain", "chain"),
            ("slash", "a/b"),
            ("empty", ""),
            ("dot", "."),
            ("null-byte", "a\0"),
            ("surrogate", "\ud800"),
        )
    ],
    *[
        Call(
            f"dims-{word}",
            lambda d=dims: ANYTHING.nuts(target(dims=d), settings=SHORT),
            ("`dims`",),
        )
        for word, dims in (
            ("too-many", {"mu": ("a", "b")}),
            ("draw", {"mu": ("draw",)}),
            ("of-nobody", {"nu": ("a",)}),
            ("slash", {"mu": ("a/b",)}),
            ("a-variable", {"mu": ("mu",)}),
        )
    ],
    Call("advi-family", lambda: ANYTHING.advi(target(), family="x"), ("meanfield, fullrank",)),
    Call("advi-start-of-nobody", lambda: ANYTHING.advi(target(), start={"nu": 0}), ("nu", "mu")),
    Call("advi-start-shape", lambda: ANYTHING.advi(target(), start={"mu": np.zeros(2)}), ("(3,)",)),
    Call(
        "advi-start-nan", lambda: ANYTHING.advi(target(), start={"mu": np.full(3, np.nan)}), ("mu",)
    ),
    Call(
        "symmetrised-without-symmetry",
        lambda: ANYTHING.symmetrised_vi(target()),
        ("no exchangeable",),
    ),
    Call("ensemble-of-no-network", lambda: ANYTHING.ensemble(target()), ("no network",)),
    Call("train-of-no-network", lambda: ANYTHING.train(target(), {}), ("`target`",)),
    Call(
        "symmetry-check-of-no-points",
        lambda: ANYTHING.check_symmetry(target(), points=0),
        ("`points`",),
    ),
    Call(
        "symmetry-check-of-another-name",
        lambda: ANYTHING.check_symmetry(target(symmetry=(ob.Exchangeable({"nu": 0}),))),
        ("nu", "mu"),
    ),
    Call(
        "symmetry-check-of-another-axis",
        lambda: ANYTHING.check_symmetry(target(symmetry=(ob.Exchangeable({"mu": 4}),))),
        ("axis 4",),
    ),
]

SETTINGS = [
    *[
        Call(
            f"settings-{field}-{value!r}",
            lambda k=field, v=value: ANYTHING.NutsSettings(**{k: v}),
            (f"`{field}`",),
        )
        for field, value in (
            ("chains", 0),
            ("chains", -1),
            ("chains", 2.0),
            ("chains", True),
            ("chains", "4"),
            ("chains", None),
            ("draws", 0),
            ("warmup", -1),
            ("target_acceptance", 0),
            ("target_acceptance", 1),
            ("target_acceptance", float("nan")),
            ("metric", "round"),
            ("init_radius", -1.0),
            ("init_radius", float("inf")),
            ("init", "prior"),
            ("init_starts", 0),
            ("dtype", "float16"),
            ("max_tree_depth", 0),
            ("no_such_field", 1),
        )
    ],
    *[
        Call(
            f"{name}-{field}-{value!r}",
            lambda n=name, k=field, v=value: getattr(ANYTHING, n)(**{k: v}),
            (f"`{field}`",),
        )
        for name, field, value in (
            ("HmcSettings", "trajectory_length", -1.0),
            ("AdviSettings", "learning_rate", 0),
            ("AdviSettings", "learning_rate", float("inf")),
            ("AdviSettings", "iterations", 0),
            ("AdviSettings", "batch_size", -5),
            ("OptimizeSettings", "starts", 0),
            ("OptimizeSettings", "jacobian", 1),
            ("LaplaceSettings", "draws", 0),
            ("PathfinderSettings", "paths", 0),
            ("TrainSettings", "epochs", -1),
            ("EnsembleSettings", "members", 0),
            ("SymmetrisedSettings", "rank", -1),
            ("DistillationSettings", "samples", 0),
        )
    ],
]


@table([*METHODS, *SETTINGS])
def test_what_cannot_be_taken_is_one_error(refuse_call, case):
    refuse_call(case)
