"""What every method refuses before any work: settings of another method's class."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onebasin import inference
from onebasin.analysis.gaussian.distillation import distil
from onebasin.inference import AdviSettings, HmcSettings, NutsSettings
from onebasin.inference.definition import engine_for
from onebasin.models import BayesianNetwork, Exchangeable, Network, Target
from onebasin.models.numpyro_target import numpyro_model
from onebasin.stan import stan_program

from ..looped import looped

TARGET = BayesianNetwork(Network(1, (2,))).condition(np.zeros((3, 1)), np.zeros((3, 1)), name="net")

POSTERIOR = {name: np.zeros((1, 2, *shape)) for name, shape in TARGET.model.network.shapes.items()}


def test_engine_that_is_not_named_is_the_one_that_the_target_has(tmp_path: Path) -> None:
    (tmp_path / "m.stan").write_text("parameters { real a; } model { a ~ std_normal(); }")
    numpyro_model = Target("m", numpyro_model=lambda: None)
    for target, name in [
        (TARGET, "numpyro"),  # both
        (numpyro_model, "numpyro"),
        (stan_program(tmp_path / "m.stan"), "stan"),
    ]:
        assert engine_for(target, None) == name
        assert engine_for(target, "stan") == "stan"


@pytest.mark.usefixtures("unchecked")
@looped(
    ("method", "own", "others"),
    [
        (inference.nuts, "NutsSettings", [HmcSettings(), AdviSettings(), {}]),
        (inference.hmc, "HmcSettings", [NutsSettings(), {}]),
        (inference.advi, "AdviSettings", [NutsSettings(), {"draws": 3}]),
        (inference.symmetrised_vi, "SymmetrisedSettings", [AdviSettings()]),
        (inference.ensemble, "EnsembleSettings", [NutsSettings()]),
        (lambda t, settings: inference.train(t, {}, settings), "TrainSettings", [NutsSettings()]),
        (
            lambda t, settings: distil(POSTERIOR, np.zeros((2, 1)), settings=settings),
            "DistillationSettings",
            [NutsSettings],
        ),
    ],
)
def test_settings_of_another_class_are_refused(
    method: Callable[..., Any], own: str, others: list[Any]
) -> None:
    for other in others:
        name = other.__name__ if isinstance(other, type) else type(other).__name__
        with pytest.raises(TypeError, match=rf"`settings` is .*{name}.*, but \w+ takes {own};"):
            method(TARGET, settings=other)


@looped("words", ["mu,sigma", ["mu,sigma"], (Exchangeable({"mu": 0, "sigma": 0}),)])
def test_a_symmetry_is_given_in_blocks_or_in_words(tmp_path: Path, words: Any) -> None:
    program = tmp_path / "m.stan"
    program.write_text("parameters { vector[2] mu; vector[2] sigma; }")
    for make in (partial(stan_program, program), partial(numpyro_model, lambda: None)):
        assert make(symmetry=words).symmetry == (Exchangeable({"mu": 0, "sigma": 0}),)
