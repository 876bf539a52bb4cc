"""Log densities over vectors: their parts, their charts, and what a NumPyro model may hold besides variables."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

from onebasin.inference import Advi, Nuts, infer
from onebasin.inference.density.network import density_of
from onebasin.models import Target

from ...each import each
from ..known import COVARIANCE, MEAN, RATE, SHAPE, known_target
from ..variational.problems import mixture, regression


def _bounded_by_another() -> None:
    """A variable whose bound is another one, and a quantity that follows from both."""
    top = numpyro.sample("top", dist.Uniform(1.0, 2.0))
    below = numpyro.sample("below", dist.Uniform(0.0, top))
    numpyro.deterministic("total", top + below)


BOUNDED = Target(name="bounded", numpyro_model=_bounded_by_another)


def test_log_density_of_the_known_target_is_scipys():
    """With the Jacobian of log tau, which is tau."""
    density = density_of(known_target("numpyro"))
    values = {"x": np.array([0.3, -1.1]), "tau": np.array(1.7)}
    vector = density.unconstrain(values)
    expected = (
        stats.multivariate_normal(MEAN, COVARIANCE).logpdf(values["x"])
        + stats.gamma(SHAPE, scale=1 / RATE).logpdf(1.7)
        + np.log(1.7)
    )
    assert float(density.log_density(vector)) == pytest.approx(expected, rel=1e-10)
    assert float(density.log_jacobian(vector)) == pytest.approx(np.log(1.7), rel=1e-10)
    np.testing.assert_allclose(vector, [np.log(1.7), 0.3, -1.1], rtol=1e-12)
    for name, value in density.constrain(vector).items():
        np.testing.assert_allclose(value, values[name], rtol=1e-12)
    assert (density.size, density.names) == (3, ("x", "tau"))


@each("make", [regression, mixture])
def test_parts_add_up(make):
    density = density_of(make())

    @jax.jit
    @jax.vmap
    def both(vector: jax.Array) -> tuple[jax.Array, jax.Array]:
        parts = density.log_prior(vector) + jnp.sum(density.log_likelihood(vector))
        return parts, density.log_density(vector)

    starts = density.random_starts(jax.random.split(jax.random.key(1), 3), 2.0)
    np.testing.assert_allclose(*both(starts), rtol=1e-12)


def test_some_observations_of_a_network():
    density = density_of(regression())
    vector = jnp.linspace(-1.0, 1.0, density.size)
    whole = density.log_likelihood(vector)
    assert whole.shape == (12,)
    rows = jnp.array([3, 1, 7])
    np.testing.assert_allclose(density.log_likelihood(vector, rows), whole[rows], rtol=1e-12)
    density = density_of(mixture())
    with pytest.raises(ValueError, match="`rows` are given, but 'mixture' is no network"):
        density.log_likelihood(jnp.zeros(density.size), jnp.array([0]))


def test_a_variable_with_the_name_of_an_axis_is_refused():
    def model() -> None:
        x = numpyro.sample("x", dist.Normal(jnp.zeros(2), 1))
        numpyro.deterministic("x_dim_0", x)

    with pytest.raises(ValueError, match="x_dim_0, which is the name of an axis of x"):
        density_of(Target(name="bad", numpyro_model=model))


def test_a_model_without_a_variable_is_refused():
    def model():
        numpyro.sample("y", dist.Normal(0, 1), obs=1.0)

    with pytest.raises(ValueError, match="'empty' has a NumPyro model without a variable"):
        density_of(Target(name="empty", numpyro_model=model))


def test_an_improper_prior_has_a_density():
    def model() -> None:
        x = numpyro.sample("x", dist.ImproperUniform(dist.constraints.positive, (), (2,)))
        numpyro.factor("data", -jnp.sum(x))

    density = density_of(Target(name="improper", numpyro_model=model))
    # x = exp(z): the density exp(-x) times the Jacobian x.
    found = float(density.log_density(jnp.array([0.0, 1.0])))
    assert found == pytest.approx(-(1 + np.e) + 1.0, rel=1e-12)


def test_bounds_that_depend_on_variables_hold_in_every_draw():
    settings = Nuts(chains=1, warmup=100, draws=50)
    fit = Advi(iterations=100, draws=50)
    for tree in (infer(BOUNDED, settings), infer(BOUNDED, fit)):
        post = tree.posterior
        assert (post["below"] < post["top"]).all()
        np.testing.assert_allclose(post["total"], post["top"] + post["below"], rtol=1e-12)
    density = density_of(BOUNDED)
    values = density.constrain(jnp.array([2.0, 1.0]))
    assert set(values) == {"top", "below"}
    assert float(values["below"]) == pytest.approx(
        float(values["top"]) / (1 + np.exp(-2.0)), rel=1e-12
    )
