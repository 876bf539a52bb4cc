"""Log densities over vectors: their parts, their charts, and what a NumPyro model may hold besides variables."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from numpyro.infer.util import initialize_model
from scipy import stats

from onebasin.base.errors import InferenceError
from onebasin.inference import Advi, Nuts, infer
from onebasin.inference.density.network import density_of
from onebasin.inference.density.numpyro import sites_of
from onebasin.models import Target

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


@pytest.mark.parametrize("make", [regression, mixture])
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
    with pytest.raises(ValueError, match="`rows` are given, but 'mixture' is not a network"):
        density.log_likelihood(jnp.zeros(density.size), jnp.array([0]))


def _with_plates() -> None:
    """Part of the rows at random, a plate of all, and a variable that NumPyro draws before one with an earlier name."""
    with numpyro.plate("rows", 9, subsample_size=3) as rows:
        numpyro.sample("z", dist.HalfNormal(1.0 + jnp.asarray(rows)))
    with numpyro.plate("all", 4) as places:
        numpyro.sample("a", dist.Normal(jnp.zeros(4)[places], 1))


def _with_a_parameter() -> None:
    numpyro.sample("x", dist.TruncatedNormal(low=numpyro.param("least", jnp.array(0.5))))


def test_a_model_is_not_run_to_know_its_density():
    """Operation by operation, each of them would be compiled, which took seconds in every process."""
    kinds = []

    def model() -> None:
        with numpyro.plate("schools", 3):
            kinds.append(type(numpyro.sample("theta", dist.Normal(0, 1))))
        numpyro.sample("y", dist.Normal(0, 1), obs=np.ones(3))

    target = Target(name="traced", numpyro_model=model)
    density_of(target).random_starts(jax.random.split(jax.random.key(0), 2), 2.0)
    assert np.asarray(sites_of(target, data=True)["y"]["value"]).tolist() == [1, 1, 1]
    assert len(kinds) > 2
    assert all(issubclass(kind, jax.core.Tracer) for kind in kinds)


@pytest.mark.parametrize("model", [_with_a_parameter, mixture().numpyro_model])
def test_starts_are_numpyros(model):
    keys = jax.random.split(jax.random.key(5), 3)
    density = density_of(Target(name="model", numpyro_model=model))
    strategy = numpyro.infer.init_to_uniform(radius=1.5)
    info = initialize_model(keys, density.model, init_strategy=strategy)
    np.testing.assert_array_equal(
        density.random_starts(keys, 1.5), jax.vmap(density.ravel)(info.param_info.z)
    )


@pytest.mark.filterwarnings("default")
def test_data_outside_a_sites_support_are_named_where_no_start_is_found():
    def model() -> None:
        numpyro.sample("y", dist.Gamma(numpyro.sample("x", dist.LogNormal()), 1.0), obs=-1.0)

    density = density_of(Target(name="outside", numpyro_model=model))
    with (
        pytest.warns(UserWarning, match="Site y: Out-of-support values"),
        pytest.raises(InferenceError, match=r"No starting point .* for 'outside'.*100 points"),
    ):
        density.random_starts(jax.random.split(jax.random.key(0), 2), 2.0)


def _without_a_density() -> None:
    numpyro.sample("x", dist.Delta(jnp.zeros(2)).to_event(1))


def _with_the_name_of_an_axis() -> None:
    x = numpyro.sample("x", dist.Normal(jnp.zeros(2), 1))
    numpyro.deterministic("x_dim_0", x)


def _without_a_variable() -> None:
    numpyro.sample("y", dist.Normal(0, 1), obs=1.0)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (_without_a_density, "x with a Delta distribution, which has no density"),
        (_with_the_name_of_an_axis, "x_dim_0, which is the name of an axis of x"),
        (_without_a_variable, "'bad' has a NumPyro model without a variable"),
    ],
)
def test_a_model_that_has_no_density_is_refused(model, words):
    with pytest.raises(ValueError, match=words):
        density_of(Target(name="bad", numpyro_model=model))


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


def _some_rows() -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    with numpyro.plate("rows", 9, subsample_size=3):
        numpyro.sample("y", dist.Normal(mu, 1), obs=numpyro.subsample(jnp.arange(9.0), 0))


def _random_mask() -> None:
    mu, key = numpyro.sample("mu", dist.Normal(0, 10)), numpyro.prng_key()
    seen = True if key is None else jax.random.bernoulli(key, 0.5, (9,))
    with numpyro.plate("rows", 9), numpyro.handlers.mask(mask=seen):
        numpyro.sample("y", dist.Normal(mu, 1), obs=jnp.zeros(9))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (_some_rows, "takes 3 random rows of the 9 of plate rows .*leave `subsample_size` out"),
        (_with_plates, "3 random rows of the 9 of plate rows"),
        (_random_mask, "random numbers by `numpyro.prng_key` that change its log density"),
    ],
)
def test_a_density_that_changes_from_run_to_run_is_rejected(model, said):
    """One random batch would stand for all data, with a posterior that looks sound."""
    with pytest.raises(ValueError, match=said):
        density_of(Target(name="model", numpyro_model=model))


def test_entries_that_obs_mask_has_as_data_keep_their_prior():
    """NumPyro masks them: without a density they wander, and the posterior is called unusable."""

    def model(mask) -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        with numpyro.plate("rows", 3):
            numpyro.sample("y", dist.Normal(mu, 1), obs=jnp.ones(3), obs_mask=mask)

    density = density_of(
        Target("some", numpyro_model=lambda: model(jnp.array([True, False, True])))
    )
    at = density.ravel({"mu": jnp.zeros(()), "y_unobserved": jnp.zeros(3)})
    slope = density.unravel(-jax.hessian(density.log_density)(at).diagonal())
    np.testing.assert_allclose(slope["y_unobserved"], 1.0)
