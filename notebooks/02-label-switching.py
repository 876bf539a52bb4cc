# %% [markdown]
# # Label switching in a Stan mixture: found, and repaired in one line
#
# You wrote a mixture, every chain looks fine on its own, and R-hat is 1.5. Most likely nothing is wrong
# but the names: what one chain calls component 1, another calls component 2. This notebook finds that
# out from the draws, repairs it without running anything again, and shows how far to trust the repair.
#
# You need to know Stan. Nothing else is assumed.

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
# Two Gaussian components. Nothing tells them apart: swap the two entries of `mu` and of `sigma`, and
# turn `theta` into `1 - theta`, and the density is the same.

# %%
program = Path("programs/mixture.stan")
print(program.read_text())

# %% [markdown]
# The 200 data are simulated, so the truth is known: 40 % are from a normal distribution around -2.7 and
# 60 % from one around 2.8, both with standard deviation 1. `symmetry=False` leaves out the search for
# interchangeable components before the run, as in a file from another program.

# %%
target = ob.stan_program(program, "programs/mixture.json")
posterior = ob.nuts(target, warmup=draws, draws=draws, seed=1, symmetry=False)

# %% [markdown]
# ## Found
#
# Before any number: may this posterior be used?

# %%
diagnosis = ob.diagnose(posterior)
diagnosis

# %% [markdown]
# Nobody told it about components. It found in the draws alone that `mu`, `sigma` and `theta` move
# together, and that `theta` turns into `1 - theta` when they do. So the answer is not "unusable" but
# *usable after alignment*: chains disagree about names, and about nothing else. The numbers in its table
# are those with labels sorted.
#
# This is what it saw, one colour a component as the chain named it. One chain has the colours swapped:

# %%
ob.plot.labels(posterior)

# %% [markdown]
# Within a chain nothing switches, and a longer run would not help. What does harm is averaging over
# chains, which is what every table of a posterior does:

# %%
mu = posterior.posterior["mu"]
print("mean of mu, chain by chain:", *(np.round(m, 2) for m in mu.mean("draw").values))
print("mean of mu, all chains:    ", np.round(mu.mean(("chain", "draw")).values, 2))

# %% tags=["remove-cell"]
assert diagnosis.verdict == "aligned"
assert diagnosis.exchangeable == ("mu,sigma,1-theta",)
assert diagnosis.rhat.value > 1.1

# %% [markdown]
# ## Repaired in one line

# %%
aligned = ob.align(posterior)
aligned

# %%
ob.plot.aligned(aligned, rows=2)

# %% [markdown]
# Every draw has the same labels now. Only names have changed: `lp`, predictions and everything else
# that has no labels are what they were. `aligned.posterior` is a posterior like any other, for
# `ob.save`, for ArviZ, and for another look:

# %%
repaired = ob.diagnose(aligned.posterior)
repaired

# %% [markdown]
# The truth was 60 % around 2.8 and 40 % around -2.7, with `theta` the weight of the first component.
# (Which one is called the first is settled by the first draw, and means nothing.)

# %% tags=["remove-cell"]
assert repaired.verdict == "usable"
assert repaired.rhat.value < 1.03
means = np.sort(aligned.posterior.posterior["mu"].mean(("chain", "draw")).values)
assert np.abs(means - [-2.7, 2.8]).max() < 0.2

# %% [markdown]
# ## Say it beforehand
#
# What is found in draws is a guess, if a good one: it cannot know the program. Declare the symmetry when
# the target is made, in the words that the diagnosis gave, and the program's own log density is asked
# before anything is sampled.

# %%
declared = ob.stan_program(program, "programs/mixture.json", symmetry="mu,sigma,1-theta")
ob.check_symmetry(declared)

# %% [markdown]
# Had `sigma` been forgotten, we would have been told, with the change that it makes:

# %%
try:
    forgotten = ob.stan_program(program, "programs/mixture.json", symmetry="mu,1-theta")
    ob.check_symmetry(forgotten)
except ob.OnebasinError as refusal:
    print(refusal)

# %% [markdown]
# ## The trap: everything looks converged
#
# Now move the components closer, to about -0.8 and 0.9. The chains can cross from one labelling to the
# other, and do so all the time.

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
# R-hat is fine as the draws came, and rightly: all chains explore both labellings alike. So the two
# means of `mu` are nearly the same number, the average over *both* components, and neither component is
# there. No convergence diagnostic can see that. The verdict does, because it asks whether sorting gains
# more than it would gain on noise.
#
# With components as close as these, aligned means are still a rule's answer: each draw goes to the
# labelling that it fits best, and where components overlap the best is not always right. What has no
# labels needs no rule at all: predictions, densities, `lp`, the larger of the two means.

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
# - The remedy of the textbooks, `ordered[2] mu` in the program. Where components overlap it cuts through
#   the posterior; compare its means with the aligned ones here.
# - Other seeds: `ob.diagnose(ob.nuts(target, seed=2))`. Once in eight times all four chains choose the same
#   labelling by chance; then there is nothing to find, and the answer is *usable*.
# - Your own posterior: `ob.diagnose("run.nc")` takes files of CmdStan, ArviZ and others as they are
#   ([07-bring-your-own-posterior](07-bring-your-own-posterior.ipynb)).
# - A model in which signs switch, not places: [03-sign-flips](03-sign-flips.ipynb).
# - What can be declared, and how far alignment is right where parts overlap, in numbers:
#   [label switching](../docs/guides/label-switching.md).
