"""Settings of symmetrised variational inference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onebasin.models.choices import choose

from ..settings import (
    DTYPES,
    SCHEDULES,
    check_batch_size,
    check_counts,
    check_positive_numbers,
)

FAMILIES = ("meanfield", "block", "lowrank")
ESTIMATORS = ("none", "exact", "fractional", "barber_agakov", "importance", "infonce", "bethe")
CHOICES = ("auto", *ESTIMATORS)
INITS = ("he", "random")


@dataclass(frozen=True)
class SymmetrisedSettings:
    """How an approximation is trained, and how it is reported.

    Parameters
    ----------
    fits : int
        Approximations that are trained side by side, each from its own start and with its own noise; each is a chain
        of the result. Fit i depends on the seed and i alone, but for when training ends early, which is when all have
        settled.
    steps : int
        Most steps of Adam.
    learning_rate : float
        Its first step size.
    schedule : {"cosine", "constant"}
        Whether the step size falls to zero along half a cosine, or stays.
    anneal : float
        Share of the steps, from 0 to 1, over which the weight of the divergence from the prior rises from 0 to 1.
    batch_size : int or None
        Observations in each gradient; networks only. `None` for all.
    samples : int
        Draws from q of each gradient.
    local_reparametrisation : bool or None
        Whether layers' values are drawn instead of weights; None: where it applies (a mean-field approximation of a
        network with free parametrisation).
    information_draws : int
        Draws from q with which a step's gradient of the mutual information is taken; few do.
    permutations : int
        K of "importance" and "infonce", the identity included.
    sweeps : int
        Of the messages of "fractional" and "barber_agakov".
    rank : int
        Of the "lowrank" family.
    init : {"he", "random"}
        Where the means start: a network's free weights as He et al. 2015 have it, for training that is not lost from
        the start; or uniform within +-2 in the unconstrained space, which all other models take.
    init_scale : float
        Standard deviations at the start.
    evaluate_every : int
        Steps between evaluations of the traces.
    elbo_samples : int
        Draws of such an evaluation.
    tolerance : float
        Training ends early when the mean or the median relative change of the symmetrised ELBO over the last ten
        evaluations is below it for every fit; 0 for never.
    report_draws, report_permutations : int
        Draws of q, and permutations of each, of the numbers at the end.
    draws : int
        Draws kept of each fit.
    dtype : {"float64", "float32"}
        Precision.

    Raises
    ------
    ValueError
        If a count or a number is out of its range, or a word unknown.
    """

    fits: int = 1
    steps: int = 10_000
    learning_rate: float = 0.01
    schedule: str = "cosine"
    anneal: float = 0.0
    batch_size: int | None = None
    samples: int = 8
    local_reparametrisation: bool | None = None
    information_draws: int = 2
    permutations: int = 10
    sweeps: int = 15
    rank: int = 5
    init: str = "he"
    init_scale: float = 0.05
    evaluate_every: int = 500
    elbo_samples: int = 20
    tolerance: float = 1e-4
    report_draws: int = 200
    report_permutations: int = 50
    draws: int = 1000
    dtype: str = "float64"

    def __post_init__(self) -> None:
        check_counts(self, "fits", "steps", "samples", "information_draws", "permutations")
        check_counts(self, "sweeps", "rank", "evaluate_every", "elbo_samples")
        check_counts(self, "report_draws", "report_permutations", "draws")
        check_batch_size(self)
        check_positive_numbers(self, "learning_rate", "init_scale")
        choose("schedule", self.schedule, SCHEDULES)
        choose("init", self.init, INITS)
        choose("dtype", self.dtype, DTYPES)
        self._check_ranges()

    def _check_ranges(self) -> None:
        if not 0 <= self.anneal <= 1:
            raise ValueError(
                f"`anneal` is {self.anneal!r}; it is a share of the steps and must be from 0 (the full divergence "
                "from the first step) to 1."
            )
        if not 0 <= self.tolerance < math.inf:
            raise ValueError(
                f"`tolerance` is {self.tolerance!r}; it must be a relative change of 0 (train for all `steps`) or "
                "more."
            )
