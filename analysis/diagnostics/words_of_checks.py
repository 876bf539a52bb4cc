"""Sentences of checks: what each number shows, what that means and what to do. `describe` fills them."""

from __future__ import annotations

from collections.abc import Mapping

NOT_RECORDED = (
    "Statistics that were not recorded cannot be judged: keep the sampler's statistics `diverging`, `tree_depth`, "
    "`energy` and `lp` in the group `sample_stats`, and `max_tree_depth` as an attribute"
)
_LOST = "Find out where the model or the sampler loses it before using these draws"
_STEPS = "Lower `energy_variance`, warm up longer, or use `adjusted=True`"
_CURVED = "the integrator could not follow the posterior's curvature, so the draws may be biased"
_ACCEPT = "Raise the target acceptance rate (0.95 or 0.99), or reparametrise"
OTHERS = "Compare their predictions with those of MCMC by `compare`"
_DISAGREE = "The chains' log densities disagree (R-hat of `lp` {rhat:rhat}; means by chain {means}"
APART = "chain {lowest} lies {gap:.3g} ± {error:.1g} nats below chain {highest}"
_ABOVE = "R-hat is above {limit:g} for {bad} of {count} parameters (worst {rhat:rhat}, `{name}`)"

CHECKS: Mapping[str, str | tuple[str, ...]] = {
    "own words": ("{fact}", "[[{remedy}]]"),
    # What numbers show
    "nothing varies": (
        "Nothing varies",
        "every draw of {names:names} is the same, so that R-hat and ESS have nothing to judge",
        "Look at variables that were inferred, or find out why the sampler never moved",
    ),
    "some not finite": (
        "{names:names} ({count:count parameter}) is finite in some draws and not in others (`{name}` is not in {bad} "
        "of {draws})",
        "no number is defined for it",
        "Find out why the model produces such draws",
    ),
    "no mean": (
        "Tails of {names:names} are too heavy for a mean or an sd (k-hat of the draws {khat:.2f})",
        "these need not exist, and change from run to run",
        "Use the median and intervals",
    ),
    "no sd": (
        "Tails of {names:names} are too heavy for an sd (k-hat of the draws' squares {khat:.2f})",
        "it need not exist, and changes from run to run",
        "Use intervals",
    ),
    "nothing sampled": (
        "Nothing was sampled",
        "the draws vary while the log density never does, and there are no energies, as in a program without "
        "parameters. Divergences, trees and energies do not apply, and independent draws need none",
        "",
    ),
    "never moved": (
        "{chains:chains} never moved",
        "the step size or the starting point is hopeless there",
        "Run with other starting points, a longer warmup or a higher target acceptance rate, and do not use these "
        "draws",
    ),
    "members": (
        "R-hat does not apply",
        "members of an ensemble are trained one by one, and no number here tells how far they are from the posterior",
        OTHERS,
    ),
    "one chain": ("R-hat needs at least two chains, and there is one", "Run more"),
    "rhat slightly": (
        "R-hat is slightly above {limit:g} for {bad} of {count} parameters (worst {rhat:rhat}, `{name}`)",
        "Draw more if you need them precisely",
    ),
    "rhat besides": (
        "R-hat is above {limit:g} for {bad} of {count} quantities that are not used for the verdict (worst "
        "{rhat:rhat}, `{name}`)"
    ),
    "rhat": (
        _ABOVE,
        "the chains disagree",
        "Do not use the means; run a longer warmup and more draws, or reparametrise",
    ),
    "rhat of a symmetry": (
        _ABOVE,
        "the chains disagree",
        "The target declares a symmetry, so that these may be equal modes under other names: judge by label-free "
        "quantities (`lp`, predictions), or use a parametrisation without it (ordered biases, unit-norm weights)",
    ),
    "cannot be computed": (
        "{what} cannot be computed for {names:names} ({count:count parameter})",
        "Look at these draws, run more of them, or rescale the parameter",
    ),
    "statistic not finite": (
        "The {what} is not finite in {bad} of {draws} draws (by chain {per_chain:counts})",
        _LOST,
    ),
    "not recorded": ("{what} not recorded", NOT_RECORDED),
    "lp constant": (
        "The log density `lp` is the same in every draw and tells nothing of the chains",
        "Record the one that was sampled from",
    ),
    "lp explained": (
        f"{_DISAGREE}), by no more than their Monte Carlo errors explain",
        "Draw more",
    ),
    "lp close": f"{_DISAGREE}), by less than a nat",
    "lp of bounds": (
        f"{_DISAGREE}), by the Jacobian of bounds that is in `lp`; the density of the parameters does not"
    ),
    "lp unlike": (
        f"{_DISAGREE})",
        f"{APART}, in a mode of another height, or has not arrived",
        "Run longer, or start from other points",
    ),
    "lp slow": (
        "The log density `lp` has {ess:digits 0} effective draws of {draws}, fewer than {limit:.0f}",
        "Draw more",
    ),
    "ess low": (
        "{word} ESS is below {limit:.0f}; the smallest is {ess:digits 0} of {draws} draws "
        "(`{name}`)",
        "{use} are not reliable yet",
        "Draw more, or reparametrise",
    ),
    "diverged": (
        "{count} of {draws} draws diverged ({share:percent}; by chain {per_chain:counts})",
        _CURVED,
        _ACCEPT,
    ),
    "trees cut": (
        "{count} of {draws} draws reached the maximal tree depth[[ {depth}]] ({share:percent})",
        "trajectories were cut short, which costs time and ESS",
        "Raise `max_tree_depth`, or reparametrise",
    ),
    "bfmi low": (
        "E-BFMI is below {limit:g} in {chains:chains} ({values})",
        "the energy changes too slowly for the tails to be explored",
        "Run a longer warmup, or reparametrise",
    ),
    "bfmi constant": (
        "E-BFMI cannot be computed in {chains:chains}, whose energy never changes",
        "Record the energies of the sampler",
    ),
    # Steps of unadjusted dynamics, and fits
    "energy errors not recorded": (
        "Energy errors were not recorded",
        "Keep `energy_variance` in `sample_stats`",
    ),
    "steps lost": (
        "Unadjusted steps with an energy variance of {variance:.2g} per parameter",
        "the integrator does not follow the density, and the draws are not those of the posterior",
        _STEPS,
    ),
    "steps unknown": (
        "Unadjusted steps with an energy variance of {variance:.2g} per parameter",
        "the draws have a bias of the step size, which neither R-hat nor ESS shows",
        "Compare what matters with a run with a smaller `energy_variance`, `adjusted=True` or `nuts`",
    ),
    "steps biased": (
        "By the gradients of the log density at the draws [[the mean of `{mean}` is off by at least {shift:.2g} "
        "standard deviations]][[{and_}]][[the variance of `{variable}` is off by at least {spread:.0%}]]",
        "the steps are too long for the density, or the chains were still on their way to it",
        _STEPS,
    ),
    "steps open": (
        "Unadjusted steps with an energy variance of {variance:.2g} per parameter, and by the gradients at the draws "
        "no mean is off by more than {most_shift:.2g} standard deviations, no variance by more than {most_spread:.0%}",
        "a bias of the step size is not excluded, which neither R-hat nor ESS shows",
        "Take more draws, which narrow these bounds, or compare what matters with `adjusted=True` or `nuts`",
    ),
    "optimiser stopped": (
        "The optimiser stopped before its criterion was met",
        "Allow more iterations",
    ),
    "elbo": ("The last ELBO is {elbo}", "the fit has failed", "Use a smaller step size"),
    "khat ratios": (
        "{bad:count importance ratio} `lp - log_q` of the draws {verb} not finite, so k-hat cannot be computed",
        "draws fall outside the posterior's support or overflow",
        "",
    ),
    "khat not computed": (
        "k-hat was not computed",
        "it needs `lp` and `log_q` of at least {least} draws, and largest ratios that are not all equal",
        "",
    ),
    "khat": (
        "Pareto k-hat is {khat:digits 2}, above {limit:digits 2}",
        "the approximation misses part of the posterior",
        "Compare its intervals with those of MCMC before using them",
    ),
    "khat of distinct": (
        "Pareto k-hat of the {distinct} distinct draws is {khat:digits 2}, above {limit:digits 2}, where draws were "
        "resampled",
        "the approximation misses part of the posterior",
        "Run it again without resampling (CmdStan: `psis_resample=0`; cmdstanpy: `psis_resample=False`), which gives "
        "the k-hat of all draws",
    ),
}
"""Sentences of findings, meanings and remedies, by kind."""
