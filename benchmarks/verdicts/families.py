"""Table of the families, each with its correct verdict."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .broken import (
    drifting,
    every_chain_its_own,
    few,
    funnel,
    modes,
    never_moves,
    not_finite,
    repeats,
    short,
    shrunken,
)
from .labels import (
    factors,
    hidden_markov,
    item_responses,
    lower_triangle,
    mixture,
    network,
    parts_of_a_whole,
    planes,
    regressions,
    topics,
    two_mixtures,
    two_weights,
)
from .plain import (
    banana,
    coin,
    correlations,
    effects,
    gaussian_process,
    heavy,
    horseshoe,
    logits,
    metropolis,
    not_centred,
    ordered,
    random_walk,
    regression,
    ridge,
    simplexes,
    some_diverge,
    square,
)
from .simulation import Posterior
from .truth import USABLE, Family, Truth, aligned, unusable

MU = aligned("mu,sigma,theta")
MU_ONLY = aligned("mu,sigma,theta", silent=["sigma"])
MU_TWO = aligned("mu,sigma,theta", silent=["sigma", "theta"])
"""Blocks of a mixture of two components, which may differ only in their means. Equal variables leave no trace."""
OVERLAP = Truth(("aligned", "invariant"), ("labels",), ("mu,sigma,theta",), ("sigma", "theta"))
"""Truth for components two to three standard deviations apart, whose draws cannot decide between these verdicts."""
TWO = aligned("mu,sigma,theta", "nu,omega,phi")
TWO_ONLY = aligned("mu,sigma,theta", "nu,omega,phi", silent=["sigma", "omega", "phi", "theta"])
SLOW = unusable("short", "labels")
WEIGHT = aligned("mu,sigma,1-theta")
PLANE = aligned("mu:0,L:0,theta", silent=["theta"])
BETA = aligned("beta:0,tau,weight", silent=["weight"])
STATES = aligned("A:0:1,mu,pi,sigma", silent=["pi"])
SIGNED = aligned("+-L:1,+-F:1")
ROTATING = Truth(("invariant",), ("labels",), None)
WHOLE = aligned("+-theta:,+-a:")
UNITS = aligned("W1:1,b1,W2:0")
SIGNED_UNITS = aligned("+-W1:1,+-b1,+-W2:0")
FUNNEL, STUCK, SHORT, MODES = (unusable(name) for name in ("funnel", "stuck", "short", "modes"))
NOT_FINITE = unusable("not-finite")

Row = (
    tuple[str, Callable[..., Posterior], Truth] | tuple[str, Callable[..., Posterior], Truth, dict]
)

TABLE: dict[str, tuple[Row, ...]] = {
    "mixtures": (
        ("chains in unlike labellings", mixture, MU),
        ("5 components, chains in unlike labellings", mixture, MU, {"parts": 5}),
        ("labels switch at every draw", mixture, MU_ONLY, {"labels": "draws"}),
        ("labels switch about every 300 draws", mixture, MU, {"labels": "rare"}),
        ("labels switch at every draw of half of the chains", mixture, MU, {"labels": "half"}),
        ("one switch in one chain", mixture, MU, {"labels": "once"}),
        ("generated quantities beside", mixture, MU, {"generated": True}),
        ("no statistics", mixture, MU, {"stats": False}),
        ("one labelling", mixture, USABLE, {"labels": "one"}),
        ("one labelling, one chain", mixture, USABLE, {"labels": "one", "chains": 1}),
        (
            "labels switch at every draw, one chain",
            mixture,
            MU_ONLY,
            {"labels": "draws", "chains": 1},
        ),
        ("overlapping, chains in unlike labellings", mixture, OVERLAP, {"apart": 2.5}),
        (
            "overlapping, labels switch at every draw",
            mixture,
            OVERLAP,
            {"apart": 2.8, "labels": "draws"},
        ),
        (
            "one component lost in one chain, one labelling",
            mixture,
            MODES,
            {"lost": True, "labels": "one"},
        ),
        ("one component lost in one chain, unlike labellings", mixture, MODES, {"lost": True}),
        ("weight theta, chains apart", two_weights, WEIGHT),
        ("weight theta, every draw", two_weights, WEIGHT, {"labels": "draws"}),
        ("in the plane, Cholesky factors, chains apart", planes, PLANE),
        ("in the plane, Cholesky factors, every draw", planes, PLANE, {"labels": "draws"}),
        ("of regressions, chains apart", regressions, BETA),
        ("of regressions, every draw", regressions, BETA, {"labels": "draws"}),
        ("2 components", mixture, MU_TWO, {"parts": 2}),
        ("10 components", mixture, MU, {"parts": 10}),
        ("250 draws a chain", mixture, MU, {"draws": 250, "slow": (0.0, 0.2)}),
        ("2 chains of 2000 draws", mixture, MU, {"chains": 2, "draws": 2000}),
        ("8 chains", mixture, MU, {"chains": 8}),
        ("beside as many coefficients", mixture, MU, {"covariates": True}),
        ("two of them, chains apart", two_mixtures, TWO),
        ("two of them, every draw", two_mixtures, TWO_ONLY, {"labels": "draws"}),
        ("slow chains in unlike labellings", mixture, SLOW, {"slow": (0.96, 0.98)}),
        ("ordered", ordered, USABLE),
        ("ordered, one chain", ordered, USABLE, {"chains": 1}),
    ),
    "hidden Markov": (
        ("chains apart", hidden_markov, STATES),
        ("4 states, chains apart", hidden_markov, STATES, {"states": 4}),
        ("every draw", hidden_markov, STATES, {"labels": "draws"}),
        ("one labelling", hidden_markov, USABLE, {"labels": "one"}),
    ),
    "factors": (
        ("signs by chain", factors, SIGNED),
        ("signs at every draw", factors, SIGNED, {"flips": "draws"}),
        ("signs and order by chain", factors, SIGNED, {"parts": 3, "labels": "chains"}),
        (
            "signs and order at every draw",
            factors,
            SIGNED,
            {"parts": 3, "labels": "draws", "flips": "draws"},
        ),
        ("turning at every draw", factors, ROTATING, {"rotate": "draws", "flips": "one"}),
        ("chains turned apart", factors, ROTATING, {"rotate": "chains", "flips": "one"}),
        ("one labelling", factors, USABLE, {"flips": "one"}),
        ("zeros above the diagonal", lower_triangle, USABLE),
        ("not negative, order by chain", parts_of_a_whole, aligned("W:1,H:0")),
        ("topics, order by chain", topics, aligned("theta:1,phi:0")),
    ),
    "2PL": (
        ("sign by chain", item_responses, WHOLE),
        ("sign at every draw", item_responses, WHOLE, {"flips": "draws"}),
        ("one switch in one chain", item_responses, WHOLE, {"flips": "once"}),
        ("as many persons as items", item_responses, WHOLE, {"persons": 20, "items": 20}),
        ("one sign", item_responses, USABLE, {"flips": "one"}),
    ),
    "networks": (
        ("order by chain", network, UNITS),
        ("order and signs by chain", network, SIGNED_UNITS, {"flips": "chains"}),
        ("order at every draw", network, UNITS, {"labels": "draws"}),
        ("every chain in a mode of its own", network, MODES, {"modes": True}),
    ),
    "funnels": (
        ("8 groups", funnel, FUNNEL),
        ("30 groups", funnel, FUNNEL, {"groups": 30, "names": ("sigma_u", "u")}),
        ("no statistics", funnel, FUNNEL, {"stats": False}),
        ("not centred, small tau", not_centred, USABLE),
    ),
    "regressions": (
        ("6 coefficients", regression, USABLE),
        ("log_lik of 200", regression, USABLE, {"log_lik": 200}),
        ("one chain", regression, USABLE, {"chains": 1}),
        ("no statistics", regression, USABLE, {"stats": False}),
        ("autocorrelated draws", regression, USABLE, {"slow": (0.6, 0.75)}),
        ("three divergences anywhere", some_diverge, USABLE),
        ("two coefficients known by their sum", ridge, USABLE),
        ("random walk of 60 states", random_walk, USABLE),
        ("horseshoe", horseshoe, USABLE),
        ("300 coefficients", regression, USABLE, {"covariates": 300}),
        ("coefficients with one posterior", regression, USABLE, {"alike": True}),
        ("softmax, level under its prior", logits, USABLE),
        ("vector autoregression", square, USABLE),
        ("Gaussian process, NaN above the diagonal", gaussian_process, USABLE),
        ("correlation matrix", correlations, USABLE),
    ),
    "effects": (
        ("hierarchical", effects, USABLE),
        ("unlike", effects, USABLE, {"kind": "unlike"}),
        ("that sum to zero", effects, USABLE, {"kind": "sum to zero"}),
        ("between bounds", effects, USABLE, {"kind": "uniform", "groups": 5}),
        ("with two humps each", effects, USABLE, {"kind": "two humps", "groups": 3}),
    ),
    "other shapes": (
        ("simplex of equal counts", simplexes, USABLE),
        ("simplex of unlike counts", simplexes, USABLE, {"equal": False}),
        ("simplex of a coin", coin, USABLE),
        ("banana", banana, USABLE),
        ("Student t, 3 degrees", heavy, USABLE),
        ("Cauchy", heavy, USABLE, {"freedom": 1.0}),
        ("Metropolis, 4 coefficients", metropolis, USABLE),
        ("Metropolis, 2 coefficients", metropolis, USABLE, {"size": 2}),
    ),
    "stuck": (
        ("a chain repeats 350 draws", repeats, STUCK),
        ("a chain repeats 150 draws", repeats, STUCK, {"share": 0.15}),
        ("a chain never moves", never_moves, STUCK),
        ("a chain hardly moves", shrunken, STUCK),
    ),
    "short": (
        ("chains wander slowly", short, SHORT),
        ("chains wander slowly, no statistics", short, SHORT, {"stats": False}),
        ("chains have not arrived", drifting, SHORT),
        ("60 draws a chain", few, SHORT),
    ),
    "modes": (
        ("one chain in a lower mode", modes, MODES),
        ("two chains in a lower mode", modes, MODES, {"chains_apart": 2}),
        ("one chain in a mode as high", modes, MODES, {"heights": False}),
        ("every chain in a mode of its own", every_chain_its_own, MODES),
    ),
    "not finite": (
        ("NaN from some draw on", not_finite, NOT_FINITE),
        ("infinite in three draws", not_finite, NOT_FINITE, {"kind": np.inf, "late": False}),
    ),
}

FAMILIES = tuple(
    Family(f"{group}: {name}", group, partial(simulate, **(rest[0] if rest else {})), truth)
    for group, rows in TABLE.items()
    for name, simulate, truth, *rest in rows
)
