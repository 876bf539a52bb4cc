"""The plan: the cells in the order in which they run.

First the parts without images, then the classifiers, width by width: trained networks, every method's fits, and, where
HMC is affordable, its draws, the same aligned, and how far each method's fits are from them in weights.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..lab import Cell
from .design import (
    INTERPOLATION,
    MADE,
    NUMPYRO,
    QUADRATURE,
    Config,
    FitSettings,
    against,
    alpha_problem,
    fit_settings,
    methods,
    width_key,
    width_problem,
)
from .two_weights.design import METHODS
from .two_weights.design import fit_settings as two_weight_settings


def cells(config: Config) -> tuple[Cell, ...]:
    """List all cells."""
    made = {INTERPOLATION: config.interpolation, QUADRATURE: config.two_weights}
    first = (Cell.of(key, settings, config.seed) for key, settings in made.items())
    return (*first, *_two_weights(config), *(c for w in config.widths for c in _width(config, w)))


def _two_weights(config: Config) -> Iterator[Cell]:
    vi = two_weight_settings(config.two_weights)
    for alpha in config.two_weights.alphas:
        for label, estimator in METHODS.items():
            settings = FitSettings(estimator, vi)
            yield Cell(alpha_problem(alpha), label, NUMPYRO, settings, config.seed)


def _width(config: Config, width: int) -> Iterator[Cell]:
    problem, seed = width_problem(width), config.seed
    yield Cell(problem, "ensemble", NUMPYRO, config.networks, seed)
    for method in methods(config, width):
        yield Cell(problem, method.name, NUMPYRO, fit_settings(config, width, method), seed)
    if width not in config.truth_widths:
        return
    yield Cell(problem, "hmc", NUMPYRO, config.hmc, seed)
    source = (width_key(width, "hmc"),)
    yield Cell(problem, "truth", MADE, config.truth, seed, inputs=source)
    for method in methods(config, width):
        inputs = (width_key(width, method.name), width_key(width, "truth", MADE))
        yield Cell(problem, against(method), MADE, config.truth, seed, inputs=inputs)
