"""Derived quantities that follow from moved parameters are moved by the same block."""

import pytest

from onebasin.inference.contracts.engines import density_by
from onebasin.inference.runs.declared import with_derived
from onebasin.models.symmetry.words import read, spell
from onebasin.stan.program import stan_program

from ...each import each

MIXTURE = """
data { int N; vector[N] y; }
parameters { simplex[3] w; vector[3] mu; real a; real b; real eta; real tau; }
transformed parameters { real half_a = a / 2; real half_b = b / 2; real share = inv_logit(eta); }
model { mu ~ normal(0, 3); a ~ normal(0, 1); b ~ normal(0, 1); eta ~ normal(0, 1); tau ~ normal(0, 1); }
generated quantities {
  matrix[N, 3] resp;
  real total = sum(mu) + tau;
  vector[3] noisy;
  for (n in 1:N) for (k in 1:3) resp[n, k] = w[k] * exp(normal_lpdf(y[n] | mu[k], 1));
  for (k in 1:3) noisy[k] = normal_rng(mu[k], 1);
}
"""


@pytest.fixture(scope="module")
def density():
    target = stan_program(MIXTURE, {"N": 3, "y": [-1.0, 0.5, 2.0]})
    return density_by("stanli", target)


@each(
    "declared, found",
    [
        ("w,mu", "w,mu,resp:1"),
        ("a~b,+-eta:", "a~b,half_a~half_b,+-eta:,1-share"),
        ("+-tau:", "+-tau:"),
    ],
)
def test_what_follows_is_moved_and_nothing_else(density, declared, found):
    (block,) = with_derived((read(declared),), density, seed=1)
    assert sorted(spell(block).split(",")) == sorted(found.split(","))
