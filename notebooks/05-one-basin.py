# %% [markdown]
# # One basin, and when there is none
#
# The posterior of a network has every mode many times over, once for each order of its hidden
# units. Alignment gives every draw the labels of one mode: it brings them into one basin. This
# notebook looks at how that is done, at the mountains between draws that it removes, and at two
# cases in which it must not be believed.
#
# You need to know MCMC. Nothing else is assumed.

# %%
import numpy as np
import pandas as pd

import onebasin as ob

# %% tags=["parameters"] quick="draws, pairs, full = 200, 10, False"
draws = 1000  # of each of four chains
pairs = 40  # of draws, between which the loss is followed
full = True  # whether the sizes are those that the text speaks of

# %% [markdown]
# ## Three hidden units, four chains
#
# Sixty noisy points of $\sin 4x$, and a network with three tanh units. Its posterior has $3! \cdot
# 2^3 = 48$ equal modes: the units in every order, each with either sign.

# %%
rng = np.random.default_rng(3)
x = rng.uniform(-1, 1, 60)[:, None]
y = np.sin(4 * x) + 0.1 * rng.standard_normal(x.shape)
prior = ob.networks.NormalPrior(weight_scale=(3.0, 1.5), bias_scale=(2.0, 1.0))


def sample(units, seed):
    network = ob.networks.Network(1, (units,), 1, "tanh")
    model = ob.networks.BayesianNetwork(network, ob.networks.Gaussian(noise_sd=0.1), prior)
    target = model.condition(x, y, name=f"{units} units")
    settings = ob.Hmc(
        warmup=1000 if full else 200, draws=draws, trajectory_length=3.0, target_acceptance=0.9
    )
    return ob.infer(target, settings, seed=seed)


posterior = sample(3, seed=2)
ob.diagnose(posterior)

# %% [markdown]
# ## Alignment
#
# R-hat condemns the draws as they came, and passes them in one labelling. `align` matches every
# draw's units with those of a reference, which it finds by iteration: order and signs at once, the
# whole unit with all of its weights.

# %%
alignment = ob.align(posterior)
ob.plot.aligned(alignment, var_names=["b1", "W2"])

# %% [markdown]
# How much had to be moved is a number of **transpositions**: how many exchanges of two units bring
# a draw into the common labelling. Each chain has its own:

# %%
counts = ob.networks.transpositions(alignment).total  # (chain, draw)
pd.DataFrame(
    [[int((chain == number).sum()) for number in range(3)] for chain in counts],
    index=pd.Index(range(len(counts)), name="chain"),
    columns=pd.Index(range(3), name="draws by transpositions"),
)

# %% tags=["remove-cell"]
found = ob.diagnose(posterior)
if full:
    assert found.verdict == "aligned", found
    assert found.aligned.raw.rhat.value > 2
    assert found.aligned.aligned.rhat.value < 1.01
    assert all(len(np.unique(chain)) == 1 for chain in counts)
    assert len(np.unique(counts)) > 1

# %% [markdown]
# No chain ever changed its labels. Each has found the same mode, under labels of its own.
#
# ## The mountains between draws
#
# Take two draws of different chains and walk from one to the other in a straight line. If the two
# sat in one convex basin, the loss would not rise on the way. As they came, it rises steeply:
# half-way between two labellings lies a network that fits nothing. With the second draw's units
# matched to the first's, the mountain is gone.

# %%
barriers = ob.networks.barriers(posterior, pairs=pairs)
print(barriers.sentence)

# %%
ob.plot.barriers(barriers)

# %% tags=["remove-cell"]
before, after = barriers.as_they_came.height, barriers.aligned.height
assert np.median(before) > 10 * np.median(after)
if full:
    assert np.median(before) > 50
    assert np.median(after) < 0.2

# %% [markdown]
# So the posterior of this network *is* one basin, modulo relabelling. That is a finding, no law, as
# the next two sections show.
#
# ## When it does not work: another mode
#
# The same model, the same data, another seed.

# %%
other = sample(3, seed=3)
ob.diagnose(other)

# %% [markdown]
# Two chains have settled in a mode that no relabelling makes of the others': another function,
# eight nats lower. Alignment cannot join them, and the barriers say so. No average over these
# chains means anything, aligned or not.

# %%
unlike = ob.networks.barriers(other, pairs=pairs)
print(unlike.sentence)

# %% tags=["remove-cell"]
if full:
    diagnosis = ob.diagnose(other)
    assert diagnosis.verdict == "unusable"
    assert diagnosis.causes[0] == "modes"
    assert sorted(len(basin) for basin in diagnosis.aligned.basins) == [2, 2]
    assert np.median(unlike.aligned.height) > 20

# %% [markdown]
# ## When it does not work: too many units
#
# Eight units where three would do. The chains mix well, across labels too, but their units can no
# longer be told apart.

# %%
wide = sample(8, seed=1)
crowded = ob.diagnose(wide)
crowded

# %% [markdown]
# `align` would do its work all the same, and every aligned R-hat is fine: whatever the draws are,
# matching them with a reference brings them closer to it. So the gain has to be held against what
# alignment gains on draws with nothing to find: here on the same draws with their units mixed among
# draws.

# %%
switching = {"3 units": found.aligned.switching, "8 units": crowded.aligned.switching}
pd.DataFrame(
    {
        "variance left": {name: each.ratio for name, each in switching.items()},
        "left of draws with nothing to find": {
            name: each.noise_ratio for name, each in switching.items()
        },
    }
).round(2)

# %% [markdown]
# With three units alignment leaves far less than it leaves of noise. With eight it makes most of
# what it finds, and the verdict is "use only label-free quantities". Barriers fall here too, but
# remain:

# %%
ob.plot.barriers(ob.networks.barriers(wide, pairs=pairs))

# %% tags=["remove-cell"]
if full:
    assert crowded.verdict == "invariant", crowded
    assert crowded.aligned.aligned.rhat.value < 1.02
    few, many = switching["3 units"], switching["8 units"]
    assert few.ratio < 0.25 * few.noise_ratio
    assert many.ratio > 0.6 * many.noise_ratio
    remaining = np.median(ob.networks.barriers(wide, pairs=pairs).aligned.height)
    assert remaining > 5 * np.median(barriers.aligned.height)

# %% [markdown]
# ## What to try next
#
# - `ob.align(posterior, reference=alignment)` brings another posterior into the same labels: that
#   is how [Comparing posteriors](04-comparing-posteriors.ipynb) sets approximations beside the
#   truth.
# - `ob.approximations.fit_gaussian(alignment.posterior, "full")` makes one Gaussian of one basin. Does it predict
#   better here than in [Comparing posteriors](04-comparing-posteriors.ipynb)?
# - Order the biases, `ob.networks.Parametrisation(biases="ordered")`, and sample again: the symmetry is gone
#   from the model. Do the chains mix better or worse?
