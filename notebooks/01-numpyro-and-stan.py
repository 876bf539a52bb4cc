# %% [markdown]
# # The same Bayesian net in NumPyro and in Stan
#
# This notebook samples one network with two engines that share no code: NumPyro's NUTS compiled by
# JAX, and a Stan program run by CmdStan. If they do not agree, one of them is wrong. We check them on
# three levels: the log density, the predictions and the weights. R-hat of the weights will be
# terrible for both engines, but that does not matter. The notebook shows why.
#
# You need to know Stan, but nothing else.

# %%
from importlib import resources

import arviz as az
import matplotlib.pyplot as plt
import numpy as np

import onebasin as ob

# %% tags=["parameters"] quick="draws = 400"
draws = 500  # of each chain, after as many of warmup

# %% [markdown]
# ## The model
#
# The data are forty noisy points of a sine. The model is a network with one hidden layer of three
# tanh units,
#
# $$y_n \sim \mathrm{normal}(b_2 + W_2^\top \tanh(W_1^\top x_n + b_1),\ \sigma),$$
#
# with standard normal priors for all weights and biases and a half-normal prior for $\sigma$.

# %%
rng = np.random.default_rng(7)
x = np.sort(rng.uniform(-3, 3, size=(40, 1)), axis=0)
y = np.sin(1.5 * x) + 0.2 * rng.normal(size=x.shape)

model = ob.networks.BayesianNetwork(ob.networks.Network(1, (3,), 1, activation="tanh"))
target = model.condition(x, y, name="curve")
target

# %% [markdown]
# Both definitions come from this one object. Sizes and priors are data of the Stan program. So it is
# compiled once and serves every regression network, with any number of layers and units. This is its
# core:

# %%
program = resources.files("onebasin.stan") / "programs" / "regression.stan"
text = program.read_text()
print(text[text.index("parameters {") :])

# %% [markdown]
# ## Sampling with both engines

# %%
posteriors = {
    engine: ob.nuts(target, warmup=draws, draws=draws, engine=engine, seed=2)
    for engine in ("numpyro", "stan")
}

# %% [markdown]
# ## Level one: the log density
#
# `ob.log_density` evaluates a target's log density at any draws. We evaluate both engines at Stan's
# draws:

# %%
numpyro_says = ob.log_density(target, posteriors["stan"], engine="numpyro")
stan_says = ob.log_density(target, posteriors["stan"], engine="stan")
gap = (stan_says - numpyro_says).values

print(f"{gap.size} draws, log densities from {stan_says.min():.1f} to {stan_says.max():.1f} nats")
print(f"Stan minus NumPyro: {gap.mean():.6f}, the same at all of them to within {np.ptp(gap):.0e}")

# %% [markdown]
# The difference is a known constant. A `~` in Stan drops terms that do not depend on parameters:
# $\tfrac12 \log 2\pi$ for each of the ten standard normal priors, and $\tfrac12 \log \tfrac{\pi}{2}$
# for the half-normal one.

# %%
left_out = 10 * np.log(2 * np.pi) / 2 + np.log(np.pi / 2) / 2
print(f"left out by Stan:   {left_out:.6f}")

# %% tags=["remove-cell"]
assert np.ptp(gap) < 1e-10
assert abs(gap.mean() - left_out) < 1e-10

# %% [markdown]
# Up to rounding, the two densities are the same. You can check your own port of a model in the same
# way: give `ob.Target` a NumPyro model and `ob.stan_program` the Stan file, and compare.
#
# ## Level two: the predictions
#
# Two samplers with the same target make different draws, but all expectations should agree to within
# Monte Carlo error. We look at R-hat first:

# %%
grid = np.linspace(-4, 4, 81)[:, None]
for engine, posterior in posteriors.items():
    outputs = ob.predict(posterior, grid)  # (chain, draw, obs, out)
    weights = ob.diagnose(posterior, align=False).rhat
    print(
        f"{engine:8s} worst R-hat of weights: {weights.value:.2f} ({weights.parameter})"
        f"   of predictions: {az.rhat(outputs).max():.3f}"
    )

# %% [markdown]
# R-hat of the weights condemns both runs, although the outputs of the network have converged in both.
# So the chains agree about the function, and disagree about how to write it down:

