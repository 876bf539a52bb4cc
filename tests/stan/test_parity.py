"""The Stan programs and the NumPyro models are the same posterior: log density and gradient agree.

At 20 random points of the unconstrained space, up to one constant a model. The interpreter evaluates
the Stan side; `make test-all` compares the compiled programs too. The NumPyro side runs without `jit`: the models are
small and many, operations of the same shape are compiled once for all of them, and a graph a model
would take several times as long to compile as the models take to run.
"""

from collections.abc import Iterable
from itertools import combinations, cycle, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer.util import initialize_model, potential_energy

from onebasin.models import ACTIVATIONS
from onebasin.models.networks.parametrisation import BIASES, WEIGHTS
from onebasin.networks import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NormalPrior,
    Parametrisation,
)
from onebasin.stan.library import open_library
from onebasin.stan.network import pack_unconstrained
from onebasin.stan.program import definition

pytestmark = pytest.mark.stan


def covering(axes: dict[str, Iterable[Any]], strength: int) -> list[dict[str, Any]]:
    """Choose few combinations in which all values of any `strength` axes meet: greedy, and always the same.

    Every row takes, of all combinations, the first that brings most meetings not seen before.
    """
    names = list(axes)
    every = list(product(*(list(values) for values in axes.values())))

    def meetings(row: tuple) -> set[tuple]:
        return {
            (places, tuple(map(repr, (row[p] for p in places))))
            for places in combinations(range(len(names)), strength)
        }

    due: set[tuple] = set().union(*map(meetings, every))
    chosen = []
    while due:
        best = max(every, key=lambda row: len(due & meetings(row)))
        due -= meetings(best)
        chosen.append(dict(zip(names, best, strict=True)))
    return chosen


NUM_POINTS = 20
NUM_OBS = 7
IN_DIM = 4
# No two neighbours alike, so that a matrix read the wrong way round shows; few shapes, so that few
# operations are compiled.
HIDDEN = {1: (3,), 2: (3, 2), 3: (3, 2, 3)}
LIKELIHOODS = {
    "unknown-noise": (Gaussian(noise_scale=0.7), 1),
    "known-noise": (Gaussian(noise_sd=0.4), 1),
    "two-outputs": (Gaussian(), 2),
    "predicted-noise": (Gaussian(noise_sd="predicted", noise_scale=0.7), 1),
    "categorical": (Categorical(), 3),
}
CHARTS = tuple(word for word in WEIGHTS if word != "free")


def network(hidden=HIDDEN[2], likelihood="unknown-noise", prior=None, parts=("free",), **options):
    """A model; `parts` are the parametrisation's words."""
    noise, out_dim = LIKELIHOODS[likelihood]
    options = {"activation": "relu", "skip_seed": 3, **options}
    return BayesianNetwork(
        Network(IN_DIM, hidden, out_dim, **options),
        noise,
        prior or NormalPrior(1.5, 0.8),
        Parametrisation(*parts),
    )


def conditioned(model, rng):
    net = model.network
    x = rng.normal(size=(NUM_OBS, net.in_dim))
    if model.is_classifier:
        return model.condition(x, rng.integers(0, net.out_dim, NUM_OBS))
    return model.condition(x, rng.normal(size=(NUM_OBS, net.out_dim)))


def unconstrained_shapes(target):
    """Shape of every site in NumPyro's unconstrained space."""
    shapes = {}

    def run():
        model = handlers.seed(target.numpyro_model, jax.random.key(0))
        for name, site in handlers.trace(model).get_trace().items():
            if not site["is_observed"]:
                transform = biject_to(site["fn"].support)
                shapes[name] = transform.inverse_shape(site["value"].shape)

    jax.eval_shape(run)
    return shapes


def numpyro_side(target, points):
    """Log densities (point) and gradients, a dict of (point, ...)."""

    def log_density(values):
        return -potential_energy(target.numpyro_model, (), {}, values)

    def total(values):
        lp = jax.vmap(log_density)(values)
        return lp.sum(), lp

    # Each point enters one term of the sum, so this is the gradient at every point.
    gradient, lp = jax.jit(jax.grad(total, has_aux=True))(points)
    return np.asarray(lp), {name: np.asarray(g) for name, g in gradient.items()}


def packed(target, point):
    """A point of NumPyro's unconstrained space as Stan's unconstrained vector."""
    parts = pack_unconstrained(target, point)
    return np.concatenate([parts["weights_raw"], parts["biases_raw"], np.log(parts["sigma"])])


def unpacked(target, gradient, shapes):
    """A gradient over Stan's unconstrained vector, as arrays of NumPyro's unconstrained space."""
    layers, by_rows = target.model.network.layers, target.model.parametrisation.unit_norm
    orders = [(layer.weight, "C" if layer.hidden and by_rows else "F") for layer in layers]
    out = {}
    for name, order in orders + [(layer.bias, "C") for layer in layers]:
        if name:
            size = int(np.prod(shapes[name]))
            out[name], gradient = (
                gradient[:size].reshape(shapes[name], order=order),
                gradient[size:],
            )
    return out | ({"sigma": gradient[0]} if target.model.infers_noise else {})


