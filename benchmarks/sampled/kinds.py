"""Kinds of posteriors: program, data, correct verdict, and identified quantities."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import onebasin as ob

from . import references, truths
from .data import (
    Rng,
    answers,
    groups,
    line,
    nearly_collinear,
    planes,
    scales,
    slow_walk,
    states,
    three,
    two,
    two_decays,
    two_humps,
    two_named,
)
from .numbers import Draws
from .references import Data, Reference, rerun

FULL = ob.Nuts(chains=4, warmup=500, draws=500)


@dataclass(frozen=True)
class Kind:
    """A kind of posterior, from one program.

    Attributes
    ----------
    name, program
        Name of the kind, and file name of the program without the suffix.
    simulate
        Function that makes data from a random generator.
    truth
        Function of data and draws as sampled that returns the correct verdict.
    reference
        Reference of the identified quantities; None if only the verdict is known.
    identified
        Function of draws in one labelling that returns label-free quantities, under the names of the reference.
    words
        Declaration of the symmetry; empty without one.
    without_labels
        Whether the quantities need no alignment, so they are correct in an ``invariant`` posterior too.
    settings
        Settings of the sampler.
    """

    name: str
    program: str
    simulate: Callable[[Rng], Data]
    truth: truths.Judge
    reference: Reference | None = None
    identified: Callable[[Data, Draws], Draws] = field(default=lambda _, draws: draws)
    words: str = ""
    without_labels: bool = False
    settings: ob.Nuts = FULL

    def data(self, seed: int) -> Data:
        """Return the data of a seed."""
        return self.simulate(np.random.default_rng([seed, zlib.crc32(self.name.encode())]))


Parts = Callable[[Draws], Draws]
"""Function of draws that returns the variables indexed by component, each (chain, draw, component)."""


def named(*names: str) -> Parts:
    """Make a function that selects these variables."""
    return lambda draws: {name: draws[name] for name in names}


def hidden(draws: Draws) -> Draws:
    """Return the variables of a hidden Markov model that are indexed by state."""
    stay = np.diagonal(draws["move"], axis1=-2, axis2=-1)
    return {"level": draws["level"], "spread": draws["spread"], "stay": stay}


def pairs(draws: Draws) -> Draws:
    """Stack components that are scalars into arrays."""
    share = np.stack([draws["share"], 1 - draws["share"]], axis=-1)
    two = {n: np.stack([draws[f"{n}1"], draws[f"{n}2"]], axis=-1) for n in ("mu", "sigma")}
    return two | {"share": share}


def ordered(parts: Draws, first: str, *, by_draw: bool) -> Draws:
    """Order components by one variable, separately in each draw or by its means over all draws."""
    by = parts[first] if by_draw else parts[first].mean(axis=(0, 1), keepdims=True)
    order = np.broadcast_to(by.argsort(axis=-1), parts[first].shape)
    return {name: np.take_along_axis(v, order, axis=-1) for name, v in parts.items()}


def components(
    name: str,
    program: str,
    simulate: Callable[[Rng], Data],
    words: str,
    parts: Parts,
    reference: Reference | None,
    *,
    judge: Callable[..., truths.Judge] = truths.labelled,
) -> Kind:
    """Make a kind whose components are far apart in the first variable of `parts`."""

    def sorted_by(draws: Draws, *, by_draw: bool) -> Draws:
        values = parts(draws)
        return ordered(values, next(iter(values)), by_draw=by_draw)

    def labelling(draws: Draws) -> np.ndarray:
        first = next(iter(parts(draws).values()))
        return first.argsort(axis=-1) @ 10 ** np.arange(first.shape[-1])

    def sort(draws: Draws) -> Draws:
        return sorted_by(draws, by_draw=True)

    return Kind(
        name,
        program,
        simulate,
        judge(words, labelling, sort, ordered=True),
        reference,
        lambda _, draws: sorted_by(draws, by_draw=False),
        words,
    )


def signs(
    name: str,
    program: str,
    simulate: Callable[[Rng], Data],
    words: str,
    turning: str,
    fixed: str,
    marginal: str,
    **more: object,
) -> Kind:
    """Make a kind with a variable whose entries change sign together, far from 0 along its main direction.

    `marginal` is a program of the same posterior without the other variables that change sign. `more` is additional
    data for it.
    """

    def positive(draws: Draws, *, by_draw: bool) -> Draws:
        values = draws[turning]
        # Draws of both signs lie along one clear direction.
        flat = values.reshape(-1, values.shape[-1])
        along = values @ np.linalg.svd(flat, full_matrices=False)[2][0]
        sign = np.sign(along if by_draw else along.mean(axis=(0, 1), keepdims=True))
        turned = values * sign[..., None]
        return {turning: turned * np.sign(turned.mean()), fixed: draws[fixed]}

    def each_positive(draws: Draws) -> Draws:
        return positive(draws, by_draw=True)

    return Kind(
        name,
        program,
        simulate,
        truths.labelled(
            words,
            lambda draws: np.sign(
                draws[turning] @ positive(draws, by_draw=True)[turning].mean((0, 1))
            ),
            each_positive,
        ),
        rerun(marginal, each_positive, **more),
        lambda _, draws: positive(draws, by_draw=False),
        words,
    )


def hierarchy(_: Data, draws: Draws) -> Draws:
    """Return the quantities of a hierarchy that have an exact posterior."""
    log_scale = np.log(np.maximum(draws["tau"], references.LEAST_SCALE))
    return {"mu": draws["mu"], "effect": draws["effect"], "log_scale": log_scale}


NODE = np.linspace(-4.4, 4.4, 41)  # Unlike Gauss-Hermite, fine enough for steep slopes.
NODES = {"M": 41, "node": NODE, "log_weight": -0.5 * NODE**2}
MIXTURE = named("mu", "sigma", "share")
MOVES = "move:0:1,begin,level,spread"
COEFFICIENTS = ("alpha", "beta", "sigma")


def first_is_larger(name: str) -> Callable[[Data, Draws], np.ndarray]:
    """Make a function that returns for each draw whether the first entry is larger than the second."""
    return lambda _, draws: (draws[name][..., 0] > draws[name][..., 1]).astype(float)


KINDS = (
    Kind("regression", "regression", line, truths.plain(COEFFICIENTS), references.regression),
    Kind(
        "too few draws of nearly collinear inputs",
        "regression",
        nearly_collinear,
        truths.plain(COEFFICIENTS),
        references.regression,
        settings=ob.Nuts(chains=4, warmup=100, draws=40),
    ),
    components(
        "mixture of two",
        "mixture",
        two,
        "mu,sigma,share",
        MIXTURE,
        rerun("mixture_ordered", MIXTURE),
    ),
    components(
        "mixture of three",
        "mixture",
        three,
        "mu,sigma,share",
        MIXTURE,
        rerun("mixture_ordered", MIXTURE),
    ),
    Kind(
        "mixture whose priors name the components",
        "unlike",
        two_named,
        truths.apart(first_is_larger("mu"), ["mu", "sigma", "share"]),
        rerun("unlike_ordered", MIXTURE),
    ),
    Kind(
        "centred hierarchy",
        "centred",
        groups,
        truths.funnel,
        references.effects_without_tail,
        hierarchy,
    ),
    Kind(
        "hierarchy not centred",
        "not_centred",
        groups,
        truths.plain(["mu", "tau", "raw"]),
        references.effects_without_tail,
        hierarchy,
    ),
    components("hidden Markov", "hmm", states, MOVES, hidden, rerun("hmm_ordered", hidden)),
    signs(
        "one factor", "factor", scales(1), "+-load:,+-score:", "load", "noise", "factor_marginal"
    ),
    Kind(
        "two factors that rotate",
        "rotation",
        scales(2),
        truths.rotating,
        rerun("rotation", named("common", "noise")),
        without_labels=True,
    ),
    signs(
        "item responses",
        "responses",
        answers,
        "+-ability:,+-slope:",
        "slope",
        "easy",
        "responses_marginal",
        **NODES,
    ),
    Kind(
        "heavy tails",
        "heavy",
        lambda rng: {"P": 3, "place": rng.normal(size=3), "width": rng.uniform(0.5, 2, size=3)},
        truths.plain(["x"]),
        references.heavy,
        references.below_quantiles,
        settings=ob.Nuts(chains=4, warmup=500, draws=2000),
    ),
    Kind(
        "mass at a bound",
        "bound",
        lambda rng: {"mean": rng.uniform(-2, 0), "few": rng.uniform(5, 30), "rate": 2.0},
        truths.plain(["cut", "p", "wait"]),
        references.bound,
    ),
    Kind(
        "two modes that chains cannot leave",
        "humps",
        two_humps(9, 3, centre=1.0),
        truths.apart(references.nearest_hump, ["x", "other"]),
        references.humps,
    ),
    Kind(
        "two modes that nearly mirror each other",
        "humps",
        two_humps(9, 3),
        truths.apart(references.nearest_hump, ["x", "other"]),
        references.humps,
    ),
    Kind(
        "two modes that chains cross",
        "humps",
        two_humps(3.2, 1),
        truths.plain(["x", "other"]),
        references.humps,
    ),
    Kind(
        "chains too short",
        "walk",
        slow_walk,
        truths.plain(["level", "step", "noise"]),
        settings=ob.Nuts(chains=4, warmup=100, draws=60),
    ),
    Kind(
        "an order that hardly orders",
        "weak_order",
        planes,
        truths.apart(first_is_larger("second"), ["first", "second", "spread", "share"], "labels"),
    ),
    components(
        "components as scalars",
        "scalars",
        two,
        "",
        pairs,
        rerun("mixture_ordered", MIXTURE),
        judge=truths.of_scalars,
    ),
    components(
        "two decays",
        "decays",
        two_decays,
        "height,rate",
        named("rate", "height"),
        rerun("decays_ordered", named("rate", "height")),
    ),
)
