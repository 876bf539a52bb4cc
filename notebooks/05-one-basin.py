# %% [markdown]
# # Do my chains share one basin?
#
# The posterior of a network has many copies of every mode, one for each order and sign of its hidden
# units. Alignment gives every draw the labels of one copy. If chains differ only in labels, all draws
# then lie in one basin, and averages over chains are meaningful. This notebook shows how to tell.
#
# You need to know MCMC, but nothing else.

# %%
import numpy as np

import onebasin as ob

# %% tags=["parameters"] quick="draws, pairs, full = 200, 10, False"
draws = 1000  # draws of each of four chains
pairs = 40  # pairs of draws between which the loss is followed
full = True  # whether the sizes are those that the text describes

# %% [markdown]
# ## Three hidden units, four chains
#
# The data are sixty noisy points of $\sin 4x$. A network with three tanh units has
# $3! \cdot 2^3 = 48$ equal modes, because its units can have any order and each unit either sign.

# %%
rng = np.random.default_rng(3)
x = rng.uniform(-1, 1, 60)[:, None]
y = np.sin(4 * x) + 0.1 * rng.standard_normal(x.shape)
prior = ob.networks.NormalPrior(weight_scale=(3.0, 1.5), bias_scale=(2.0, 1.0))
network = ob.networks.Network(1, (3,), 1, "tanh")
model = ob.networks.BayesianNetwork(network, ob.networks.Gaussian(noise_sd=0.1), prior)
target = model.condition(x, y, name="three units")


def sample(seed):
    return ob.hmc(
        target,
        warmup=1000 if full else 200,
        draws=draws,
        trajectory_length=3.0,
        target_acceptance=0.9,
        seed=seed,
    )


posterior = sample(seed=2)
ob.diagnose(posterior)

# %% [markdown]
# ## First answer: the verdict
#
# R-hat rejects the draws as sampled and accepts them after alignment. `ob.align` matches the units of
# every draw with those of a reference, in order and sign. All weights of a unit move together.

# %%
alignment = ob.align(posterior)
ob.plot.aligned(alignment, var_names=["b1", "W2"])

# %% tags=["remove-cell"]
if full:
    found = ob.diagnose(posterior)
    assert found.verdict == "aligned", found
    assert found.aligned.raw.rhat.value > 2
    assert found.aligned.aligned.rhat.value < 1.01

# %% [markdown]
# ## Second answer: barriers
#
# R-hat compares marginal distributions. Barriers look at the space between the chains. Take two draws
# from different chains and follow the loss on the straight line between them. In a convex basin, the
# loss does not rise. Between draws as sampled it rises steeply, because a network half-way between
# two labellings fits nothing. After matching the units of the second draw with those of the first,
# the barrier is gone.

# %%
barriers = ob.networks.barriers(posterior, pairs=pairs)
print(barriers.sentence)
ob.plot.barriers(barriers)

# %% tags=["remove-cell"]
before, after = barriers.as_they_came.height, barriers.aligned.height
assert np.median(before) > 10 * np.median(after)
if full:
    assert np.median(before) > 50
    assert np.median(after) < 0.2

# %% [markdown]
# So these chains share one basin, up to relabelling.
#
# ## A run that does not
#
# The model and the data are the same, but the seed is different.

# %%
other = sample(seed=3)
ob.diagnose(other)

# %% [markdown]
# The chains have settled in two modes, and no relabelling turns one into the other. Which chain ends
# in which mode depends on rounding, and so on the processor. Alignment cannot join the two modes, and
# barriers between them remain. Do not average over these chains, whether aligned or not.

# %%
remaining = ob.networks.barriers(other, pairs=pairs)
print(remaining.sentence)

# %% tags=["remove-cell"]
if full:
    diagnosis = ob.diagnose(other)
    assert diagnosis.verdict == "unusable"
    assert diagnosis.causes[0] == "modes"
    assert len(diagnosis.aligned.basins) == 2
    assert np.quantile(remaining.aligned.height, 0.9) > 20

# %% [markdown]
# ## What to try next
#
# - Use eight units. Chains then mix across labels, the units can no longer be distinguished, and the
#   verdict is "use only label-free quantities".
# - [Comparing posteriors](04-comparing-posteriors.ipynb) brings approximations into the labels of a
#   reference.
# - [Multimodal posteriors](../docs/guides/modes.md) finds every mode and its weight.