def stan_side(target, points, engine):
    """The same as `numpyro_side`, from the Stan program."""
    library = open_library(definition(target), engine=engine)
    rows = [packed(target, {n: v[i] for n, v in points.items()}) for i in range(NUM_POINTS)]
    lp, slopes = library.log_density_gradient(np.array(rows))
    shapes = {name: v.shape[1:] for name, v in points.items()}
    gradients = [unpacked(target, slope, shapes) for slope in slopes]
    return lp, {n: np.array([g[n] for g in gradients]) for n in shapes}


def check_parity(model, engine="stanli"):
    rng = np.random.default_rng(11)
    target = conditioned(model, rng)
    shapes = unconstrained_shapes(target)
    points = {n: rng.normal(size=(NUM_POINTS, *s)) for n, s in shapes.items()}
    lp, gradient = numpyro_side(target, points)
    stan_lp, stan_gradient = stan_side(target, points, engine)
    # Differences to the first point: free of the constant.
    np.testing.assert_allclose(stan_lp[1:] - stan_lp[0], lp[1:] - lp[0], rtol=1e-8)
    assert np.ptp(lp) > 1  # the points do differ
    largest = max(np.abs(g).max() for g in gradient.values())
    assert stan_gradient.keys() == gradient.keys()
    for name, g in gradient.items():
        np.testing.assert_allclose(
            stan_gradient[name], g, rtol=1e-8, atol=1e-8 * largest, err_msg=name
        )


AXES = {
    "weights": WEIGHTS,
    "biases": ("none", *BIASES),
    "likelihood": tuple(LIKELIHOODS),
    "depth": tuple(HIDDEN),
    "skip": (None, "orthogonal"),
}


def combined(weights, biases, likelihood, depth, skip, **options):
    options |= {"biases": False} if biases == "none" else {}
    parts = (weights,) if biases == "none" else (weights, biases)
    return network(HIDDEN[depth], likelihood, parts=parts, skip=skip, **options)


CHARTS_GO_WITH = cycle(("relu", "identity", "leaky_relu"))
FREE_GO_WITH = cycle(("tanh", "selu", "softplus", "silu", "relu"))
CHOSEN = [
    {**row, "activation": next(FREE_GO_WITH if row["weights"] == "free" else CHARTS_GO_WITH)}
    for row in covering(AXES, 2)
]
SCALES = {1: (0.5, 1.5), 2: (0.5, 1.5, 3.0), 3: (0.5, 1.5, 3.0, 0.8)}
"""Of a prior with a scale a layer, by depth."""


def test_the_combinations_have_every_activation():
    assert {row["activation"] for row in CHOSEN} == set(ACTIVATIONS)


@pytest.mark.parametrize(
    "number", range(len(CHOSEN)), ids=lambda n: "-".join(map(str, CHOSEN[n].values()))
)
def test_parity_of_combinations_that_cover_any_two_choices(number):
    """Every other prior has a scale a layer."""
    row, options = CHOSEN[number], {}
    if number % 2:
        scales = SCALES[row["depth"]]
        options["prior"] = NormalPrior(scales, scales[::-1])
    check_parity(combined(**row, **options))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["stanli", "cmdstan"])
@pytest.mark.parametrize(
    "row", list(product(*AXES.values())), ids=lambda row: "-".join(map(str, row))
)
def test_parity_of_every_combination(engine, row):
    check_parity(combined(*row), engine)


# What the combinations leave out: a plain sum, unusual sizes.


@pytest.mark.parametrize(("biases", "depth"), [("none", 2), ("free", 3), ("ordered", 1)])
def test_parity_of_a_plain_sum(biases, depth):
    likelihood = ("unknown-noise", "known-noise")[depth % 2]
    check_parity(combined("free", biases, likelihood, depth, None, readout="sum"))


@pytest.mark.parametrize("chart", CHARTS)
def test_parity_of_two_inputs(chart):
    # No latitudes at all in the first layer.
    model = BayesianNetwork(Network(2, (3,)), parametrisation=Parametrisation(chart))
    check_parity(model)
    if chart == "givens":  # one hidden unit
        parts = Parametrisation(chart, "ordered")
        check_parity(BayesianNetwork(Network(2, (1,)), parametrisation=parts))


def test_parity_at_the_size_of_boston():
    parts = Parametrisation("givens_seamless", "ordered")
    model = BayesianNetwork(Network(13, (50,)), parametrisation=parts)
    check_parity(model)


def test_log_density_is_that_of_numpyros_samplers():
    # What this module compares is what `initialize_model` hands to NUTS and SVI.
    target = conditioned(network(parts=("givens", "ordered")), np.random.default_rng(5))

    @jax.jit
    def initialise(rng_key):
        info = initialize_model(rng_key, target.numpyro_model, validate_grad=False)
        return info.param_info.z, info.potential_fn(info.param_info.z)

    z, potential = initialise(jax.random.key(1))
    assert {n: v.shape for n, v in z.items()} == unconstrained_shapes(target)
    lp, _ = numpyro_side(target, {n: jnp.stack([v] * NUM_POINTS) for n, v in z.items()})
    np.testing.assert_allclose(lp, -potential, rtol=1e-10)
