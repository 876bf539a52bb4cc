# %% [markdown]
# # Eight schools: a verdict that is not about labels
#
# Chains can disagree for many reasons, and labels are only one of them. Rubin's eight schools are the
# best-known case of another: a funnel. One call says whether the posterior may be used, why not, and
# what to do about it. This notebook checks that it is right.
#
# You need to know Stan. Nothing else is assumed.

# %%
from pathlib import Path

import onebasin as ob

# %% tags=["parameters"] quick="draws = 250"
draws = 1000  # of each chain, after as many of warmup

# %% [markdown]
# ## The program that everybody writes first
#
# Eight schools ran a coaching programme. `y` holds the estimated effect in each, in points of a test,
# and `sigma` its standard error. The model gives every school an effect `theta` of its own, drawn from
# a normal distribution whose mean `mu` and spread `tau` are unknown.

# %%
print(Path("programs/schools_centred.stan").read_text())

# %%
centred_target = ob.stan_program("programs/schools_centred.stan", "programs/schools.json")
settings = ob.NutsSettings(warmup=draws, draws=draws)
centred = ob.nuts(centred_target, engine="stan", settings=settings, seed=1)
verdict = ob.diagnose(centred)
verdict

# %% [markdown]
# ## What to try next