# %%
ob.diagnose(posteriors["stan"])

# %% [markdown]
# Hidden units have no names. If you swap two units, the network computes the same function. As tanh
# is odd, you can also change the sign of all weights into and out of a unit. With three units there
# are $3!\cdot 2^3 = 48$ ways to write down each function, and each chain finds one or several of
# them. So the verdict is *usable after alignment*, and predictions can be used without alignment.
#
# This figure shows the predictions of both engines and the data:

# %%
ob.plot.predictive(posteriors)

# %%
comparison = ob.compare(posteriors, truth="numpyro", x=grid)
comparison

# %% [markdown]
# `baseline` compares one half of NumPyro's draws with the other half, and shows how close two runs of
# the *same* sampler come. Stan's distance from NumPyro is no larger than this, apart from noise.

# %% tags=["remove-cell"]
outputs = {e: ob.predict(p, grid) for e, p in posteriors.items()}
for engine in posteriors:
    assert az.rhat(outputs[engine]).max() < (1.02 if draws >= 500 else 1.1)
    assert ob.diagnose(posteriors[engine], align=False).rhat.value > 1.1
means = {e: f.mean(axis=(0, 1)) for e, f in outputs.items()}
errors = {e: f.std(axis=(0, 1)) / np.sqrt(az.ess(f, method="mean")) for e, f in outputs.items()}
z = (means["numpyro"] - means["stan"]) / np.hypot(errors["numpyro"], errors["stan"])
assert np.abs(z).max() < 4.5
if draws >= 500:
    assert ob.diagnose(posteriors["stan"]).verdict == "aligned"

# %% [markdown]
# ## Level three: the weights
#
# Weights can be compared too, once the units have labels. We align NumPyro's draws, and then align
# Stan's draws with the first alignment as the reference:

# %%
aligned = {"numpyro": ob.align(posteriors["numpyro"])}
aligned["stan"] = ob.align(posteriors["stan"], reference=aligned["numpyro"])

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharex=True, sharey=True, layout="constrained")
for ax, (title, of) in zip(axes, (("as sampled", posteriors), ("aligned", aligned)), strict=True):
    for engine, marker in (("numpyro", "o"), ("stan", "x")):
        found = of[engine] if title == "as sampled" else of[engine].posterior
        into, out = (found.posterior[n].values for n in ("W1", "W2"))
        for unit in range(3):
            cloud = into[:, ::5, 0, unit].ravel(), out[:, ::5, unit, 0].ravel()
            ax.plot(*cloud, marker, ms=3, alpha=0.4, color=f"C{unit}", fillstyle="none")
    ax.set(title=title, xlabel="weight into a hidden unit, W1", ylabel="weight out of it, W2")
    ax.label_outer()

# %% [markdown]
# Each unit has one colour. Circles are NumPyro's draws and crosses are Stan's. As sampled, each unit
# is everywhere. After alignment, each unit has its own place, and both engines agree on it.

# %%
for name in ("W1", "b1", "W2"):
    for engine, alignment in aligned.items():
        mean = alignment.posterior.posterior[name].mean(("chain", "draw")).values.ravel()
        print(f"{name} {engine:8s}", np.round(mean, 2))

# %% tags=["remove-cell"]
if draws >= 500:
    for name in ("W1", "b1", "W2"):
        found = [a.posterior.posterior[name].values for a in aligned.values()]
        spread = found[0].std(axis=(0, 1))
        assert (np.abs(found[0].mean((0, 1)) - found[1].mean((0, 1))) < 0.5 * spread).all()

# %% [markdown]
# ## What to try next
#
# - Add a layer: `ob.networks.Network(1, (3, 3), 1, activation="tanh")`. The Stan program stays the
#   same and is not compiled again.
# - With `activation="relu"`, units have no signs to change, but they can be rescaled: multiply the
#   weights into a unit by 2 and divide those out of it by 2. The prior breaks this symmetry. What
#   does the printed target say about it?
# - [04-comparing-posteriors](04-comparing-posteriors.ipynb) compares cheaper approximations with such
#   a posterior.
# - [05-one-basin](05-one-basin.ipynb) shows when alignment brings all chains into one basin, and when
#   not.
# - [02-label-switching](02-label-switching.ipynb) treats components that swap in a Stan program.
