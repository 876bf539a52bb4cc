"""Compared programs with their data, from this folder and from onebasin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .catalogue import MAKERS, data_of

HERE = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
PROBLEMS = ROOT / "truth" / "problems"
OWN = {
    "eight-schools": "schools",
    "factors": "factors",
    "hidden-markov": "hidden_markov",
    "item-response-2pl": "item_response",
    "latent-classes": "latent_classes",
    "mixture-2": "mixture_of_two",
    "mixture-3": "mixture",
    "topics": "topics",
}
"""Programs of the reference problems, by the name of their data."""


@dataclass(frozen=True)
class Case:
    """A program with its data.

    Attributes
    ----------
    name : str
        Key of the program in the record.
    group : str
        ``public`` for programs of this folder, ``wrong`` for invalid programs, ``own`` for programs of onebasin.
    path : Path
        The ``.stan`` file.
    make : callable
        Function that returns the data.
    """

    name: str
    group: str
    path: Path
    make: Callable[[], Mapping[str, Any]]


NETWORKS = ("free", "givens-ordered", "seamless", "unit-vectors", "deep-noise", "classes")


def _network_data(name: str) -> Mapping[str, Any]:
    from onebasin.networks import BayesianNetwork, Categorical, Gaussian, Network, Parametrisation
    from onebasin.stan.program import definition

    generator = np.random.default_rng(3)
    x, y = generator.normal(size=(30, 2)), generator.normal(size=(30, 1))
    label = generator.integers(0, 3, 30)
    one, deep = Network(2, (4,), 1), Network(2, (4, 3), 1, activation="tanh")
    if name == "classes":
        model = BayesianNetwork(Network(2, (4,), 3), Categorical())
    elif name == "deep-noise":
        model = BayesianNetwork(deep, Gaussian(noise_sd="predicted"))
    else:
        charts = {"givens-ordered": "givens", "seamless": "givens_seamless"}
        charts |= {"unit-vectors": "unit_vector", "free": "free"}
        biases = "ordered" if name == "givens-ordered" else "free"
        model = BayesianNetwork(
            one, parametrisation=Parametrisation(weights=charts[name], biases=biases)
        )
    return definition(model.condition(x, label if name == "classes" else y)).data


def _network(name: str) -> Case:
    kind = "classification" if name == "classes" else "regression"
    path = ROOT / "stan" / "programs" / f"{kind}.stan"
    return Case(f"network/{name}", "own", path, lambda: _network_data(name))


def cases() -> dict[str, Case]:
    """Return all cases by name."""
    public = [
        Case(
            name,
            "wrong" if name.startswith("bad_") else "public",
            HERE / f"{name}.stan",
            lambda name=name: data_of(name),
        )
        for name in MAKERS
    ]
    own = [
        Case(
            f"onebasin/{stem}",
            "own",
            PROBLEMS / "programs" / f"{stem}.stan",
            lambda data=data: json.loads((PROBLEMS / "data" / f"{data}.json").read_text()),
        )
        for data, stem in OWN.items()
    ]
    return {case.name: case for case in (*public, *own, *map(_network, NETWORKS))}
