"""The models that are programs: mixtures, item response, factors, topics, hidden Markov, latent classes, schools.

Each is stated twice, in NumPyro (`definitions`) and in Stan; `label_switching` states some for data of its own. Data
are files next to this module, `make_data` made them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onebasin.base.errors import StudyError
from onebasin.base.jsonable import read_json_file

from . import definitions, invariants, problem
from .problem import ADAPTED, RECIPE, Invariant, Problem, Simulate, Stated

HERE = Path(__file__).parent
PROGRAMS, DATA = HERE / "programs", HERE / "data"

_PART = ("component",)
MIXTURE_OF_TWO = Stated(
    definitions.mixture_of_two,
    PROGRAMS / "mixture_of_two.stan",
    "mu,sigma,1-theta",
    {"mu": _PART, "sigma": _PART},
)
MIXTURE = Stated(
    definitions.mixture,
    PROGRAMS / "mixture.stan",
    "weight,mu,sigma",
    {"weight": _PART, "mu": _PART, "sigma": _PART},
)
ITEM_RESPONSE = Stated(
    definitions.item_response,
    PROGRAMS / "item_response.stan",
    "+-theta:,+-a:",
    {"theta": ("person",), "a": ("item",), "b": ("item",)},
)
FACTORS = Stated(
    definitions.factors,
    PROGRAMS / "factors.stan",
    "+-L:1",
    {"L": ("item", "factor"), "psi": ("item",)},
)
TOPICS = Stated(
    definitions.topics,
    PROGRAMS / "topics.stan",
    "theta:1,phi",
    {"theta": ("doc", "topic"), "phi": ("topic", "word")},
)
HIDDEN_MARKOV = Stated(
    definitions.hidden_markov,
    PROGRAMS / "hidden_markov.stan",
    "A:0:1,mu,sigma,start",
    {"A": ("state", "next"), "mu": ("state",), "sigma": ("state",), "start": ("state",)},
)
LATENT_CLASSES = Stated(
    definitions.latent_classes,
    PROGRAMS / "latent_classes.stan",
    "share,q",
    {"share": ("class",), "q": ("class", "item")},
)
SCHOOLS = Stated(
    definitions.schools, PROGRAMS / "schools.stan", dims={"eta": ("school",), "theta": ("school",)}
)


def read_data(name: str) -> dict[str, Any]:
    """Read the data of a problem."""
    return read_json_file(DATA / f"{name}.json", error=StudyError)


def _problem(
    name: str,
    title: str,
    stated: Stated,
    *,
    simulate: Simulate | None = None,
    invariants: Mapping[str, Invariant] | None = None,
    **more: Any,
) -> Problem:
    own = invariants or {}
    return Problem(
        name,
        title,
        lambda: stated.condition(name, read_data(name)),
        family=None
        if simulate is None
        else lambda: problem.family(name, stated, read_data(name), simulate, own),
        invariants=own,
        **more,
    )


def _of_mixture(*points: float) -> dict[str, Any]:
    return {
        "ordered(mu)": invariants.ordered("mu"),
        "mean(y)": invariants.mixture_mean,
        "sd(y)": invariants.mixture_sd,
        "density(y)": invariants.mixture_density(points),
    }


_LABELS = ("label switching",)
_STEPHENS = "Stephens 2000, Dealing with label switching in mixture models"


def problems() -> tuple[Problem, ...]:
    """All of them."""
    return (
        _problem(
            "mixture-2",
            "Two normals whose labels nothing tells apart; the weight becomes its complement",
            MIXTURE_OF_TWO,
            simulate=problem.mixture_of_two,
            invariants=_of_mixture(-4.0, -2.0, 0.0, 2.0, 4.0),
            references=(_STEPHENS,),
            keywords=("mixture", *_LABELS),
        ),
        _problem(
            "mixture-3",
            "Three normals, apart from each other",
            MIXTURE,
            simulate=problem.mixture,
            invariants=_of_mixture(-4.0, -2.0, 0.0, 2.0, 4.0),
            references=(_STEPHENS,),
            keywords=("mixture", *_LABELS),
        ),
        _problem(
            "mixture-3-overlap",
            "Three normals that overlap, so that labels switch within chains and aligned means depend on the rule",
            MIXTURE,
            simulate=problem.mixture,
            invariants=_of_mixture(-2.0, -1.0, 0.0, 1.0, 2.0),
            settings=replace(ADAPTED, target_acceptance=0.95),
            references=(_STEPHENS,),
            keywords=("mixture", *_LABELS, "overlap"),
        ),
        _problem(
            "mixture-5",
            "Five normals, apart from each other: 120 labellings",
            MIXTURE,
            simulate=problem.mixture,
            invariants=_of_mixture(-8.0, -4.0, 0.0, 4.0, 8.0),
            settings=replace(ADAPTED, init="optimum"),
            references=(_STEPHENS,),
            keywords=("mixture", *_LABELS),
        ),
        _problem(
            "item-response-2pl",
            "Item response with two parameters an item: abilities and discriminations may change sign together",
            ITEM_RESPONSE,
            simulate=problem.item_response,
            invariants={"|a|": invariants.sizes("a"), "right": invariants.right_answers},
            keywords=("item response", "reflection"),
        ),
        _problem(
            "factors",
            "Factor analysis with three sparse factors, their scores summed out: 48 labellings",
            FACTORS,
            settings=ADAPTED,
            invariants={"covariance": invariants.covariances},
            keywords=("factor analysis", "sign symmetry", *_LABELS),
        ),
        _problem(
            "topics",
            "Latent Dirichlet allocation with two topics and 30 documents",
            TOPICS,
            settings=ADAPTED,
            invariants={"word": invariants.word_shares(3)},
            references=("Blei, Ng and Jordan 2003, Latent Dirichlet allocation",),
            keywords=("topic model", *_LABELS),
        ),
        _problem(
            "hidden-markov",
            "A hidden Markov model with three states: rows and columns of the transition matrix move together",
            HIDDEN_MARKOV,
            settings=ADAPTED,
            simulate=problem.hidden_markov,
            invariants={"ordered(mu)": invariants.ordered("mu"), "staying": invariants.staying},
            keywords=("hidden Markov model", *_LABELS),
        ),
        _problem(
            "latent-classes",
            "Three latent classes of 300 persons who answer eight questions with yes or no",
            LATENT_CLASSES,
            invariants={
                "ordered(share)": invariants.ordered("share"),
                "yes": invariants.item_shares,
            },
            keywords=("latent class analysis", *_LABELS),
        ),
        _problem(
            "eight-schools",
            "Rubin's eight schools, non-centred: no symmetry, and public references to hold this one against",
            SCHOOLS,
            invariants={"theta": invariants.school_effects},
            settings=replace(RECIPE, target_acceptance=0.99),
            references=("Rubin 1981, Estimation in parallel randomized experiments",),
            keywords=("hierarchical model",),
        ),
    )
