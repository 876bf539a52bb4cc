# %% [markdown]
# # Eight schools: a verdict that is not about labels
#
# Chains disagree for many reasons, and switching labels is only one of them. Rubin's eight schools
# are the best-known case of another: a funnel. One call says whether a posterior may be used, why not,
# and what to do about it. Here we check that it tells the two apart, and that following it pays.
#
# You need to know Stan. Nothing else is assumed.

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
# Eight schools ran a coaching programme. For each, `y` is the estimated effect in points of a test and
# `sigma` its standard error. The model gives every school an effect `theta` of its own, from a normal
# distribution whose mean `mu` and spread `tau` are unknown.

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
# Read it from the top. The answer is *not usable*. The three rows below it say where the trouble lies:
# **labels** passed, **sampler** did not. The cause has a name, a funnel, with its evidence: the effects
# become narrow where `tau` is small, and the divergences lie there. And there is something to do.
#
# Mind what would have passed here: R-hat of every parameter is close to 1, and far below the 1.1 that
# many papers still take for convergence.

# %% tags=["remove-cell"]
verdict = ob.diagnose(centred)
assert verdict.verdict == "unusable"
assert verdict.causes[0] == "funnel"
assert not verdict.exchangeable
assert verdict.rhat.value < 1.1

# %% [markdown]
# ## It is not labels, and cannot be
#
# "Exchangeable" is a word of these models: a priori the eight schools may change places. That is no
# symmetry of the posterior, because each school has data of its own. If somebody declares it all the
# same, the program's own log density says no, before anything is sampled:

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
# This is what the verdict speaks of. Each point is a draw, with `tau` on a logarithmic axis. Where `tau`
# is small, all effects are squeezed towards `mu`, and steps that suit the wide part are too long for the
# neck. The sampler stumbles there, so it goes there less often than it should.


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
# A higher target acceptance rate makes steps shorter. The verdict says that it "helps less". How much
# less?

# %%
careful_settings = settings | {"target_acceptance": 0.99}
careful = ob.nuts(centred_target, **careful_settings, seed=1)
ob.diagnose(careful)

# %% [markdown]
# Fewer divergences, and worse chains: look at the effective draws of `tau`, and at E-BFMI. Had
# divergences been the only thing looked at, this would have seemed better.

# %% tags=["remove-cell"]
assert ob.diagnose(careful).verdict == "unusable"

# %% [markdown]
# ## What it says to do
#
# Non-centre: sample `eta ~ normal(0, 1)` and compute `theta = mu + tau * eta`. It is the same model in
# other coordinates.

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
# The neck is filled at last. A stray divergence may remain; the verdict mentions it, and does not
# condemn thousands of good draws for it.
#
# ## What it would have cost
#
# Do the schools differ at all? Take the probability that `tau` is below 1, a number that one might
# publish, and run everything again with other seeds.

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
# The non-centred runs agree with one another. The centred ones give whatever the chains happened to
# find of the neck: a tenth of it in one run, too much of it in another, and nothing in the draws
# says which. The verdict was the same for every seed, and right.

# %% tags=["remove-cell"]
assert set(verdicts["non-centred"]) == {"usable"}
assert set(verdicts["centred"]) | set(verdicts["centred, 0.99"]) == {"unusable"}
assert np.ptp(small["non-centred"]) < 0.06
assert np.ptp(small["centred"] + small["centred, 0.99"]) > 2 * np.ptp(small["non-centred"])

# %% [markdown]
# ## What to try next
#
# - Data that say more about each school: divide `sigma` by 10. Both programs become usable, and the
#   centred one gives about ten times as many effective draws. Neither way of writing is *the* right one.
# - A case where labels *are* the reason: [02-label-switching](02-label-switching.ipynb).
# - A page with all of it, to send to somebody: `ob.report(centred, "schools.html")`.
# - What decides an answer, check by check: [May I use this posterior?](../docs/guides/diagnosing.md)
