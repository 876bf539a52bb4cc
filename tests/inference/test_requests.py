"""What every method refuses before any work: settings of another method's class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onebasin import inference
from onebasin.analysis.gaussian.distillation import distil
from onebasin.inference import AdviSettings, HmcSettings, NutsSettings
from onebasin.models import BayesianNetwork, Network

TARGET = BayesianNetwork(Network(1, (2,))).condition(np.zeros((3, 1)), np.zeros((3, 1)), name="net")

POSTERIOR = {name: np.zeros((1, 2, *shape)) for name, shape in TARGET.model.network.shapes.items()}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
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
