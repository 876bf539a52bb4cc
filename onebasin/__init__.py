"""Inference for models whose parts are interchangeable: `import onebasin as ob`.

The public names; each is loaded with the room that defines it when it is first asked for, so that the import
itself stays fast. The rooms are `onebasin.models`, `.stan`, `.inference`, `.analysis` and `.studies`; what they
do not show here may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .analysis.alignment import align
    from .analysis.compare.compare import compare
    from .analysis.diagnostics.diagnose import diagnose
    from .analysis.gaussian import fit_gaussian
    from .analysis.gaussian.distillation import distil
    from .inference import (
        AdviSettings,
        EnsembleSettings,
        HmcSettings,
        NutsSettings,
        SymmetrisedSettings,
        TrainSettings,
        advi,
        check_symmetry,
        ensemble,
        hmc,
        nuts,
        save,
        symmetrised_vi,
        train,
    )
    from .models import (
        BayesianNetwork,
        Categorical,
        Complement,
        Exchangeable,
        Gaussian,
        Network,
        NormalPrior,
        Parametrisation,
        Rescalable,
        Target,
        predict,
    )

_HOMES = {
    "AdviSettings": "inference",
    "BayesianNetwork": "models",
    "Categorical": "models",
    "Complement": "models",
    "EnsembleSettings": "inference",
    "Exchangeable": "models",
    "Gaussian": "models",
    "HmcSettings": "inference",
    "Network": "models",
    "NormalPrior": "models",
    "NutsSettings": "inference",
    "Parametrisation": "models",
    "Rescalable": "models",
    "SymmetrisedSettings": "inference",
    "Target": "models",
    "TrainSettings": "inference",
    "advi": "inference",
    "align": "analysis.alignment",
    "check_symmetry": "inference",
    "compare": "analysis.compare.compare",
    "diagnose": "analysis.diagnostics.diagnose",
    "distil": "analysis.gaussian.distillation",
    "ensemble": "inference",
    "fit_gaussian": "analysis.gaussian",
    "hmc": "inference",
    "nuts": "inference",
    "predict": "models",
    "save": "inference",
    "symmetrised_vi": "inference",
    "train": "inference",
}

__all__ = [
    "AdviSettings",
    "BayesianNetwork",
    "Categorical",
    "Complement",
    "EnsembleSettings",
    "Exchangeable",
    "Gaussian",
    "HmcSettings",
    "Network",
    "NormalPrior",
    "NutsSettings",
    "Parametrisation",
    "Rescalable",
    "SymmetrisedSettings",
    "Target",
    "TrainSettings",
    "advi",
    "align",
    "check_symmetry",
    "compare",
    "diagnose",
    "distil",
    "ensemble",
    "fit_gaussian",
    "hmc",
    "nuts",
    "predict",
    "save",
    "symmetrised_vi",
    "train",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *_HOMES})
