# %% [markdown]
# # A 2PL model whose sign flips
#
# In an item-response model, the probability that a person $j$ solves an item $i$ depends on
# $a_i \theta_j - b_i$. If you change the sign of every ability $\theta_j$ *and* of every
# discrimination $a_i$, this probability stays the same. So the posterior has two mirror images, and
# each chain finds one of them. This notebook finds the flip in the draws, shows what the usual
# constraint does to it, and undoes it.
#
# You need to know Stan, but nothing else.

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
# The data are simulated right and wrong answers of 60 persons to 8 items. We do not know in advance
# which items are good, so the prior of `a` is symmetric around zero. `symmetry=False` skips the
# search for such symmetries before the run.

# %%
print(Path("programs/item_response.stan").read_text())

# %%
target = ob.stan_program("programs/item_response.stan", "programs/item_response.json")
posterior = ob.nuts(target, warmup=draws, draws=draws, seed=1, symmetry=False)
diagnosis = ob.diagnose(posterior)
diagnosis

# %% [markdown]
# The answer is *usable after alignment*. The draws alone show that the 68 entries of `theta` and `a`
# change sign together, and that `b` does not. In the declaration `+-theta:,+-a:`, each `+-` means
# that a variable may change sign, and the colon means that it does so as a whole.
#
# This figure shows the discriminations of four items, chain by chain:

# %%
ob.plot.labels(posterior, var_names=["a"], components=4)

# %% tags=["remove-cell"]
assert diagnosis.verdict == "aligned"
assert diagnosis.exchangeable == ("+-theta:,+-a:",)
assert diagnosis.rhat.value > 1.1

# %% [markdown]
# ## The usual remedy: fix one sign
#
# The most common remedy is a constraint on a single item, such as `real<lower=0>` for one entry of
# `a`. We can try this on the draws, by flipping every draw in which the chosen item is negative. How
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
# Item 0 distinguishes able from less able persons, and its sign fixes all other signs. Item 3 says
# hardly anything about a person: its discrimination is near zero, with either sign. Making *this*
# item positive splits the draws of all others in two, and a sampler with that constraint would have
# two modes again. With real data, we do not know in advance which items are good. The model is there
# to find out.

# %% tags=["remove-cell"]
torn = fix_sign(3)
whole = fix_sign(0)
share = (torn < 0).mean(axis=(0, 1))
assert 0.1 < share[0] < 0.9
assert (whole < 0).mean(axis=(0, 1))[[1, 2, 4, 5, 6, 7]].max() < 0.1

# %% [markdown]
# ## Alignment: all entries decide
#
# For each draw, alignment chooses the mirror image that lies closer to all other draws. It uses all
# abilities and discriminations at once, and no single item decides.

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
# No algorithm can know in which of the two images able persons solve items. Alignment makes all draws
# agree, starting from the first draw. If that draw is in the "wrong" image, all of them end there. We
# have to choose the image, and can start from any draw in the image that we want:

# %%
average = posterior.posterior["a"].mean(("draw", "a_dim_0")).values
print("mean discrimination, chain by chain:", np.round(average, 2))
chain = int(average.argmax())
able = ob.align(posterior, reference_draw=(chain, 0)).posterior.posterior

# %% [markdown]
# The data were simulated, so we can compare the result with the truth.

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
# Two of the eight items deviate by chance. Among these 60 persons, answers to item 3 hardly depend on
# ability, although its simulated discrimination was 0.85. Answers to item 6 depend on ability more
# than simulated.
#
# ## Declaring the symmetry
#
# If you declare the symmetry, onebasin checks it on the program's log density before sampling. All
# variables that move together have to be declared. This is what happens with only `a`:

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
# - Tell the model what you know: `a ~ lognormal(0, 1)` with `vector<lower=0>[I] a` has no mirror
#   image. This is a good prior if no item can have a wrong key. Invert the answers to one item and
#   see what happens.
# - With two dimensions of ability, there are not two images but a whole family of equal rotations,
#   which no relabelling undoes. `ob.diagnose` reports this. ([finding
#   symmetries](../docs/explanations/finding-symmetries.md))
# - [02-label-switching](02-label-switching.ipynb) treats components that swap instead of changing
#   sign.
# - In [01-numpyro-and-stan](01-numpyro-and-stan.ipynb), units of a network do both.
