"""Log densities of NumPyro models, of modules of networks, and of models that have none."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from numpyro.contrib.control_flow import scan
from numpyro.contrib.module import random_eqx_module, random_flax_module, random_nnx_module
from numpyro.handlers import scope
from numpyro.infer.util import initialize_model
from scipy import stats

import onebasin as ob
from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.precision import precision
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
    expected = stats.multivariate_normal(MEAN, COVARIANCE).logpdf(values["x"]) + np.log(1.7)
    expected += stats.gamma(SHAPE, scale=1 / RATE).logpdf(1.7)
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
    with pytest.raises(
        ValueError, match=r"`rows` selects observations, .* 'mixture' is not a network"
    ):
        density.log_likelihood(jnp.zeros(density.size), jnp.array([0]))


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
    theirs = jax.vmap(density.ravel)(info.param_info.z)
    np.testing.assert_array_equal(density.random_starts(keys, 1.5), theirs)


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


def test_a_distribution_without_a_density_is_refused():
    def model() -> None:
        numpyro.sample("x", dist.Delta(jnp.zeros(2)).to_event(1))

    with pytest.raises(ValueError, match=r"x of .* has a Delta distribution, which has no density"):
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
    share = float(values["below"] / values["top"])
    assert share == pytest.approx(1 / (1 + np.exp(-2.0)), rel=1e-12)


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
        (_some_rows, "only 3 of the 9 rows of plate rows .*Omit `subsample_size`"),
        (_random_mask, "depends on random numbers from `numpyro.prng_key`"),
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

    mask = jnp.array([True, False, True])
    density = density_of(Target("some", numpyro_model=lambda: model(mask)))
    at = density.ravel({"mu": jnp.zeros(()), "y_unobserved": jnp.zeros(3)})
    slope = density.unravel(-jax.hessian(density.log_density)(at).diagonal())
    np.testing.assert_allclose(slope["y_unobserved"], 1.0)


nn = pytest.importorskip("flax.linen")
nnx = pytest.importorskip("flax.nnx")
eqx = pytest.importorskip("equinox")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 2)), RNG.normal(size=6)


class _Linen(nn.Module):
    norm: str = ""
    dropout: bool | None = None  # whether it is switched off

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(3)(x)
        if self.norm:
            x = nn.BatchNorm(use_running_average=self.norm == "stored")(x)
        if self.dropout is not None:
            x = nn.Dropout(0.5, deterministic=self.dropout)(x)
        return nn.Dense(1)(nn.tanh(x))[..., 0]


class _Nnx(nnx.Module):
    def __init__(self, norm=False):
        rngs = nnx.Rngs(0)
        self.layers = nnx.List([nnx.Linear(2, 3, rngs=rngs), nnx.Linear(3, 1, rngs=rngs)])
        self.norm = nnx.BatchNorm(3, rngs=rngs) if norm else lambda x: x

    def __call__(self, x):
        return self.layers[1](jnp.tanh(self.norm(self.layers[0](x))))[..., 0]


def _model(make):
    """A model of a network's outputs with noise of sd 0.5."""

    def network(x, y=None):
        numpyro.sample("y", dist.Normal(make()(x), 0.5), obs=y)

    return ob.numpyro_model(network, {"x": X, "y": Y})


def _flax(prior, **module):
    key = {"mutable": ["batch_stats"]} if module.get("norm") else {}
    return lambda: random_flax_module("net", _Linen(**module), prior, input_shape=(4, 2), **key)


def _equinox():
    own = eqx.nn.MLP(2, "scalar", 3, 1, activation=jnp.tanh, key=jax.random.key(0))
    return jax.vmap(random_eqx_module("net", own, dist.Normal(0, 1)))


PRIORS = {"kernel": dist.Normal(0, 1), "bias": dist.Normal(0, 2)}
LINEN = ("net.Dense_0.kernel", "net.Dense_0.bias", "net.Dense_1.kernel", "net.Dense_1.bias")
LISTS = [f"net.layers.{layer}.{part}" for layer in (0, 1) for part in ("kernel", "bias")]
MODELS = {
    "flax": (_flax(dist.Normal(0, 1)), LINEN, 1.0),
    "flax, a function": (_flax(lambda name, shape: PRIORS[name.split(".")[1]]), LINEN, 2.0),
    "flax, by name": (_flax({n[4:]: PRIORS[n.split(".")[2]] for n in LINEN}), LINEN, 2.0),
    "nnx": (lambda: random_nnx_module("net", _Nnx(), dist.Normal(0, 1)), LISTS, 1.0),
    "equinox": (_equinox, [n.replace("kernel", "weight") for n in LISTS], 1.0),
}


def _at(target, point=None):
    """The log density and log likelihood at a point, drawn where none is given, twice by one compiled function."""
    with precision("float64"):
        density = density_of(target)
        shapes = {n: chart.shape for n, chart in density.charts.items()}
        point = point or {n: RNG.normal(size=shape) for n, shape in shapes.items()}
        both = jax.jit(lambda v: (density.log_density(v), density.log_likelihood(v).sum()))
        vector = jnp.concatenate([point[n].ravel() for n in density.order])
        first, again = ([float(value) for value in both(vector)] for _ in range(2))
    assert first == again
    return point, *first


@pytest.mark.parametrize("name", MODELS)
def test_density_of_a_module_is_that_of_its_network(name):
    make, names, bias_sd = MODELS[name]
    point, found, _ = _at(_model(make))
    assert set(point) == set(names)
    w0, b0, w1, b1 = (np.transpose(point[n]) if "weight" in n else point[n] for n in names)
    output = (np.tanh(X @ w0 + b0) @ w1 + b1)[:, 0]
    right = stats.norm.logpdf(Y, output, 0.5).sum()
    right += sum(stats.norm.logpdf(w).sum() for w in (w0, w1))
    right += sum(stats.norm.logpdf(b, scale=bias_sd).sum() for b in (b0, b1))
    assert found == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("norm", ["stored", "of the batch"])
