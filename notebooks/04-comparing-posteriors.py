# %% [markdown]
# # Comparing posteriors: what each approximation gets wrong
#
# A network of four hidden units is small enough for Hamiltonian Monte Carlo to sample its posterior
# correctly, so HMC can be the reference. This notebook compares seven other methods with it, from
# NUTS to a deep ensemble. It compares both their predictions and their weights.
#
# You need to know MCMC. Hidden units can swap, so this posterior has 384 equal modes. onebasin takes
# care of this.

# %%

import numpy as np
import pandas as pd

import onebasin as ob

# %% tags=["parameters"] quick="chains, draws, iterations, epochs, full = 2, 150, 300, 100, False"
chains, draws = 4, 2000  # of the truth
iterations = 20_000  # of each variational fit
epochs = 5000  # of each network of the ensemble
full = True  # whether the sizes are those that the text speaks of

# %% [markdown]
# ## A network, and data with a gap
#
# The data are forty noisy points of $\sin 4x$, none of them between $-0.3$ and $0.3$. Many different
# weights fit them equally well. How a method treats these weights decides what it predicts in the
# gap.

# %%
rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(-1, -0.3, 20), rng.uniform(0.3, 1, 20)])[:, None]


def function(x):
    return np.sin(4 * x)


y = function(x) + 0.1 * rng.standard_normal(x.shape)

network = ob.networks.Network(1, (4,), 1, "tanh")
model = ob.networks.BayesianNetwork(
    network,
    ob.networks.Gaussian(noise_sd=0.1),
    ob.networks.NormalPrior(weight_scale=(3.0, 1.5), bias_scale=(2.0, 1.0)),
)
target = model.condition(x, y, name="gap")
target

# %% [markdown]
# Four hidden units have $4! = 24$ orders. As tanh is odd, each can also change the sign of all its
# weights: $24 \cdot 2^4 = 384$ sets of weights compute the same function and have the same density.
#
# ## The truth
#
# We run static HMC with long trajectories. The verdict comes first, and it is not "usable":

# %%
warmup = 1000 if full else 150
hmc = ob.hmc(
    target,
    chains=chains,
    warmup=warmup,
    draws=draws,
    trajectory_length=3.0,
    target_acceptance=0.9,
    seed=1,
)
verdict = ob.diagnose(hmc)
verdict

# %% [markdown]
# If labels change between draws, the draws of one weight have no meaning. The outputs of the network
# do: they are the second row of the verdict. So HMC is a valid reference for predictions, and for
# weights modulo the 384 labellings.

# %% tags=["remove-cell"]
if full:
    assert verdict.verdict == "invariant", verdict.verdict
    assert verdict.aligned.invariants["rhat"].max() < 1.01

# %% [markdown]
# ## Seven other methods
#
# - **NUTS** is a second opinion: it should not differ from HMC at all.
# - **ADVI** fits one Gaussian by the ELBO, with a diagonal covariance (mean-field) or a full one.
# - **Symmetrised VI** fits a diagonal Gaussian by the ELBO of its average over all labellings.
# - **A deep ensemble** trains networks from different starts and treats each as a draw.
# - **One Gaussian** is made from HMC's own draws. `fit_gaussian` gives it the mean and the covariance
#   of the aligned draws. `distil` fits a diagonal Gaussian whose *predictions* are those of HMC.

