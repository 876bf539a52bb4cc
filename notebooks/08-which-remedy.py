# %% [markdown]
# # Which remedy for a network's symmetry?
#
# A network's hidden units can change places, so its posterior has every mode many times over. Some
# do nothing about it, some break the symmetry in the model, some average an approximation over it,
# some divide it out of draws afterwards. This notebook puts the ways to one small problem, beside
# chains of NUTS, which are the truth here. [The guide](../docs/guides/which-remedy.md) says whether
# what it shows holds on three data sets.
#
# You need to know MCMC and variational inference.

# %%
import arviz as az
import numpy as np
import pandas as pd
import xarray as xr

import onebasin as ob

# %% tags=["parameters"] quick="draws, iterations, epochs, full = 100, 300, 100, False"
draws = 500  # of each chain of NUTS, after as many of warmup
iterations = 5000  # of each variational fit, and of the distillation
epochs = 1000  # of each network of the ensemble
full = True  # whether the sizes are those that the text speaks of

# %% [markdown]
# ## The problem
#
# A scaled sinc function with noise, 128 points to train and 128 to test, as in Kurle et al. 2021,
# and a network of ten ReLU units. Their $10!$ orders are as many equal modes.

# %%
data = ob.networks.load_data("sinc", seed=1)
test = data.held_out


def network(biases="free", skip=None):
    model = ob.networks.BayesianNetwork(
        ob.networks.Network(1, (10,), 1, "relu", skip=skip),
        ob.networks.Gaussian(),
        ob.networks.NormalPrior((3.0, 1.0), (3.0, 1.0)),
        ob.networks.Parametrisation(biases=biases),
    )
    return model.condition(data.x, data.y, name=skip or biases)


plain = network()
plain

# %% [markdown]
# ## The truth
#
# Four chains of NUTS. Their units change places, and aligning does not tell them apart, so the
# verdict is: use label-free quantities. Of what the network predicts R-hat is fine, and predictions
# are what the remedies are held against here. (It also says that trees end at their limit: a draw
# costs a thousand gradients. That is the price of the truth.)

# %%
truth = ob.nuts(plain, warmup=draws, draws=draws, seed=1)
outputs = ob.networks.summarise_predictions(truth, test.x)
print(f"R-hat of the outputs: {outputs['rhat'].max():.3f}")
ob.diagnose(truth)

# %% [markdown]
# ## The remedies
#
# - **Nothing**: mean-field VI as it is.
# - **Ordered biases**: $b_1 < b_2 < \dots$ allows one order of the units (Pourzanjani et al. 2017).
# - **Orthogonal skips**: fixed random matrices beside the weights, which tell units apart (Kurle et
#   al. 2021).
# - **Symmetrised**: one Gaussian, trained for its average over all orders (Gelberg et al. 2024).
# - **One Gaussian**: the moments of NUTS's draws, after they are aligned.
# - **Distilled**: one Gaussian that is fitted to what NUTS's draws predict.
# - **Ensemble**: twenty optima.

# %%
# The weight of the KL term rises from 0 to 1 over the first half of the training.
how = {"anneal": 0.5, "schedule": "cosine", "init": "he"}
how |= {"evaluate_every": 100, "tolerance": 0}
vi = ob.Advi(iterations=iterations, **how)
symmetrised = ob.Symmetrised(steps=iterations, **how)
aligned = ob.align(truth).posterior
distilled = ob.approximations.distil(
    truth,
    data.x,
    settings=ob.approximations.DistillationSettings(iterations=iterations, points=2000),
    seed=1,
)

fits = {
    "NUTS": truth,
    "nothing": ob.infer(plain, vi, seed=1),
    "ordered biases": ob.infer(network(biases="ordered"), vi, seed=1),
    "orthogonal skips": ob.infer(network(skip="orthogonal"), vi, seed=1),
    "symmetrised": ob.infer(plain, symmetrised, seed=1),
    "one Gaussian": ob.approximations.fit_gaussian(aligned).sample(1000, seed=1),
    "distilled": distilled.sample(1000, seed=1),
    "ensemble": ob.networks.ensemble(plain, members=20, epochs=epochs, learning_rate=0.02, seed=1),
}

# %% [markdown]
# ## What they predict
#
# How far the mean of each one's function is from NUTS's, in NUTS's own standard deviations, and how
# wide its spread is beside NUTS's; then scores at the test points.


