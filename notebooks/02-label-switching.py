# %% [markdown]
# # Label switching in a Stan mixture: found, and fixed in one line
#
# You wrote a mixture, every chain looks fine on its own, and R-hat is 1.5. Most likely only the
# labels differ: the component that one chain calls 1 is component 2 in another chain. This notebook
# detects this from the draws, fixes it without sampling again, and shows how far you can trust the
# result.
#
# You need to know Stan, but nothing else.

# %%
import json
from pathlib import Path

import numpy as np

import onebasin as ob

# %% tags=["parameters"] quick="draws = 250"
draws = 1000  # of each chain, after as many of warmup

# %% [markdown]
# ## The program
#
# The program has two Gaussian components that nothing distinguishes. If you swap the two entries of
# `mu` and of `sigma` and replace `theta` by `1 - theta`, the density stays the same.

# %%
program = Path("programs/mixture.stan")
print(program.read_text())

# %% [markdown]
# The 200 data points are simulated, so the truth is known: 40 % come from a normal distribution with
# mean -2.7 and 60 % from one with mean 2.8, both with standard deviation 1. `symmetry=False` skips
# the search for interchangeable components before the run, so the result is like a file from another
# program.

# %%
target = ob.stan_program(program, "programs/mixture.json")
posterior = ob.nuts(target, warmup=draws, draws=draws, seed=1, symmetry=False)

# %% [markdown]
# ## Found
#
# The first question is whether this posterior can be used:

# %%
diagnosis = ob.diagnose(posterior)
diagnosis

# %% [markdown]
# Nobody told onebasin about components. It found in the draws alone that `mu`, `sigma` and `theta`
# move together, and that `theta` then turns into `1 - theta`. So the answer is not "unusable" but
# *usable after alignment*: the chains disagree only about labels. The table shows the numbers after
# alignment.
#
# This figure shows the draws, with one colour for each component as labelled by the chain. In one
# chain the colours are swapped:

# %%
ob.plot.labels(posterior)

# %% [markdown]
# Within a chain nothing switches, and a longer run would not help. The harm comes from averaging over
# chains, as every posterior table does:

# %%
mu = posterior.posterior["mu"]
print("mean of mu, chain by chain:", *(np.round(m, 2) for m in mu.mean("draw").values))
print("mean of mu, all chains:    ", np.round(mu.mean(("chain", "draw")).values, 2))

# %% tags=["remove-cell"]
assert diagnosis.verdict == "aligned"
assert diagnosis.exchangeable == ("mu,sigma,1-theta",)
assert diagnosis.rhat.value > 1.1

# %% [markdown]
# ## Fixed in one line

# %%
aligned = ob.align(posterior)
aligned

# %%
ob.plot.aligned(aligned, rows=2)

# %% [markdown]
# Now all draws have the same labels. Only labels have changed: `lp`, predictions and all other
# label-free quantities stay the same. You can use `aligned.posterior` like any other posterior, with
# `ob.save`, with ArviZ, or for another diagnosis:

# %%
repaired = ob.diagnose(aligned.posterior)
repaired

# %% [markdown]
# In the simulation, 60 % were around 2.8 and 40 % around -2.7. `theta` is the weight of the first
# component. (The first draw decides which component comes first, so the order means nothing.)

# %% tags=["remove-cell"]
assert repaired.verdict == "usable"
assert repaired.rhat.value < 1.03
means = np.sort(aligned.posterior.posterior["mu"].mean(("chain", "draw")).values)
assert np.abs(means - [-2.7, 2.8]).max() < 0.2

# %% [markdown]
# ## Declaring the symmetry
#
# A symmetry found in draws is only a good guess, because the draws do not contain the program. If you
# declare the symmetry with the target, as the diagnosis printed it, onebasin checks it on the
# program's log density before sampling.

# %%
declared = ob.stan_program(program, "programs/mixture.json", symmetry="mu,sigma,1-theta")
ob.check_symmetry(declared)

# %% [markdown]
# If we forget `sigma`, an error reports by how much the log density changes:

# %%
try:
    forgotten = ob.stan_program(program, "programs/mixture.json", symmetry="mu,1-theta")
    ob.check_symmetry(forgotten)
except ob.OnebasinError as refusal:
    print(refusal)

# %% [markdown]
# ## The trap: everything looks converged
#
# Now we move the components closer together, to about -0.8 and 0.9. The chains can cross from one
# labelling to the other, and do so all the time.

# %%
y = np.array(json.loads(Path("programs/mixture.json").read_text())["y"])
closer = np.where(y < 0, y + 1.9, y - 1.9)
overlapping = ob.stan_program(program, {"N": len(y), "y": closer}, symmetry="mu,sigma,1-theta")
mixing = ob.nuts(overlapping, warmup=draws, draws=draws, seed=1)
verdict = ob.diagnose(mixing)
verdict

# %%
raw = ob.diagnose(mixing, align=False)
means = mixing.posterior["mu"].mean(("chain", "draw")).values
print(f"worst R-hat as the draws came: {raw.rhat.value:.3f}")
print("mean of mu as the draws came: ", np.round(means, 2))

# %%
ob.plot.aligned(mixing, var_names=["mu"])

# %% [markdown]
# R-hat of the draws as sampled is fine, and rightly so: all chains explore both labellings equally.
# But then the two means of `mu` are nearly equal. Each is the average over *both* components and
# describes neither. No convergence diagnostic can see this. The verdict can, because it tests whether
# sorting the labels gains more than it would gain on noise.
#
# With components as close as these, aligned means depend on the rule. Each draw gets the labelling
# that fits it best, and if components overlap this is not always the right one. Label-free quantities
# need no rule: predictions, densities, `lp`, or the larger of the two means.

# %% tags=["remove-cell"]
gap = float(np.diff(np.sort(means))[0])
apart = ob.align(mixing).posterior.posterior["mu"].mean(("chain", "draw")).values
if draws >= 1000:  # shorter chains have not seen both labellings often enough
    assert verdict.verdict == "aligned"
    assert raw.rhat.value < 1.05
    assert gap < 0.8 < abs(apart[0] - apart[1])

# %% [markdown]
# ## What to try next
#
# - Use the textbook remedy, `ordered[2] mu` in the program. If components overlap, the order cuts
#   through the posterior. Compare its means with the aligned ones here.
# - Try other seeds: `ob.diagnose(ob.nuts(target, seed=2))`. With probability 1/8, all four chains
#   choose the same labelling by chance. Then there is nothing to find, and the answer is *usable*.
# - Diagnose your own posterior: `ob.diagnose("run.nc")` reads files from CmdStan, ArviZ and other
#   tools ([07-bring-your-own-posterior](07-bring-your-own-posterior.ipynb)).
# - [03-sign-flips](03-sign-flips.ipynb) has a model in which signs switch.
# - [Label switching](../docs/guides/label-switching.md) explains declarations, and how reliable
#   alignment is if components overlap.
