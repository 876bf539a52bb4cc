"""The plan: the rows of the table, and the cells that they are made of.

Cells are, in this order: what is sampled or trained (`hmc`, `ensemble`, `meanfield`), its draws aligned by several
rules, Gaussians fitted through the ELBO or through predictions, a row of the table for each representation, and
the trained pairs of networks behind the paper's Figures 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from onebasin.analysis.gaussian.distillation import DistillationSettings

from ..lab import Cell
from .design import (
    DISTILLED,
    DYNAMICS,
    ENSEMBLE,
    HMC,
    MEANFIELD,
    REFINED,
    RULES,
    SWAPS,
    Config,
    RowSettings,
    aligned,
    num_parameters,
)

_ONE_BASIN = ("vi", "refined", "distilled")
"""Rows of draws that are in one basin by construction."""


class Row(NamedTuple):
    """A row of the table; `source` is the key of the posterior that it is made from."""

    name: str
    group: str
    label: str
    source: str
    settings: RowSettings

    @property
    def key(self) -> str:
        """Key of its cell."""
        return f"{self.name}.row.analysis"

    @property
    def one_basin(self) -> bool:
        """Whether the mean of its draws says something: it does not where each carries labels of its own.

        That of the paper's q_i, a Gaussian fitted to such draws, is the paper's.
        """
        return self.settings.kind == "gaussian" or self.name in _ONE_BASIN

    @property
    def needs_many_draws(self) -> bool:
        """Whether it is a fit without shrinkage, which needs more draws than parameters."""
        return self.settings.covariance == "low-rank-precision" or self.settings.shrinkage == 0.0


def _draws(num: int | None = None, repeats: int = 1, part: str = "") -> RowSettings:
    return RowSettings("draws", num, repeats, part=part)


def _gaussian(covariance: str = "diagonal", **how: Any) -> RowSettings:
    return RowSettings("gaussian", covariance=covariance, **how)


def _precision(rank: int) -> RowSettings:
    return _gaussian("low-rank-precision", rank=rank)


def rows(config: Config) -> tuple[Row, ...]:
    """List the table's rows."""
    many_draws = config.hmc.chains * config.hmc.draws > num_parameters(config) + 1
    return tuple(row for row in _ROWS if many_draws or not row.needs_many_draws)


_PAPER, _MEAN = aligned("hmc", "paper"), aligned("hmc", "mean")
_MEMBERS, _MEAN_MEMBERS = aligned("ensemble", "paper"), aligned("ensemble", "mean")
_OURS = "one Gaussian"
# fmt: off
_ROWS = (
    Row("hmc", "HMC", "samples (the truth)", HMC, _draws()),
    Row("hmc-qi", "HMC", "q_i: draws as they are, diagonal", HMC, _gaussian(prune=True)),
    Row("hmc-qr", "HMC", "q_r: activations, one draw, diagonal", _PAPER, _gaussian(prune=True)),
    Row("ensemble", "ensemble", "samples", ENSEMBLE, _draws()),
    Row("ensemble-qi", "ensemble", "q_i: members as they are, diagonal", ENSEMBLE, _gaussian()),
    Row("ensemble-qr", "ensemble", "q_r: activations, one member, diagonal", _MEMBERS, _gaussian()),
    Row("ensemble-mean", "ensemble", "iterated mean, diagonal", _MEAN_MEMBERS, _gaussian()),
    Row("ensemble-shrunk", "ensemble", "iterated mean, full, shrunk", _MEAN_MEMBERS, _gaussian("full")),
    Row("vi", "VI", "mean-field, random start", MEANFIELD, _draws()),
    Row("half-1", "baselines", "first half of the chains", HMC, _draws(part="first")),
    Row("half-2", "baselines", "second half of the chains", HMC, _draws(part="second")),
    Row("raw-1", "baselines", "1 raw draw", HMC, _draws(1, 20)),
    Row("raw-5", "baselines", "5 raw draws", HMC, _draws(5, 20)),
    Row("raw-20", "baselines", "20 raw draws", HMC, _draws(20, 20)),
    Row("map", "baselines", "one MAP network", ENSEMBLE, _draws(1, 10)),
    Row("one-draw", _OURS, "weights, one draw, diagonal", aligned("hmc", "one-draw"), _gaussian()),
    Row("mean-diag", _OURS, "iterated mean, diagonal", _MEAN, _gaussian(prune=True)),
    Row("gauss-diag", _OURS, "iterated Gaussian, diagonal", aligned("hmc", "gaussian"), _gaussian()),
    Row("mean-lowrank", _OURS, "iterated mean, low rank 20", _MEAN, _gaussian("low-rank", rank=20)),
    Row("mean-precision-20", _OURS, "iterated mean, low-rank precision 20", _MEAN, _precision(20)),
    Row("mean-precision-200", _OURS, "iterated mean, low-rank precision 200", _MEAN, _precision(200)),
    Row("mean-full", _OURS, "iterated mean, full", _MEAN, _gaussian("full", shrinkage=0.0)),
    Row("mean-shrunk", _OURS, "iterated mean, full, shrunk", _MEAN, _gaussian("full")),
    Row("paper-shrunk", _OURS, "activations, one draw, full, shrunk", _PAPER, _gaussian("full")),
    Row("refined", _OURS, "ELBO from the aligned mean, diagonal", REFINED, _draws()),
    Row("distilled", _OURS, "distilled predictions, diagonal", DISTILLED, _draws()),
)
# fmt: on


def cells(config: Config) -> tuple[Cell, ...]:
    """List the cells in the order in which they run."""

    def cell(key: str, settings: Any, *inputs: str) -> Cell:
        return Cell.of(key, settings, config.seed, inputs)

    distilled = Distillation(config.distillation, config.draws)
    return (
        cell(HMC, config.hmc),
        cell(ENSEMBLE, config.ensemble),
        cell(MEANFIELD, config.advi),
        *(cell(aligned("hmc", name), rule.settings, HMC) for name, rule in RULES.items()),
        *(cell(aligned("ensemble", r), RULES[r].settings, ENSEMBLE) for r in ("paper", "mean")),
        cell(REFINED, config.advi, aligned("hmc", "mean")),
        cell(DISTILLED, distilled, HMC, aligned("hmc", "mean")),
        *(cell(row.key, _filled(row.settings, config), row.source) for row in rows(config)),
        cell(DYNAMICS, config.pairs),
        cell(SWAPS, config.pairs),
    )


@dataclass(frozen=True)
class Distillation:
    """Settings of the distilled Gaussian, and how many draws of it are kept."""

    distillation: DistillationSettings
    draws: int


def _filled(settings: RowSettings, config: Config) -> RowSettings:
    return replace(settings, num=config.draws) if settings.kind == "gaussian" else settings