def test_state_of_a_module_stays_as_it_was(norm):
    """It would hold what JAX traced, and change from one evaluation to the next."""
    target = _model(_flax(dist.Normal(0, 1), norm=norm))
    point, _, likelihood = _at(target)
    assert _at(target, point)[2] == likelihood
    hidden = X @ point[LINEN[0]] + point[LINEN[1]]
    centre, spread = (hidden.mean(0), hidden.std(0)) if norm == "of the batch" else (0, 1)
    hidden = (hidden - centre) / np.sqrt(np.square(spread) + 1e-5)
    hidden = np.tanh(hidden * point["net.BatchNorm_0.scale"] + point["net.BatchNorm_0.bias"])
    output = (hidden @ point[LINEN[2]] + point[LINEN[3]])[:, 0]
    # Flax keeps the state in single precision.
    assert likelihood == pytest.approx(stats.norm.logpdf(Y, output, 0.5).sum(), rel=1e-4)


@pytest.mark.parametrize("off", [True, False])
def test_dropout_is_rejected_unless_it_is_switched_off(off):
    def make():
        module = _Linen(dropout=off)
        net = random_flax_module("net", module, dist.Normal(0, 1), input_shape=(4, 2))
        return lambda x: net(x, rngs={"dropout": numpyro.prng_key()})

    if off:
        point, plain, _ = _at(_model(_flax(dist.Normal(0, 1))))
        assert _at(_model(make), point)[1] == plain
    else:
        with pytest.raises(ArgumentError, match="random numbers"):
            density_of(_model(make))


def _scoped(x, y=None):
    with scope(prefix="left"), numpyro.plate("unit", 2):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
    with scope(prefix="right", divider="::"):
        numpyro.deterministic("total", mu.sum())
    numpyro.sample("y", dist.Normal(mu[0] * mu[1] * x, 1), obs=y)


def _sampled(**more):
    data = {"x": X[:, 0], "y": Y}
    target = ob.numpyro_model(_scoped, data, dims={"left/mu": ("left/side",)}, **more)
    settings = {"chains": 2, "warmup": 20, "draws": 20, "seed": 1}
    return target, ob.nuts(target, init={"left/mu": [0.5, 1.0]}, **settings)


def test_names_of_a_model_are_read_as_the_user_spells_them(tmp_path):
    block = ob.Exchangeable({"left/mu": 0})
    target, posterior = _sampled(symmetry=(block,), coords={"left/side": ["a/b", "c"]})
    assert target.symmetry == (ob.Exchangeable({"left.mu": 0}),)
    ob.save(posterior, tmp_path / "run.nc")
    read = ob.open_posterior(tmp_path / "run.nc")
    assert set(read.posterior) == {"left.mu", "right::total"}
    assert read.posterior["left.mu"].dims[2:] == ("left.side",)
    assert list(read.posterior["left.side"].values) == ["a/b", "c"]
    for name in ("left/mu", "left.mu"):
        assert list(ob.summary(read, var_names=name).index) == ["left.mu[a/b]", "left.mu[c]"]
        aligned = ob.align(read, symmetry=name)
        assert aligned.symmetry == target.symmetry
    assert ob.plot.pair(read, "left/mu[a/b]", "left.mu[c]").axes
    predicted = ob.predict(read, {"x": np.ones(3)}, model=target)
    assert predicted.tree["predictions"]["y"].shape == (2, 20, 3)


def test_two_names_that_become_one_are_rejected():
    def twice():
        numpyro.sample("a.b", dist.Normal())
        with scope(prefix="a"):
            numpyro.sample("b", dist.Normal())

    with pytest.raises(ArgumentError, match=r"a\.b and a/b"):
        density_of(ob.numpyro_model(twice))
    target = ob.numpyro_model(_scoped, {"x": X[:, 0], "y": Y})
    assert float(ob.log_density(target, {"left/mu": [0.5, 1.0]})) < 0
    with pytest.raises(ArgumentError, match=r"left\.mu"):
        ob.nuts(target, init={"left/mu": [0, 0], "left.mu": [0, 0]}, chains=1, draws=5)


def test_scopes_inside_a_scan_are_given_their_values():
    """They would be drawn again in every evaluation: a scan runs its body apart from other handlers."""

    def walk(y):
        def step(last, _):
            with scope(prefix="s"):
                now = numpyro.sample("z", dist.Normal(last, 1))
            return now, now

        numpyro.sample("y", dist.Normal(scan(step, 0.0, jnp.arange(6))[1], 0.5), obs=y)

    z = RNG.normal(size=6)
    right = stats.norm.logpdf(np.diff(z, prepend=0)).sum() + stats.norm.logpdf(Y, z, 0.5).sum()
    assert _at(ob.numpyro_model(walk, {"y": Y}), {"s.z": z})[1] == pytest.approx(right)


def test_posterior_of_a_module_is_drawn_stored_and_predicted(tmp_path):
    target = _model(_equinox)
    fit = ob.laplace(target, draws=50, seed=1, weights=False, symmetry=False)
    ob.save(fit, tmp_path / "fit.nc")
    read = ob.open_posterior(tmp_path / "fit.nc")
    assert set(read.posterior) == set(MODELS["equinox"][1])
    predicted = ob.predict(read, {"x": X[:2]}, model=target)
    assert predicted.tree["predictions"]["y"].shape == (1, 50, 2)
