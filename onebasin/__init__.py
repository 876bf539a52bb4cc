"""Inference for models whose components are interchangeable: `import onebasin as ob`.

`__init__.pyi` beside this file lists the public names, and the modules `networks`, `plot`, `truth`, ... have those of
one subject. Each is loaded with the room that defines it when it is first asked for, so that the import itself costs
nothing. What the rooms (`onebasin.models`, `.stan`, `.inference`, `.analysis`, `.studies`) hold besides may change.
"""

from functools import cache
from importlib import import_module
from typing import Any

import lazy_loader

_known, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_MOVED = {
    "approximations": "DistillationSettings distil elbo fit_gaussian mixture_gap",
    "errors": "InferenceError PosteriorFileError SymmetryError",
    "networks": "BayesianNetwork Categorical Ensemble Gaussian Network NormalPrior Parametrisation Rescalable Train "
    "barriers ensemble load_data predict_with_noise predictive_uncertainty score_predictions summarise_predictions "
    "train transpositions unit_activity",
    "stan": "StanError cmdstan_model open_library",
    "truth": "Family aligned_quantity open_reference",
}
"""Names of version 0.3, by the module that has them now."""


def __getattr__(name: str) -> Any:
    """Load a public name; those of version 0.3 are found for one release."""
    if name in __all__:
        return _known(name)
    if name.startswith("plot_"):
        return _former(name, "plot", name.removeprefix("plot_"))
    for module, names in _MOVED.items():
        if name in names.split():
            return _former(name, module, name)
    if name.endswith("Settings"):
        from .inference.runs.former import former_class

        return former_class(name)
    return _known(name)


@cache
def _former(name: str, module: str, new: str) -> Any:
    from .base.notices import notice

    found = getattr(import_module(f".{module}", __name__), new)
    notice(f"`{name}` is now `{module}.{new}`; the old name goes with version 0.5")
    return found