# %%
advi = {"iterations": iterations, "gradient_samples": 5, "learning_rate": 0.05}
posteriors = {
    "HMC": hmc,
    "NUTS": ob.nuts(target, chains=chains, warmup=warmup, draws=draws // 2, seed=2),
    "mean-field ADVI": ob.advi(target, family="meanfield", **advi, seed=1),
    "full-rank ADVI": ob.advi(target, family="fullrank", **advi, seed=1),
    "symmetrised VI": ob.symmetrised_vi(target, steps=iterations // 2, learning_rate=0.02, seed=1),
    "ensemble": ob.networks.ensemble(target, members=30, epochs=epochs, learning_rate=0.02, seed=1),
}

in_one_labelling = ob.align(hmc)
gaussian = ob.approximations.fit_gaussian(in_one_labelling.posterior, "full")
distillation = ob.approximations.DistillationSettings(iterations=max(iterations // 8, 200))
student = ob.approximations.distil(hmc, target.x, settings=distillation, seed=1)

posteriors["Gaussian by moments"] = gaussian.sample(1000, seed=1)
posteriors["Gaussian distilled"] = student.sample(1000, seed=1)

# %% [markdown]
# A variational fit ends with a number, the ELBO, which `ob.approximations.elbo` explains in words.
# The ELBO ranks fits of one model, but it does not measure the distance to the truth. Here are the
# ELBOs of mean-field ADVI and symmetrised VI:

# %%
mean_field = ob.approximations.elbo(posteriors["mean-field ADVI"])
mean_field

# %%
averaged = ob.approximations.elbo(posteriors["symmetrised VI"])
averaged

# %% [markdown]
# The average over labellings gains nearly $\log 384 = 5.95$ nats. It gains them only by counting
# modes. The 384 modes hardly overlap, so the Gaussian in each of them is about the one that plain
# mean-field ADVI finds. Symmetrised VI is worth its price if modes overlap, as in wider networks.

# %% tags=["remove-cell"]
if full:
    gained = float(averaged.table["information_lower"].iloc[0])
    assert 5 < gained < np.log(384)
    assert abs(averaged.value - gained - mean_field.value) < 2

# %% [markdown]
# ## One table
#
# `ob.compare` compares all methods with HMC. Many of the test points lie in the gap, and some outside
# the range of the data. Weights are compared after alignment.

# %%
points = np.linspace(-1.3, 1.3, 80)[:, None]
observed = function(points) + 0.1 * np.random.default_rng(9).standard_normal(points.shape)
comparison = ob.compare(posteriors, truth="HMC", x=points, y=observed, permutations=199)
comparison

# %% [markdown]
# The *distance of means* is how far mean predictions lie from HMC's, in HMC's standard deviations.
# The *energy distance* compares draws of weights. A value of zero or below means that no difference
# was detected. `baseline` compares one half of HMC's draws with the other. A method close to it
# cannot be distinguished from the truth. This holds only for NUTS. The scores (RMSE, CRPS, log score,
# coverage) use noisy test points. They measure whether predictions are good, not whether they are
# those of the posterior. Full-rank ADVI scores as well as the truth, but this does not make it a good
# approximation of the posterior. `comparison.table` has all columns.

# %%
ob.plot.comparison(comparison)

# %% tags=["remove-cell"]
table = comparison.table
if full:
    assert table.loc["NUTS", "mean_distance"] < 3 * table.loc["baseline", "mean_distance"]
    assert table.loc["NUTS", "energy_p"] > 0.05
    others = table.drop(["HMC", "NUTS", "baseline"])
    assert (others["mean_distance"] > 3 * table.loc["baseline", "mean_distance"]).all()
    assert (others["energy_p"] < 0.05).all()
    assert abs(table.loc["full-rank ADVI", "log_score"] - table.loc["HMC", "log_score"]) < 0.05

# %% [markdown]
# ## Predictions
#
# The bands contain 50 % and 95 % of predictions, with noise.

# %%
ob.plot.predictive(posteriors, x=points, truth=function)

# %% [markdown]
# The methods differ most in the gap and outside the range of the data. The width of a band there
# shows how much uncertainty the approximation admits. This figure shows the standard deviation of the
# network's output, divided by that of HMC:

# %%
gap = np.linspace(-0.25, 0.25, 21)[:, None]


def spread(posterior, at):
    return ob.predict(posterior, at).std(axis=(0, 1)).mean()


widths = pd.DataFrame(
    {
        "in the gap": {n: spread(p, gap) / spread(hmc, gap) for n, p in posteriors.items()},
        "at the data": {n: spread(p, x) / spread(hmc, x) for n, p in posteriors.items()},
    }
)
widths.astype(float).round(2)

# %% [markdown]
# ## Weights
#
# `ob.align(..., reference=...)` brings every posterior into the labels of HMC. This figure shows the
# incoming and outgoing weight of one hidden unit in all of them:

# %%
aligned = {
    name: ob.align(posterior, reference=in_one_labelling).posterior
    for name, posterior in posteriors.items()
}
ob.plot.pair(aligned, "W1[0,2]", "W2[2,0]")

# %% [markdown]
# This figure explains the table. In the posterior, the two weights lie on a banana: if one is larger,
# the other is smaller. Mean-field fits cover one spot of the banana, because a wider diagonal
# Gaussian would leave it. The full-rank fit covers a short stretch. The Gaussian by moments covers
# all of it, and much of the space around it.

# %% tags=["remove-cell"]
if full:
    gap_of, data_of = widths["in the gap"], widths["at the data"]
    for name in ("mean-field ADVI", "full-rank ADVI", "symmetrised VI"):
        assert 0.4 < gap_of[name] < 0.75, (name, gap_of[name])
        assert table.loc[name, "energy"] > 1
    assert gap_of["ensemble"] < 0.35 and data_of["ensemble"] < 0.35
    assert gap_of["Gaussian by moments"] > 2 and data_of["Gaussian by moments"] > 10
    assert table.loc["Gaussian by moments", "energy"] < 0.02
    assert (
        table.loc["Gaussian by moments", "log_score"]
        < table["log_score"].drop("Gaussian by moments").min()
    )
    assert table.loc["Gaussian by moments", "coverage_50"] > 0.95
    assert 0.6 < gap_of["Gaussian distilled"] < 1.0
    assert table.loc["Gaussian distilled", "energy"] == table["energy"].max()
    assert abs(gap_of["NUTS"] - 1) < 0.05
    sds = {n: float(p.posterior["W1"][..., 0, 2].std()) for n, p in aligned.items()}
    assert max(sds[n] for n in ("mean-field ADVI", "symmetrised VI")) < 0.2 * sds["HMC"]
    assert sds["full-rank ADVI"] < 0.8 * sds["HMC"]
    assert table["mean_distance"].drop(["NUTS", "baseline"]).idxmin() == "ensemble"
    assert (widths["in the gap"].drop(["HMC", "NUTS"]) - 1).abs().idxmin() == "Gaussian distilled"
    assert table["energy"].drop(["NUTS", "baseline"]).idxmin() == "Gaussian by moments"

# %% [markdown]
# ## What each gets wrong
#
# - **NUTS** gets nothing wrong. Its predictions and weights are those of HMC, up to Monte Carlo
#   error.
# - **Mean-field ADVI and symmetrised VI** are right at the data, but their bands in the gap are about
#   0.6 times as wide as they should be. They cover only one spot in the space of weights, and are far
#   too certain of it.
# - **Full-rank ADVI** is much the same. With correlations it covers a longer stretch of the banana,
#   but it cannot bend.
# - **The ensemble** has the best mean after NUTS, and nearly no spread. Trained to the end, most
#   members reach the same optimum, up to relabelling.
# - **The Gaussian by moments** has the best weights after NUTS, because their means, variances and
#   correlations are right. Its predictions are useless: they are twenty times too wide at the data.
# - **The distilled Gaussian** has the closest spread after NUTS. Its weights are wrong on purpose:
#   its standard deviations are chosen for predictions.
#
# Two lessons go beyond this example.
#
# - **Good weights and good predictions are different things.** A Gaussian with the right mean and
#   covariance predicts worst, and one with wrong weights predicts well. Decide which you need before
#   you choose a method, and compare that.
# - **A score on test data does not measure the distance to the posterior.** RMSE, coverage and log
#   score were nearly as good as HMC's for fits that miss most of the posterior. Only the comparison
#   with HMC showed it.
#
# ## What to try next
#
# - Train the ensemble for 500 epochs instead of 5000. Its bands become wider and look better, but
#   this spread comes from unfinished training.
# - Try other seeds of ADVI. `ob.approximations.elbo` tells you which fit to keep. Here the seeds
#   agree.
# - Predict two classes instead of numbers, with `ob.networks.Categorical()` as the likelihood. The
#   table then has agreement and total variation.
# - Use your own network or program. Every call above takes any target. Mixtures are compared by the
#   means of their parameters.
# - [One basin](05-one-basin.ipynb) looks at alignment itself, and [Bring your own
#   posterior](07-bring-your-own-posterior.ipynb) at draws from other tools.
