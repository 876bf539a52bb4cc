# %% [markdown]
# # Which approximation predicts like NUTS?
#
# A network's hidden units can swap, so its posterior has many copies of every mode. Some
# approximations ignore this, some break the symmetry in the model, some average over it, and some
# remove it from draws afterwards. This notebook compares their predictions with those of NUTS on one
# small problem. [The guide](../docs/guides/which-remedy.md) repeats the comparison on three data
# sets.
#
# You need to know MCMC and variational inference.

# %%
import onebasin as ob

# %% tags=["parameters"] quick="draws, iterations, epochs, full = 100, 300, 100, False"
draws = 500  # draws of each chain of NUTS, after as many of warmup
iterations = 5000  # iterations of each variational fit, and of the distillation
epochs = 1000  # epochs of each network of the ensemble
full = True  # whether the sizes are those that the text describes

# %% [markdown]
# ## The problem
#
# The data are a scaled, noisy sinc function, with 128 points for training and 128 for testing (Kurle
# et al. 2021). A network of ten ReLU units has $10!$ equal modes.

# %%
data = ob.networks.load_data("sinc", seed=1)


def network(biases):
    model = ob.networks.BayesianNetwork(
        ob.networks.Network(1, (10,), 1, "relu"),
        ob.networks.Gaussian(),
        ob.networks.NormalPrior((3.0, 1.0), (3.0, 1.0)),
        ob.networks.Parametrisation(biases=biases),
    )
    return model.condition(data.x, data.y, name=f"{biases} biases")


target = network("free")

# %% [markdown]
# ## The reference
#
# The reference is four chains of NUTS. Their units swap and cannot be distinguished, so the verdict
# is to use only label-free quantities. Predictions are label-free.

# %%
nuts = ob.nuts(target, warmup=draws, draws=draws, seed=1)
ob.diagnose(nuts)

# %% [markdown]
# ## The approximations
#
# | name | what it does |
# | --- | --- |
# | mean-field VI | fits a diagonal Gaussian, and ignores the symmetry |
# | ordered biases | the same for a model that allows one order, $b_1 < b_2 < \dots$ (Pourzanjani et al. 2017) |
# | symmetrised | fits a diagonal Gaussian by the ELBO of its average over all orders (Gelberg et al. 2024) |
# | moments | one Gaussian with the moments of NUTS's draws, after alignment |
# | distilled | one diagonal Gaussian that is fitted to what NUTS predicts |
# | ensemble | twenty trained networks |
#
# All variational fits train for the same number of iterations, with the weight of the KL term rising
# over the first half (`anneal`) and a learning rate that falls to zero (`schedule`). `tolerance=0`
# makes them use all iterations.

# %%
vi = {"anneal": 0.5, "schedule": "cosine", "init": "he", "tolerance": 0, "seed": 1}
distillation = ob.approximations.DistillationSettings(iterations=iterations, points=2000)
aligned = ob.align(nuts).posterior
posteriors = {
    "NUTS": nuts,
    "mean-field VI": ob.advi(target, iterations=iterations, **vi),
    "ordered biases": ob.advi(network("ordered"), iterations=iterations, **vi),
    "symmetrised": ob.symmetrised_vi(target, steps=iterations, **vi),
    "moments": ob.approximations.fit_gaussian(aligned).sample(1000, seed=1),
    "distilled": ob.approximations.distil(nuts, data.x, settings=distillation, seed=1).sample(
        1000, seed=1
    ),
    "ensemble": ob.networks.ensemble(target, members=20, epochs=epochs, learning_rate=0.02, seed=1),
}

# %% [markdown]
# ## How far are their predictions from NUTS's?
#
# `ob.compare` measures this distance at the test points. The baseline is the distance between the two
# halves of NUTS's chains.

# %%
comparison = ob.compare(posteriors, truth="NUTS", x=data.held_out.x, y=data.held_out.y)
comparison

# %%
ob.plot.comparison(comparison, measures=["mean_distance", "crps", "coverage_95"])

# %% tags=["remove-cell"]
if full:
    distance = comparison.table["mean_distance"]
    assert distance["distilled"] < 0.5 * distance["mean-field VI"]
    assert 0.7 < distance["symmetrised"] / distance["mean-field VI"] < 1
    assert distance["ordered biases"] > distance["mean-field VI"]
    assert distance["moments"] > 5 * distance["mean-field VI"]

# %% [markdown]
# - **Distilling** predicts most like NUTS, but it needs a run of NUTS first.
# - **Symmetrising** brings mean-field VI a little closer to NUTS. **Ordered biases** do not.
# - **Moments** are far off. Each weight has the right spread, but the Gaussian loses the dependence
#   between weights. The distilled Gaussian belongs to the same family, so the family is not the
#   reason.
# - **The ensemble** covers too little: each member is an optimum and treats its noise estimate as
#   certain.
#
# %% [markdown]
# ## What to try next
#
# - [The guide](../docs/guides/which-remedy.md) says which remedy serves which purpose.
# - Use `ob.mclmc(target, seed=1)` in place of NUTS. How much time does it save?
# - [One basin](05-one-basin.ipynb) asks when aligned weights of two runs can be compared.
