"""Stan programs whose components are scalars: found, checked, sampled and aligned without leaving the posterior."""

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.summaries.deciding import rhat_of_entries

from ...each import each

SCALARS = """
data { int N; vector[N] y; vector[N] x; }
parameters {
  real Intercept_mu1; real Intercept_mu2;
  vector[1] b_mu1; vector[1] b_mu2;
  real<lower=0> sigma1; real<lower=0> sigma2;
  simplex[2] theta;
}
model {
  [Intercept_mu1, Intercept_mu2] ~ student_t(3, 0, 5);
  b_mu1 ~ normal(0, 2); b_mu2 ~ normal(0, 2);
  [sigma1, sigma2] ~ student_t(3, 0, 2.5);
  theta ~ dirichlet([1, 1]');
  for (n in 1:N) target += log_mix(theta[1], normal_lpdf(y[n] | Intercept_mu1 + b_mu1[1] * x[n], sigma1),
                                             normal_lpdf(y[n] | Intercept_mu2 + b_mu2[1] * x[n], sigma2));
}
"""
LOGIT = """
data { int N; vector[N] y; vector[N] x; }
parameters { vector[2] a; vector[2] b; vector<lower=0>[2] s; real eta; }
model {
  a ~ normal(0, 3); b ~ normal(0, 2); s ~ lognormal(-0.5, 0.7); eta ~ normal(0, 1.5);
  for (n in 1:N) target += log_mix(inv_logit(eta), normal_lpdf(y[n] | a[1] + b[1] * x[n], s[1]),
                                                   normal_lpdf(y[n] | a[2] + b[2] * x[n], s[2]));
}
"""
RISES = """
data { int N; vector[N] y; vector[N] x; }
parameters { real<lower=0> a; real<lower=0> b; real<lower=0> c; real<lower=0> d; real<lower=0> s; }
model {
  [a, c] ~ normal(0, 0.5); [b, d] ~ normal(0, 20); s ~ normal(0, 5);
  y ~ normal(50 * inv_logit(a * x - b) + 50 * inv_logit(c * x - d), s);
}
"""


def lines():
    rng = np.random.default_rng(22)
    x, first = rng.normal(size=120), rng.random(120) < 0.7
    noise = rng.normal(size=120)
    y = np.where(first, 2 + 1.5 * x + 0.5 * noise, -2 - x + 0.9 * noise)
    return {"N": 120, "x": x, "y": y}


def growth():
    x = np.arange(0, 301, 10.0)
    mean = 50 / (1 + np.exp(5 - 0.1 * x)) + 50 / (1 + np.exp(20 - 0.1 * x))
    return {"N": x.size, "x": x, "y": mean + 1.5 * np.random.default_rng(6).normal(size=x.size)}


@pytest.mark.finds_symmetry
@each(
    ("program", "data", "word", "seed"),
    [
        (SCALARS, lines, "Intercept_mu1~Intercept_mu2,b_mu1~b_mu2,sigma1~sigma2,theta", 1),
        (LOGIT, lines, "a,b,s,+-eta:", 1),
        (RISES, growth, "a~c,b~d", 1),
    ],
)
def test_components_of_a_program_are_found_and_aligned_on_the_density(program, data, word, seed):
    found = ob.find_symmetry(ob.stan_program(program, data()))
    assert found.words == (word,)
    assert {block.status for block in found.blocks} == {"live"}
    target = ob.stan_program(program, data(), symmetry=word)
    assert max(ob.check_symmetry(target).differences) < 1e-8
    posterior = ob.nuts(target, chains=4, warmup=200, draws=100, seed=seed)
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


def test_half_of_a_symmetry_is_refused_on_the_density():
    target = ob.stan_program(LOGIT, lines(), symmetry="a,b,s")
    with pytest.raises(ob.errors.SymmetryError, match="changes the log density"):
        ob.check_symmetry(target)
