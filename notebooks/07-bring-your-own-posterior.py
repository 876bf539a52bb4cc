# %% [markdown]
# # Bring your own posterior
#
# You have draws already: CSV files of CmdStan, a fit of cmdstanpy, an `MCMC` of NumPyro, something
# that ArviZ has made, or plain arrays. Every function of onebasin takes them as they are. This
# notebook takes one model through all five doors, asks of each posterior whether it may be used,
# repairs it, and continues in ArviZ.
#
# You need to know Stan or NumPyro, and a little ArviZ.

# %%
import json
import logging
from pathlib import Path

import arviz as az
import cmdstanpy
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

import onebasin as ob

# %% tags=["parameters"] quick="draws = 200"
draws = 1000  # of each of four chains, after as many of warmup

# %% [markdown]
# ## A fit of cmdstanpy
#
# A mixture of two normal distributions, whose components nothing tells apart.

# %%
print(Path("programs/mixture.stan").read_text())

# %% [markdown]
# `ob.stan.cmdstan_model` gives the `CmdStanModel` that you know, compiled once per content. Where the
# machine has no CmdStan, it puts one together. `cmdstanpy.CmdStanModel(stan_file=...)` does as well
# where you have one.

# %%
cmdstanpy.utils.get_logger().setLevel(logging.WARNING)  # no line for each chain
model = ob.stan.cmdstan_model("programs/mixture.stan")
fit = model.sample(
    "programs/mixture.json",
    chains=4,
    iter_warmup=draws,
    iter_sampling=draws,
    seed=1,
    output_dir="csv",
    show_progress=False,
)
print(fit.summary().loc[["mu[1]", "mu[2]", "sigma[1]", "sigma[2]", "theta"], ["Mean", "R_hat"]])

# %% [markdown]
# R-hat says that something is wrong. What it is, and whether the fit is lost, says the verdict:

# %%
ob.diagnose(fit)

# %% [markdown]
# The labels switch between chains: nothing else is the matter. `theta` is the first component's
# weight, so that it becomes $1 - \theta$ where the two change places; the verdict has found that
# too. One line repairs it:

# %%
alignment = ob.align(fit)
ob.plot.aligned(alignment)

# %% tags=["remove-cell"]
found = ob.diagnose(fit)
assert found.verdict == "aligned", found
assert found.exchangeable == ("mu,sigma,1-theta",), found.exchangeable
assert found.aligned.raw.rhat.value > 1.2
assert found.aligned.aligned.rhat.value < (1.01 if draws >= 1000 else 1.05)

# %% [markdown]
# ## CSV files
#
# CmdStan itself leaves a CSV file a chain, and so does cmdstanpy. Give the files, or the folder
# that they are in. They are read in blocks, so that they may be larger than the memory.

# %%
files = sorted(Path("csv").glob("*.csv"))
from_files = ob.diagnose(files)
print(len(files), "files:", from_files.verdict, from_files.exchangeable)

# %% [markdown]
# On the command line the same is `onebasin diagnose csv/*.csv`. `ob.open_posterior` makes a
# posterior of the files, an ArviZ `DataTree`, with CmdStan's comments as its attributes.

# %%
opened = ob.open_posterior(files)
print("groups:", ", ".join(opened.children))
print("seed:", opened.attrs["seed"])

# %% tags=["remove-cell"]
assert len(files) == 4
assert from_files.verdict == "aligned"
assert from_files.exchangeable == found.exchangeable
assert set(opened.children) == {"posterior", "sample_stats"}
assert ob.diagnose("csv").verdict == "aligned"

# %% [markdown]
# ## What ArviZ has made
#
# `az.from_cmdstanpy`, `az.from_numpyro`, `az.from_dict`, `az.from_netcdf`, PyMC's traces: whatever
# is a `DataTree` (or an `InferenceData` of older versions) will do.

# %%
tree = az.from_cmdstanpy(fit, posterior_predictive="y_rep", log_likelihood="log_lik")
through_arviz = ob.diagnose(tree)
print(through_arviz.verdict, through_arviz.exchangeable)

# %% [markdown]
# ## NumPyro's `MCMC`
#
# The same model in NumPyro, sampled by NumPyro. Chains have to be told apart, so ask for more than
# one.

# %%
y = np.array(json.loads(Path("programs/mixture.json").read_text())["y"])


