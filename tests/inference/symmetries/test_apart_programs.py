"""A Stan program with a scalar that changes its sign: found, checked, sampled and aligned within the posterior."""

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.summaries.deciding import rhat_of_entries

LOGIT = """
data { int N; vector[N] y; vector[N] x; }
parameters { vector[2] a; vector[2] b; vector<lower=0>[2] s; real eta; }
model {
  a ~ normal(0, 3); b ~ normal(0, 2); s ~ lognormal(-0.5, 0.7); eta ~ normal(0, 1.5);
  for (n in 1:N) target += log_mix(inv_logit(eta), normal_lpdf(y[n] | a[1] + b[1] * x[n], s[1]),
                                                   normal_lpdf(y[n] | a[2] + b[2] * x[n], s[2]));
}
"""


def lines():
    rng = np.random.default_rng(22)
    x, first = rng.normal(size=120), rng.random(120) < 0.7
    noise = rng.normal(size=120)
    y = np.where(first, 2 + 1.5 * x + 0.5 * noise, -2 - x + 0.9 * noise)
    return {"N": 120, "x": x, "y": y}


@pytest.mark.finds_symmetry
def test_components_of_a_program_are_found_and_aligned_on_the_density():
    word = "a,b,s,+-eta:"
    found = ob.find_symmetry(ob.stan_program(LOGIT, lines()))
    assert found.words == (word,)
    assert {block.status for block in found.blocks} == {"live"}
    target = ob.stan_program(LOGIT, lines(), symmetry=word)
    assert max(ob.check_symmetry(target).differences) < 1e-8
    posterior = ob.nuts(target, chains=4, warmup=200, draws=100, seed=1)
    alignment = ob.align(posterior)
    moved = (alignment.element[0].permutation[..., 0] == 1).mean(axis=1)
    assert {0.0, 1.0} == set(moved)  # some chains have the other labels
    before, after = (
        ob.log_density(target, tree).values for tree in (posterior, alignment.posterior)
    )
    np.testing.assert_allclose(after, before, rtol=1e-10)
    for variable in alignment.posterior["posterior"].data_vars.values():
        values = variable.values.reshape(*variable.shape[:2], -1)
        assert rhat_of_entries(values).max() < 1.08, variable.name
