# %% [markdown]
# # Eight schools: a verdict that is not about labels
#
# Chains disagree for many reasons, and label switching is only one of them. Rubin's eight schools are
# the best-known example of another: a funnel. One call says whether you can use a posterior, why not,
# and what to do. This notebook checks that the verdict distinguishes the two reasons, and that its
# advice helps.
#
# You need to know Stan, but nothing else.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import onebasin as ob

# %% tags=["parameters"] quick="draws, seeds = 500, (1,)"
draws = 1000  # of each chain, after as many of warmup
seeds = (1, 2, 3, 4, 5)

# %% [markdown]
# ## The program that everybody writes first
#
# Eight schools ran a coaching programme. For each school, `y` is the estimated effect in test points
# and `sigma` is its standard error. In the model, every school has its own effect `theta` from a
# normal distribution with unknown mean `mu` and standard deviation `tau`.

# %%
print(Path("programs/schools_centred.stan").read_text())

# %% [markdown]
# A Stan file and a JSON file make a target. `ob.nuts` samples it with the interpreter stanli, which
# needs no compiler. `ob.diagnose` judges the draws.

# %%
settings = {"warmup": draws, "draws": draws}
centred_target = ob.stan_program("programs/schools_centred.stan", "programs/schools.json")
centred = ob.nuts(centred_target, **settings, seed=1)
ob.diagnose(centred)

# %% [markdown]
# Read the output from the top. The answer is *not usable*. The three rows below it say where the
# problem lies: **labels** passed, but **sampler** did not. The cause is a funnel. The evidence is
# that effects become narrow where `tau` is small, and that the divergences lie there. The verdict
# also says what to do.
#
# R-hat alone would have passed: it is close to 1 for every parameter, and far below the limit of 1.1
# that many papers still use.

# %% tags=["remove-cell"]
verdict = ob.diagnose(centred)
assert verdict.verdict == "unusable"
assert verdict.causes[0] == "funnel"
assert not verdict.exchangeable
assert verdict.rhat.value < 1.1

# %% [markdown]
# ## Labels are not the cause
#
# Such models call the eight schools "exchangeable", because they can swap a priori. But this is not a
# symmetry of the posterior, because each school has its own data. If you declare it anyway, onebasin
# finds on the log density that it does not hold, and raises an error before sampling:

# %%
swapped = ob.stan_program(
    "programs/schools_centred.stan", "programs/schools.json", symmetry="theta"
)
try:
    ob.check_symmetry(swapped)
except ob.OnebasinError as refusal:
    print(refusal)

# %% [markdown]
# So there is nothing to align here, and `ob.align` would be the wrong tool.
#
# ## The funnel
#
# This figure shows the funnel. Each point is a draw, with `tau` on a logarithmic axis. Where `tau` is
# small, all effects are close to `mu`, and steps that suit the wide part are too long for the neck.
# The sampler diverges there, so it visits the neck less often than it should.


# %%
def plot_funnel(ax, posterior, title):
    """Draw the first school's effect against the spread, with divergences."""
    theta, tau = posterior.posterior["theta"][..., 0], posterior.posterior["tau"]
    bad = posterior.sample_stats["diverging"].values.astype(bool)
    ax.plot(theta.values[~bad], tau.values[~bad], ".", ms=2, color="0.6", rasterized=True)
    ax.plot(theta.values[bad], tau.values[bad], "x", ms=6, color="crimson")
    ax.set(yscale="log", ylim=(0.02, 100), xlabel="theta[0]", ylabel="tau")
    ax.set_title(f"{title}: {bad.sum()} divergences")


fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
plot_funnel(ax, centred, "centred")

# %% [markdown]
# ## The usual first aid
#
# A higher target acceptance rate makes steps shorter. The verdict says that this "helps less". How
# much less?

# %%
careful_settings = settings | {"target_acceptance": 0.99}
careful = ob.nuts(centred_target, **careful_settings, seed=1)
ob.diagnose(careful)

# %% [markdown]
# There are fewer divergences, but the chains are worse: look at the ESS of `tau` and at E-BFMI. If
# you looked only at divergences, this run would seem better.

# %% tags=["remove-cell"]
assert ob.diagnose(careful).verdict == "unusable"

# %% [markdown]
# ## What the verdict says to do
#
# Use the non-centred parametrisation: sample `eta ~ normal(0, 1)` and compute
# `theta = mu + tau * eta`. This is the same model in different coordinates.

# %%
print(Path("programs/schools.stan").read_text())

# %%
target = ob.stan_program("programs/schools.stan", "programs/schools.json")
non_centred = ob.nuts(target, **settings, seed=1)
ob.diagnose(non_centred)

# %%
runs = {"centred": centred, "centred, 0.99": careful, "non-centred": non_centred}
fig, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharex=True, sharey=True, layout="constrained")
for ax, (name, run) in zip(axes, runs.items(), strict=True):
    plot_funnel(ax, run, name)
    ax.label_outer()

# %% [markdown]
# Now the draws fill the neck. A single divergence may remain. The verdict mentions it, but does not
# reject thousands of good draws because of it.
#
# ## What it would have cost
#
# Do the schools differ at all? We compute the probability that `tau` is below 1, a number that one
# might publish, and repeat everything with other seeds.

# %%
ways = {
    "centred": (centred_target, settings),
    "centred, 0.99": (centred_target, careful_settings),
    "non-centred": (target, settings),
}
small, verdicts = {}, {}
for name, (what, how) in ways.items():
    again = [ob.nuts(what, **how, seed=seed) for seed in seeds]
    verdicts[name] = [ob.diagnose(run).verdict for run in again]
    small[name] = [float((run.posterior["tau"] < 1).mean()) for run in again]
    cells = (f"{p:.2f} {v}" for p, v in zip(small[name], verdicts[name], strict=True))
    print(f"{name:14s} P(tau < 1) =", "   ".join(cells))

# %% [markdown]
# The non-centred runs agree with each other. The result of a centred run depends on how much of the
# neck its chains happened to visit: a tenth of it in one run, and too much of it in another. Nothing
# in the draws shows which. The verdict was the same for every seed, and it was right.

# %% tags=["remove-cell"]
assert set(verdicts["non-centred"]) == {"usable"}
assert set(verdicts["centred"]) | set(verdicts["centred, 0.99"]) == {"unusable"}
assert np.ptp(small["non-centred"]) < 0.06
assert np.ptp(small["centred"] + small["centred, 0.99"]) > 2 * np.ptp(small["non-centred"])

# %% [markdown]
# ## What to try next
#
# - Use data that say more about each school: divide `sigma` by 10. Both programs become usable, and
#   the centred one has about ten times the ESS. Neither parametrisation is always right.
# - In [02-label-switching](02-label-switching.ipynb), labels *are* the reason.
# - `ob.report(centred, "schools.html")` writes one page with all results, which you can share.
# - [May I use this posterior?](../docs/guides/diagnosing.md) explains each check behind an answer.
