# %% [markdown]
# # A 2PL model whose sign flips
#
# In an item-response model the probability that person $j$ solves item $i$ depends on
# $a_i \theta_j - b_i$. Change the sign of every ability $\theta_j$ *and* of every discrimination $a_i$,
# and nothing has changed: the posterior has two mirror images, and each chain finds one of them. This
# notebook finds the flip in the draws, shows what the usual constraint does to it, and undoes it.
#
# You need to know Stan. Nothing else is assumed.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import onebasin as ob

# %% tags=["parameters"] quick="draws = 400"
draws = 1000  # of each chain, after as many of warmup

# %% [markdown]
# ## The program
#
# 60 persons, 8 items, answers right or wrong, simulated. No item is known to be a good one beforehand,
# so the prior of `a` is symmetric around zero. `symmetry=False` leaves out the search for such symmetries
# before the run.

# %%
print(Path("programs/item_response.stan").read_text())

# %%
target = ob.stan_program("programs/item_response.stan", "programs/item_response.json")
posterior = ob.nuts(target, warmup=draws, draws=draws, seed=1, symmetry=False)
diagnosis = ob.diagnose(posterior)
diagnosis

# %% [markdown]
# The answer is *usable after alignment*. Found in the draws alone: `theta` and `a`, 68 numbers, change
# sign together, and `b` does not. In the words `+-theta:,+-a:` each `+-` says that a variable may change
# sign, and the colon that it does so as a whole.
#
# Chain by chain, the discriminations of four of the items:

# %%
ob.plot.labels(posterior, var_names=["a"], components=4)

# %% tags=["remove-cell"]
assert diagnosis.verdict == "aligned"
assert diagnosis.exchangeable == ("+-theta:,+-a:",)
assert diagnosis.rhat.value > 1.1

# %% [markdown]
# ## What one usually does: fix one sign
#
# The remedy that one reads most often is a constraint on a single item, such as `real<lower=0>` for one
# of the `a`. It is easily tried on the draws: turn every draw so that the chosen item is positive. How
# well it works depends on the item.


# %%
def fix_sign(item):
    """Turn every draw so that one item's discrimination is positive; return all discriminations."""
    a = posterior.posterior["a"].values
    return a * np.sign(a[..., [item]])


fig, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharex=True, sharey=True, layout="constrained")
shown = {
    "as the draws came": posterior.posterior["a"].values,
    "a[0] made positive": fix_sign(0),
    "a[3] made positive": fix_sign(3),
}
for ax, (title, values) in zip(axes, shown.items(), strict=True):
    for item in range(values.shape[-1]):
        color = "crimson" if item == 3 else "steelblue"
        ax.hist(values[..., item].ravel(), bins=80, range=(-7, 7), histtype="step", color=color)
    ax.set(title=title, xlabel="discrimination, one line an item", yticks=[])
    ax.text(0.5, 0.9, "item 3", color="crimson", transform=ax.transAxes)

# %% [markdown]
# Item 0 tells good and bad persons apart, and its sign settles all others. Item 3 happens to tell
# hardly anything about a person: its discrimination is near zero, of either sign. Making *it* positive
# tears the other items in two, and a sampler with that constraint would have two modes again. With real
# data one does not know beforehand which items are good; that is what the model is for.

# %% tags=["remove-cell"]
torn = fix_sign(3)
whole = fix_sign(0)
share = (torn < 0).mean(axis=(0, 1))
assert 0.1 < share[0] < 0.9
assert (whole < 0).mean(axis=(0, 1))[[1, 2, 4, 5, 6, 7]].max() < 0.1

# %% [markdown]
# ## Aligned: all of it decides
#
# Alignment asks each draw which of its two mirror images lies closer to all the others, in every
# ability and every discrimination at once, and leaves out no item and singles out none.

# %%
aligned = ob.align(posterior)
ob.plot.aligned(aligned, var_names=["a"], components=4)

# %%
repaired = ob.diagnose(aligned.posterior)
repaired

# %% tags=["remove-cell"]
assert repaired.verdict == "usable"
assert repaired.rhat.value < 1.05

# %% [markdown]
# ## Which image is which
#
# One thing no algorithm can know: which of the two images is the one where able persons solve items.
# Alignment makes the draws agree with one another, starting from the first; if that one is in the
# "wrong" image, all of them are. Naming it is up to us, and any draw of the image that we want will do
# as the one to start from:

# %%
average = posterior.posterior["a"].mean(("draw", "a_dim_0")).values
print("mean discrimination, chain by chain:", np.round(average, 2))
chain = int(average.argmax())
able = ob.align(posterior, reference_draw=(chain, 0)).posterior.posterior

# %% [markdown]
# The data were simulated, so we can hold the result against the truth.

# %%
simulated = np.array([0.98, 2.19, 1.21, 0.85, 2.31, 1.81, 1.58, 1.58])
low, middle, high = able["a"].quantile((0.05, 0.5, 0.95), ("chain", "draw")).values
fig, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
ax.errorbar(
    range(8), middle, yerr=(middle - low, high - middle), fmt="o", label="median, 90 % interval"
)
ax.plot(range(8), simulated, "x", color="black", label="simulated with")
ax.axhline(0, color="0.7", lw=1)
ax.set(xlabel="item", ylabel="discrimination a", ylim=(-1, 7))
_ = ax.legend(loc="upper left", ncols=2)
# %% tags=["remove-cell"]
assert (able["a"].mean(("chain", "draw")).values > 0).all()
assert ((low < simulated) & (simulated < high)).sum() >= 5
assert high[3] < simulated[3]
assert low[6] > simulated[6]

# %% [markdown]
# Two of the eight are unlucky. Among these 60 persons the answers to item 3 hardly go with ability,
# though it was simulated with 0.85, and those to item 6 go with it better than they were made to.
#
# ## Say it beforehand
#
# With the symmetry declared, the program's own log density is asked before anything is sampled. What
# moves has to be declared whole. `a` alone:

# %%
program, data = "programs/item_response.stan", "programs/item_response.json"
try:
    ob.check_symmetry(ob.stan_program(program, data, symmetry="+-a:"))
except ob.OnebasinError as refusal:
    print(refusal)

# %%
ob.check_symmetry(ob.stan_program(program, data, symmetry="+-theta:,+-a:"))

# %% [markdown]
# ## What to try next
#
# - Tell the model what you know: `a ~ lognormal(0, 1)` with `vector<lower=0>[I] a` has no mirror image.
#   That is a good prior if no item can be wrongly keyed. Give one item inverted answers and see.
# - Two dimensions of ability: then not two images but a whole family of rotations is equal, and no
#   relabelling undoes it. `ob.diagnose` says so. ([finding symmetries](../docs/explanations/finding-symmetries.md))
# - Parts that change places, not signs: [02-label-switching](02-label-switching.ipynb).
# - Both at once, in the units of a network: [01-numpyro-and-stan](01-numpyro-and-stan.ipynb).
