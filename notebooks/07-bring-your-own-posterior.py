# %% [markdown]
# # Bring your own posterior
#
# You already have draws: CSV files from CmdStan, a fit from cmdstanpy, NumPyro's `MCMC`, an ArviZ
# object, or plain arrays. Every function of onebasin accepts them without conversion. This notebook
# shows all five inputs for one model. It checks whether each posterior can be used, aligns it, and
# continues in ArviZ.
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
# ## A fit from cmdstanpy
#
# The model is a mixture of two normal distributions, and nothing distinguishes its components.

# %%
print(Path("programs/mixture.stan").read_text())

# %% [markdown]
# `ob.stan.cmdstan_model` returns cmdstanpy's `CmdStanModel`. It compiles each program only once, and
# assembles a CmdStan if the machine has none. If you have CmdStan,
# `cmdstanpy.CmdStanModel(stan_file=...)` works as well.

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
# R-hat shows that something is wrong. The verdict says what it is, and whether the fit can still be
# used:

# %%
ob.diagnose(fit)

# %% [markdown]
# The only problem is that labels differ between chains. `theta` is the first component's weight, so
# it becomes $1 - \theta$ if the two components swap. The verdict has found this too. One line fixes
# it:

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
# CmdStan and cmdstanpy write one CSV file per chain. Give the files or their folder. onebasin reads
# them in blocks, so they may be larger than memory.

# %%
files = sorted(Path("csv").glob("*.csv"))
from_files = ob.diagnose(files)
print(len(files), "files:", from_files.verdict, from_files.exchangeable)

# %% [markdown]
# On the command line, `onebasin diagnose csv/*.csv` does the same. `ob.open_posterior` turns the
# files into a posterior, an ArviZ `DataTree`, with CmdStan's comments as attributes.

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
# ## An ArviZ object
#
# `az.from_cmdstanpy`, `az.from_numpyro`, `az.from_dict`, `az.from_netcdf`, PyMC's traces: every
# `DataTree` (or `InferenceData` of older versions) works.

# %%
tree = az.from_cmdstanpy(fit, posterior_predictive="y_rep", log_likelihood="log_lik")
through_arviz = ob.diagnose(tree)
print(through_arviz.verdict, through_arviz.exchangeable)

# %% [markdown]
# ## NumPyro's `MCMC`
#
# This is the same model in NumPyro, sampled by NumPyro. onebasin compares chains, so run more than
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
# The two engines use different programs and have different labels. If the second posterior is aligned
# with the first alignment as the reference, the two can be compared. If programs and samplers are
# right, they agree:

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
# The last input is a dict of arrays (chain, draw, ...). It has no sampler statistics, and the output
# says so: a check that cannot be judged never counts as passed.

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
# `align` returns a posterior with all its groups, and ArviZ works with it. ArviZ also works with
# posteriors that onebasin samples. They have log likelihoods (`log_lik`), predictions (`y_rep`) and
# data in the groups where ArviZ looks for them:

# %%
target = ob.stan_program("programs/mixture.stan", "programs/mixture.json")
sampled = ob.nuts(target, warmup=draws, draws=draws, seed=1, symmetry=False)
repaired = ob.align(sampled).posterior
az.summary(repaired, var_names=["mu", "sigma", "theta"])

# %%
_ = az.plot_rank_dist(repaired, var_names=["mu", "theta"])
# %% [markdown]
# Leave-one-out and posterior predictive checks do not depend on labels. Their results are the same
# before and after alignment, except that `az.loo` takes an effective sample size from the parameters.

# %%
print(az.loo(sampled))
print(f"after alignment: {az.loo(repaired).elpd:.1f}")

# %%
_ = az.plot_ppc_dist(repaired, num_samples=50)
# %% [markdown]
# ## Save and show it
#
# `ob.save` writes NetCDF, Zarr or CSV, depending on the file's extension. `ob.report` writes one page
# that opens offline, with the verdict on top. Both take any of the five inputs.

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
# - Diagnose your own files: `ob.diagnose("chain_*.csv")`, or give their folder. From R, write CSV
#   with a column `.chain`.
# - Diagnose a posterior that should be fine: `ob.diagnose` says `usable`, and lists checks that it
#   could not judge.
# - Look at signs instead of labels in [a 2PL model](03-sign-flips.ipynb), and at chains that disagree
#   for another reason in [eight schools](06-eight-schools.ipynb).
# - Check the declared symmetry on your program: `ob.check_symmetry(ob.stan_program("mixture.stan",
#   "mixture.json", symmetry="mu,sigma,1-theta"))`. Draws can only suggest a symmetry, but the program
#   can confirm it.
