"""The plan: the rows of the table, and the cells that they are made of.

Cells are, in this order: what is sampled or trained (`hmc`, `ensemble`, `meanfield`), its draws aligned by several
rules, Gaussians fitted through the ELBO or through predictions, a row of the table for each representation, and
the trained pairs of networks behind the paper's Figures 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from onebasin.analysis.gaussian.distillation import DistillationSettings

from ..lab.study import Cell
from .design import (
    ALIGNMENTS,
    DISTILLED,
    ENSEMBLE,
    HMC,
    MADE,
    MEANFIELD,
    REFINED,
    Config,
    RowSettings,
    aligned,
    key,
    num_parameters,
)

PRECISION_RANKS = (20, 200)


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes
    ----------
    name : str
        Short name, used in keys.
    group : str
        What it stands with: a heading.
    label : str
        What it is, for a reader.
    source : str
        Key of the posterior that it is made from.
    settings : RowSettings
        How.
    """

    name: str
    group: str
    label: str
    source: str
    settings: RowSettings

    @property
    def key(self) -> str:
        """Key of its cell."""
        return key(self.name, "row")


def _gaussian(covariance: str = "diagonal", **how: Any) -> RowSettings:
    return RowSettings("gaussian", covariance=covariance, **how)


def rows(config: Config) -> tuple[Row, ...]:
    """List the table's rows."""
    draws = RowSettings("draws")
    paper, mean = aligned("hmc", "paper"), aligned("hmc", "mean")
    hmc, baseline, ours = "HMC, the paper's columns", "baselines", "one Gaussian, other recipes"
    found = [
        Row("hmc", hmc, "samples (the truth)", HMC, draws),
        Row("hmc-qi", hmc, "q_i: draws as they are, diagonal", HMC, _gaussian(prune=True)),
        Row("hmc-qr", hmc, "q_r: activations, one draw, diagonal", paper, _gaussian(prune=True)),
        *_ensemble_rows("ensemble", ENSEMBLE),
        Row("vi", "VI, the paper's column", "mean-field, random start", MEANFIELD, draws),
        Row(
            "half-1", baseline, "first half of the chains", HMC, RowSettings("draws", part="first")
        ),
        Row(
            "half-2",
            baseline,
            "second half of the chains",
            HMC,
            RowSettings("draws", part="second"),
        ),
        *(
            Row(
                f"raw-{k}",
                baseline,
                f"{k} raw draw{'s' * (k > 1)}",
                HMC,
                RowSettings("draws", k, 20),
            )
            for k in (1, 5, 20)
        ),
        Row("map", baseline, "one MAP network", ENSEMBLE, RowSettings("draws", 1, 10)),
        Row(
            "one-draw", ours, "weights, one draw, diagonal", aligned("hmc", "one-draw"), _gaussian()
        ),
        Row("mean-diag", ours, "iterated mean, diagonal", mean, _gaussian(prune=True)),
        Row(
            "gauss-diag",
            ours,
            "iterated Gaussian, diagonal",
            aligned("hmc", "gaussian"),
            _gaussian(),
        ),
        Row(
            "mean-lowrank", ours, "iterated mean, low rank 20", mean, _gaussian("low-rank", rank=20)
        ),
        *_many_draws_rows(config, mean, ours),
        Row("mean-shrunk", ours, "iterated mean, full, shrunk", mean, _gaussian("full")),
        Row("paper-shrunk", ours, "activations, one draw, full, shrunk", paper, _gaussian("full")),
        Row("refined", ours, "ELBO from the aligned mean, diagonal", REFINED, draws),
        Row("distilled", ours, "distilled predictions, diagonal", DISTILLED, draws),
    ]
    return tuple(found)


def _ensemble_rows(name: str, source: str) -> tuple[Row, ...]:
    group = "ensemble, the paper's columns"
    paper, mean = aligned(name, "paper"), aligned(name, "mean")
    return (
        Row(name, group, "samples", source, RowSettings("draws")),
        Row(f"{name}-qi", group, "q_i: members as they are, diagonal", source, _gaussian()),
        Row(f"{name}-qr", group, "q_r: activations, one member, diagonal", paper, _gaussian()),
        Row(f"{name}-mean", group, "iterated mean, diagonal", mean, _gaussian()),
        Row(f"{name}-shrunk", group, "iterated mean, full, shrunk", mean, _gaussian("full")),
    )


def _many_draws_rows(config: Config, source: str, group: str) -> tuple[Row, ...]:
    """Fits without shrinkage need more draws than parameters."""
    if config.hmc.chains * config.hmc.draws <= num_parameters(config) + 1:
        return ()
    label = "iterated mean, low-rank precision"
    return (
        *(
            Row(
                f"mean-precision-{rank}",
                group,
                f"{label} {rank}",
                source,
                _gaussian("low-rank-precision", rank=rank),
            )
            for rank in PRECISION_RANKS
        ),
        Row("mean-full", group, "iterated mean, full", source, _gaussian("full", shrinkage=0.0)),
    )


def cells(config: Config) -> tuple[Cell, ...]:
    """List the cells in the order in which they run."""
    return (
        _cell("posterior", "hmc", "numpyro", config.hmc, config),
        _cell("posterior", "ensemble", "numpyro", config.ensemble, config),
        _cell("posterior", "meanfield", "numpyro", config.advi, config),
        *(_cell("hmc", f"aligned-{r}", MADE, s, config, HMC) for r, s in ALIGNMENTS.items()),
        *(
            _cell("ensemble", f"aligned-{r}", MADE, ALIGNMENTS[r], config, ENSEMBLE)
            for r in ("paper", "mean")
        ),
        _cell("hmc-mean", "meanfield", "numpyro", config.advi, config, aligned("hmc", "mean")),
        _cell(
            "hmc",
            "distilled",
            MADE,
            Distillation(config.distillation, config.draws),
            config,
            HMC,
            aligned("hmc", "mean"),
        ),
        *(
            _cell(r.name, "row", MADE, _filled(r.settings, config), config, r.source)
            for r in rows(config)
        ),
        _cell("pair", "dynamics", MADE, config.pairs, config),
        _cell("pair", "swaps", MADE, config.pairs, config),
    )


@dataclass(frozen=True)
class Distillation:
    """Settings of the distilled Gaussian, and how many draws of it are kept."""

    distillation: DistillationSettings
    draws: int


def _filled(settings: RowSettings, config: Config) -> RowSettings:
    return replace(settings, num=config.draws) if settings.kind == "gaussian" else settings


def _cell(
    problem: str, method: str, engine: str, settings: Any, config: Config, *inputs: str
) -> Cell:
    return Cell(problem, method, engine, settings, config.seed, inputs=inputs)
