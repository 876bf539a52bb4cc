"""The programs that are compared: those of this folder, and onebasin's own with their data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onebasin import BayesianNetwork, Categorical, Gaussian, Network, Parametrisation
from onebasin.stan.program import definition
from onebasin.truth.problems import programs as problems

from .catalogue import MAKERS, data_of

HERE = Path(__file__).parent / "programs"
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
        Its key in the record.
    group : str
        ``public`` for programs of this folder, ``wrong`` for those that no engine accepts, ``own`` for onebasin's.
    path : Path
        The ``.stan`` file.
    make : callable
        Return the data.
    """

    name: str
    group: str
    path: Path
    make: Callable[[], Mapping[str, Any]]


def _networks() -> list[Case]:
    generator = np.random.default_rng(3)
    x, y = generator.normal(size=(30, 2)), generator.normal(size=(30, 1))
    label = generator.integers(0, 3, 30)
    one, deep = Network(2, (4,), 1), Network(2, (4, 3), 1, activation="tanh")
    models = {
        "free": BayesianNetwork(one),
        "givens-ordered": BayesianNetwork(
            one, parametrisation=Parametrisation(weights="givens", biases="ordered")
        ),
        "seamless": BayesianNetwork(
            one, parametrisation=Parametrisation(weights="givens_seamless")
        ),
        "unit-vectors": BayesianNetwork(
            one, parametrisation=Parametrisation(weights="unit_vector")
        ),
        "deep-noise": BayesianNetwork(deep, Gaussian(noise_sd="predicted")),
        "classes": BayesianNetwork(Network(2, (4,), 3), Categorical()),
    }
    found = []
    for name, model in models.items():
        program = definition(model.condition(x, label if name == "classes" else y))
        found.append(Case(f"network/{name}", "own", program.path, lambda data=program.data: data))
    return found


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
            problems.PROGRAMS / f"{stem}.stan",
            lambda data=data: problems.read_data(data),
        )
        for data, stem in OWN.items()
    ]
    return {case.name: case for case in (*public, *own, *_networks())}