def mixture(y):
    mu = numpyro.sample("mu", dist.Normal(0, 5).expand([2]))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2).expand([2]))
    theta = numpyro.sample("theta", dist.Beta(5, 5))
    weights = dist.Categorical(jax.numpy.stack([theta, 1 - theta]))
    with numpyro.plate("observation", len(y)):
        numpyro.sample("y", dist.MixtureSameFamily(weights, dist.Normal(mu, sigma)), obs=y)


mcmc = MCMC(
    NUTS(mixture),
    num_warmup=draws,
    num_samples=draws,
    num_chains=4,
    chain_method="vectorized",
    progress_bar=False,
)
mcmc.run(jax.random.key(2), y)
of_numpyro = ob.diagnose(mcmc)
print(of_numpyro.verdict, of_numpyro.exchangeable)

# %% [markdown]
# Two engines, two programs, two sets of labels. Brought into the same ones, by the alignment of the
# first, the two posteriors can be held against each other. If programs and samplers are right, they
# agree:

# %%
agreement = ob.compare(
    {"Stan": fit, "NumPyro": mcmc},
    truth="Stan",
    symmetry=found.exchangeable,
    var_names=["mu", "sigma", "theta"],
)
agreement

# %% [markdown]
# ## Plain arrays
#
# A dict of arrays (chain, draw, ...) is the last door. It holds no sampler's statistics, which is
# said: what cannot be judged is never passed.

# %%
arrays = {
    name: np.asarray(values) for name, values in mcmc.get_samples(group_by_chain=True).items()
}
of_arrays = ob.diagnose(arrays)
of_arrays

# %% tags=["remove-cell"]
assert through_arviz.verdict == of_numpyro.verdict == of_arrays.verdict == "aligned"
assert of_arrays.judgement.unjudged
assert draws < 1000 or agreement.table.loc["NumPyro", "verdict"] == "agree"

# %% [markdown]
# ## Back to ArviZ
#
# What `align` returns is a posterior again, with everything that came with it, and all of ArviZ
# works on it. So does all of ArviZ on what onebasin samples itself. It puts log likelihoods
# (`log_lik`), predictions (`y_rep`) and data into the groups where ArviZ looks for them:

# %%
target = ob.stan_program("programs/mixture.stan", "programs/mixture.json")
sampled = ob.nuts(target, warmup=draws, draws=draws, seed=1, symmetry=False)
repaired = ob.align(sampled).posterior
az.summary(repaired, var_names=["mu", "sigma", "theta"])

# %%
_ = az.plot_rank_dist(repaired, var_names=["mu", "theta"])
# %% [markdown]
# Leave-one-out and posterior predictive checks have no labels: they come out the same before and
# after, up to the number of effective draws that `az.loo` takes from the parameters.

# %%
print(az.loo(sampled))
print(f"after alignment: {az.loo(repaired).elpd:.1f}")

# %%
_ = az.plot_ppc_dist(repaired, num_samples=50)
# %% [markdown]
# ## Keep it, and show it
#
# `ob.save` writes NetCDF, Zarr or CSV by the file's ending; `ob.report` one page that opens without
# a network, with the verdict on top. Both take any of the five.

# %%
ob.save(repaired, "repaired.nc")
ob.report(fit, "report.html")
again = az.from_netcdf("repaired.nc")
print(sorted(again.children))

# %% tags=["remove-cell"]
assert abs(az.loo(repaired).elpd - az.loo(sampled).elpd) < (0.05 if draws >= 1000 else 0.5)
assert Path("report.html").stat().st_size > 100_000
assert ob.diagnose("repaired.nc").rhat.value < (1.01 if draws >= 1000 else 1.1)

# %% [markdown]
# ## What to try next
#
# - Your own files: `ob.diagnose("chain_*.csv")`, or the folder they are in. From R, write CSV with
#   a column `.chain`.
# - A posterior that should be fine: `ob.diagnose` says `usable`, and what it could not judge.
# - Signs instead of labels: [a 2PL model](03-sign-flips.ipynb). Chains that disagree for other
#   reasons: [eight schools](06-eight-schools.ipynb).
# - Hold the declared symmetry against your program:
#   `ob.check_symmetry(ob.stan_program("mixture.stan", "mixture.json",
#   symmetry="mu,sigma,1-theta"))`. Draws can suggest a symmetry; only the program has it.
