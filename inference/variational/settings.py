"""Settings of ADVI and of symmetrised variational inference."""

from __future__ import annotations

from typing import Literal

from onebasin.base.settings import Count, NonNegative, Positive, Share, settings

FAMILIES = ("meanfield", "block", "lowrank")
ESTIMATORS = ("none", "exact", "fractional", "barber_agakov", "importance", "infonce", "bethe")
CHOICES = ("auto", *ESTIMATORS)


@settings
class AdviSettings:
    """Settings of automatic differentiation variational inference (Kucukelbir et al. 2017).

    Parameters
    ----------
    iterations : int
        Most gradient steps of the optimiser.
    gradient_samples : int
        Monte Carlo draws of a gradient.
    elbo_samples : int
        Monte Carlo draws of an evaluation of the ELBO.
    evaluate_every : int
        Gradient steps between evaluations of the ELBO.
    tolerance : float
        The optimiser stops when the mean or the median relative change of the ELBO over the last evaluations falls
        below it; 0 for never (NumPyro).
    draws : int
        Draws taken from the fitted approximation.
    learning_rate : float
        Adam's first step size (NumPyro); Stan searches its own.
    schedule : {"exponential", "cosine", "constant"}
        Whether the step size falls to a hundredth over all iterations, to zero along half a cosine, or stays (NumPyro).
    anneal : float
        Share of the iterations, from 0 to 1, over which the weight of the divergence from the prior rises from 0 to 1;
        until then the stopping rule waits (NumPyro).
    batch_size : int or None
        Observations in each gradient, drawn anew without replacement for every pass over the data and weighted up to
        all of them; `None` for all. Networks on the NumPyro engine only. The ELBO is always that of all data.
    local_reparametrisation : bool or None
        Whether layers' values are drawn instead of weights, and the weights' divergence from the prior is in closed
        form; None: where it applies (a mean-field approximation of a network with free weights, on the NumPyro engine).
    init : {"random", "he"}
        Where the mean starts without a `start`: uniform within +-2 in the unconstrained space; or, of a network
        (NumPyro), with free weights as He et al. 2015 have it.
    init_scale : float
        Standard deviation at the start, in every direction (NumPyro); Stan starts at 1.
    trace_parameters : bool
        Whether means and standard deviations are recorded at every evaluation too (NumPyro).
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine.

    Examples
    --------
    >>> ob.AdviSettings(iterations=20_000).draws
    1000
    >>> layers = ob.AdviSettings(gradient_samples=64, local_reparametrisation=True, anneal=0.5)
    """

    iterations: Count = 10_000
    gradient_samples: Count = 10
    elbo_samples: Count = 100
    evaluate_every: Count = 100
    tolerance: NonNegative = 0.001
    draws: Count = 1000
    learning_rate: Positive = 0.02
    schedule: Literal["exponential", "cosine", "constant"] = "exponential"
    anneal: Share = 0.0
    batch_size: Count | None = None
    local_reparametrisation: bool | None = False
    init: Literal["random", "he"] = "random"
    init_scale: Positive = 0.1
    trace_parameters: bool = False
    dtype: Literal["float64", "float32"] = "float64"


@settings
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
        Share of the steps, from 0 to 1, over which the weight of the divergence from the prior rises from 0 to 1; until
        then the stopping rule waits.
    batch_size : int or None
        Observations in each gradient; networks only. `None` for all.
    samples : int
        Draws from q of each gradient.
    local_reparametrisation : bool or None
        Whether layers' values are drawn instead of weights; None: where it applies (a mean-field approximation of a
        network with free weights).
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
    report_draws : int
        Draws of q for the numbers at the end.
    report_permutations : int
        Permutations of each of these draws.
    draws : int
        Draws kept of each fit.
    dtype : {"float64", "float32"}
        Precision.

    Examples
    --------
    >>> ob.SymmetrisedSettings(fits=4, steps=5000).samples
    8
    """

    fits: Count = 1
    steps: Count = 10_000
    learning_rate: Positive = 0.01
    schedule: Literal["constant", "cosine"] = "cosine"
    anneal: Share = 0.0
    batch_size: Count | None = None
    samples: Count = 8
    local_reparametrisation: bool | None = None
    information_draws: Count = 2
    permutations: Count = 10
    sweeps: Count = 15
    rank: Count = 5
    init: Literal["he", "random"] = "he"
    init_scale: Positive = 0.05
    evaluate_every: Count = 500
    elbo_samples: Count = 20
    tolerance: NonNegative = 1e-4
    report_draws: Count = 200
    report_permutations: Count = 50
    draws: Count = 1000
    dtype: Literal["float64", "float32"] = "float64"
