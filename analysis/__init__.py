"""Analysis of posteriors: alignment, diagnostics, comparison, Gaussians, predictive scores, figures, reports.

This package knows the layout of a posterior (an `xarray.DataTree`, see docs/reference/posterior.md) but no sampler.
Every public function that takes a posterior first converts it to a `View`. `__init__.pyi` lists the public names, which
are loaded at first use. `compare` and `report` are in the folders of the same names, and in `onebasin`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