# %%
def predictions(name):
    fit = fits[name]
    model = network(skip="orthogonal").model if name == "orthogonal skips" else plain.model
    mean, sd = ob.networks.predict_with_noise(model, fit, test.x)
    noise = np.random.default_rng(0).standard_normal(mean.shape)
    return mean, ob.networks.score_predictions(mean + sd * noise, test.y)


reference, _ = predictions("NUTS")
centre, spread = reference.mean(axis=(0, 1)), reference.std(axis=(0, 1))


def row(name):
    mean, scores = predictions(name)
    apart = (mean.mean(axis=(0, 1)) - centre) / spread
    return {
        "distance, in sds": np.sqrt(np.mean(apart**2)),
        "spread, over NUTS's": np.sqrt(np.mean(mean.var(axis=(0, 1))) / np.mean(spread**2)),
        "RMSE": scores.rmse,
        "CRPS": scores.crps,
        "inside 95 %": scores.coverage_95,
    }


table = pd.DataFrame({name: row(name) for name in fits}).T
table.round(3)

# %% [markdown]
# - **One Gaussian with the draws' moments** is far off: each weight has its right spread, and how
#   weights go together is lost. **Distilled** into the same family, the predictions are back.
# - **Orthogonal skips and symmetrising** bring mean-field VI a little nearer, **ordered biases** do
#   not. What symmetrising gains is evidence. (In [the study behind the
#   guide](../docs/guides/which-remedy.md), whose gradients were less noisy, orthogonal skips gained
#   more.)
# - **The ensemble** covers too little, though its members differ more than NUTS's draws: they are
#   optima, each with a noise that it takes for certain.
#
# ## Where there are no data
#
# Outside $[-1, 1]$ the model alone decides. NUTS says that it does not know. The others do not say
# so loudly enough, the distilled Gaussian least of all: it was shown what NUTS predicts between the
# data, and nothing beyond.

# %%
shown = ["NUTS", "nothing", "ordered biases", "orthogonal skips", "distilled", "ensemble"]
ob.plot.uncertainty({name: fits[name] for name in shown}, x=[[-2.0], [2.0]], truth=data.truth)

# %% tags=["remove-cell"]
distance = table["distance, in sds"]
if full:
    assert distance["one Gaussian"] > 5 * distance["nothing"]
    assert outputs["rhat"].max() < 1.02
    assert distance["distilled"] < 0.5 * distance["nothing"]
    nearer = distance[["orthogonal skips", "symmetrised"]] / distance["nothing"]
    assert nearer.min() > 0.7 and nearer.max() < 1
    assert distance["ordered biases"] > distance["nothing"]
    assert table["inside 95 %"]["ensemble"] < 0.92
    outside = {
        name: ob.predict(fits[name], [[-2.0], [2.0]]).std(axis=(0, 1)).mean() for name in shown
    }
    assert min(outside, key=outside.get) == "distilled"
    assert max(outside, key=outside.get) == "NUTS"

# %% [markdown]
# ## What they say of weights
#
# Two fits of mean-field VI from two seeds. Do they agree? R-hat over the two is near 1 where they
# do. Labels are divided out first.

# %%
again = ob.infer(plain, vi, seed=2)


def over_two(first, second, names):
    """Largest R-hat over two fits, of weights after alignment."""
    both = xr.concat([fit["posterior"].to_dataset()[names] for fit in (first, second)], "chain")
    both = ob.align(both.assign_coords(chain=[0, 1]), plain.symmetry).posterior
    rhat = az.rhat(both["posterior"].to_dataset()[names])
    return max(float(value.max()) for value in rhat.data_vars.values())


weights = over_two(fits["nothing"], again, ["W1", "b1", "W2"])
print(f"weights of two fits, aligned: R-hat {weights:.1f}")

# %% tags=["remove-cell"]
if full:
    assert weights > 1.5

# %% [markdown]
# They do not: beside the modes that the symmetry makes there are others. No remedy for the symmetry
# makes weights of two fits comparable here; predictions are what can be compared.
#
# ## What to try next
#
# - [The guide](../docs/guides/which-remedy.md) says which remedy serves which purpose, and what all of
#   them do on three data sets.
# - `ob.networks.Network(1, (4,), 1, "relu")`: do aligned weights agree with fewer units? When there is [one
#   basin](05-one-basin.ipynb), and when not, is a notebook of its own.
# - `ob.mclmc(plain, seed=1)` in place of NUTS: how much time does it save, and what does it cost in
#   distance?
