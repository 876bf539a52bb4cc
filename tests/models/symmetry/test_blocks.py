"""Blocks leave a posterior or its likelihood as it was, and only where they are declared."""

from dataclasses import replace
from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from onebasin.models import (
    BayesianNetwork,
    Exchangeable,
    Group,
    Network,
    NormalPrior,
    Parametrisation,
    Rescalable,
)
from onebasin.models.networks.architecture import ACTIVATIONS, Activation
from onebasin.models.symmetry.elements import Permuted, Scaled

X = np.random.default_rng(1).normal(size=(9, 3))
PRIOR = NormalPrior(1.3, 0.6)


def model_of(parts=("free",), **options):
    options = {"hidden": (4, 4), "out_dim": 2, "activation": "relu", **options}
    network = Network(3, **options)
    return BayesianNetwork(network, prior=PRIOR, parametrisation=Parametrisation(*parts))


def draw_of(model, seed=0):
    """Constrained values that lie in the support."""
    out = {}
    keys = jax.random.split(jax.random.key(seed), len(model.network.layers))
    for key, layer in zip(keys, model.network.layers, strict=True):
        key_weight, key_bias = jax.random.split(key)
        if layer.weight:
            prior = model.parametrisation.weight_prior(layer, 1.0)
            out[layer.weight] = prior.sample(key_weight)
        if layer.bias:
            out[layer.bias] = model.parametrisation.bias_prior(layer, 1.0).sample(key_bias)
    return {**out, "sigma": jnp.array(0.6)}


def at(model, draw):
    """Outputs and log density of a model at a draw; not compiled, as the models are small and many."""
    y = np.random.default_rng(2).normal(size=(len(X), model.network.out_dim))
    density, _ = log_density(model.condition(X, y).numpyro_model, (), {}, draw)
    return model.network.apply(draw, jnp.asarray(X)), float(density)


def changes(before, after):
    """Largest change of an output, in units of the outputs' spread over points; and that of the log density."""
    spread = before[0].std()
    return float(jnp.abs(after[0] - before[0]).max() / spread), abs(after[1] - before[1])


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        (model_of(), [Exchangeable, Rescalable] * 2),
        (model_of(activation="tanh"), [Exchangeable] * 2),
        (model_of(activation="selu"), [Exchangeable] * 2),
        (model_of(("givens",)), [Exchangeable] * 2),
        (model_of(("free", "ordered")), [Rescalable] * 2),
        (model_of(("givens", "ordered")), []),
        (model_of(readout="sum", out_dim=1), [Exchangeable, Rescalable, Exchangeable]),
        (model_of(skip="orthogonal"), []),
        (model_of(skip="orthogonal", activation="tanh"), []),
    ],
)
def test_architecture_and_parametrisation_decide_the_blocks(model, kinds):
    assert [type(block) for block in model.symmetry] == kinds


# Random elements of the whole group: all blocks at once, layers of unequal width

DEPTHS = {"one layer": (5,), "two layers": (4, 6), "three layers": (3, 5, 4)}
KINDS = {
    "relu": {},
    "tanh": {"activation": "tanh"},
    "erf": {"activation": "erf"},
    "identity": {"activation": "identity"},
    "sum": {"readout": "sum", "out_dim": 1},
    "sum, tanh": {"readout": "sum", "out_dim": 1, "activation": "tanh"},
    "silu": {"activation": "silu"},
    "relu, no biases": {"biases": False},
    "tanh, no biases": {"activation": "tanh", "biases": False},
    "unit norm": {"parts": ("givens",)},
    "unit norm, seamless": {"parts": ("givens_seamless",)},
    "unit norm, ordered": {"parts": ("unit_vector", "ordered")},
    "ordered": {"parts": ("free", "ordered")},
    "ordered, odd": {"parts": ("free", "ordered"), "activation": "erf"},
    "skips": {"skip": "orthogonal", "activation": "erf"},
}
# Every kind once, at depths in turn; the two activations whose groups differ at every depth.
COMBINATIONS = sorted(
    {(kind, [*DEPTHS][i % 3]) for i, kind in enumerate(KINDS)}
    | set(product(("relu", "tanh"), DEPTHS))
)


@pytest.fixture
def erf(monkeypatch):
    """An odd activation that the table does not have: being odd is all that counts."""
    monkeypatch.setitem(ACTIVATIONS, "erf", Activation("erf", jax.scipy.special.erf, odd=True))


def in_support(model, draw):
    """Whether every weight and bias lies in the support of its prior, which densities do not check."""
    parametrisation, layers = model.parametrisation, model.network.layers
    weights = [
        parametrisation.weight_prior(a, 1.0).support(draw[a.weight]) for a in layers if a.weight
    ]
    biases = [parametrisation.bias_prior(a, 1.0).support(draw[a.bias]) for a in layers if a.bias]
    return all(map(bool, weights + biases))


def still(block, size):
    return Scaled(np.ones(size)) if isinstance(block, Rescalable) else None


@pytest.mark.usefixtures("erf")
@pytest.mark.parametrize(("kind", "depth"), COMBINATIONS)
def test_random_elements_keep_predictions_and_density(rng, kind, depth):
    model = model_of(**{"hidden": DEPTHS[depth], **KINDS[kind]})
    group = Group(model.symmetry, model.network.shapes)
    draw = draw_of(model)
    before = at(model, draw)
    for element in (group.random(rng), group.random(rng)):
        assert changes(before, at(model, group.act(element, draw)))[0] < 1e-9
        # Scalings keep the likelihood alone: not the density, nor the order of biases.
        unscaled = tuple(
            still(block, size) or part
            for block, size, part in zip(model.symmetry, group.sizes, element, strict=True)
        )
        moved = group.act(unscaled, draw)
        assert changes(before, at(model, moved))[1] < 1e-8
        assert in_support(model, moved)


def test_an_activation_that_only_says_it_is_odd_is_found_out(monkeypatch, rng):
    # Negative control of the test above.
    claimed = replace(ACTIVATIONS["softplus"], odd=True)
    monkeypatch.setitem(ACTIVATIONS, "softplus", claimed)
    model = model_of(activation="softplus")
    group = Group(model.symmetry, model.network.shapes)
    draw = draw_of(model)
    before = at(model, draw)
    elements = [group.random(rng) for _ in range(5)]
    assert min(changes(before, at(model, group.act(e, draw)))[0] for e in elements) > 0.1


def moving(group, rng, num):
    """Random elements whose every permutation moves something."""
    found = []
    while len(found) < num:
        element = group.random(rng)
        fixed = (np.arange(size) for size in group.sizes)
        if not any((p.permutation == f).all() for p, f in zip(element, fixed, strict=True)):
            found.append(element)
    return found


def permutations_of(model, **options):
    """The blocks that a plain network of the same sizes would have, without scalings."""
    plain = BayesianNetwork(Network(3, model.network.hidden, model.network.out_dim))
    return tuple(replace(b, **options) for b in plain.symmetry if isinstance(b, Exchangeable))


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("activation", ["relu", "tanh", "identity"])
def test_orthogonal_skips_leave_no_element(rng, activation, depth):
    model = model_of(hidden=DEPTHS[depth], activation=activation, skip="orthogonal")
    assert model.symmetry == ()
    draw = draw_of(model)
    before = at(model, draw)
    for flips in (False, True):
        group = Group(permutations_of(model, flips=flips), model.network.shapes)
        for element in moving(group, rng, 2):
            assert min(changes(before, at(model, group.act(element, draw)))) > 0.1


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_ordered_biases_leave_one_permutation_in_the_support(rng, activation, depth):
    model = model_of(("free", "ordered"), hidden=DEPTHS[depth], activation=activation)
    group = Group(permutations_of(model), model.network.shapes)
    draw = draw_of(model)
    before = at(model, draw)
    for element in moving(group, rng, 2):
        moved = group.act(element, draw)
        assert changes(before, at(model, moved))[0] < 1e-9  # the function is the same
        for layer in model.network.layers[:-1]:
            support = model.parametrisation.bias_prior(layer, 1.0).support
            assert support(draw[layer.bias])
            assert not support(moved[layer.bias])


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("activation", ["relu", "silu", "softplus"])
def test_flips_change_a_network_that_is_not_odd(rng, activation, depth):
    model = model_of(hidden=DEPTHS[depth], activation=activation)
    group = Group(permutations_of(model, flips=True), model.network.shapes)
    draw = draw_of(model)
    before = at(model, draw)
    for element in moving(group, rng, 2):
        unsigned = tuple(Permuted(p.permutation, np.ones_like(p.signs)) for p in element)
        assert changes(before, at(model, group.act(unsigned, draw)))[1] < 1e-8
        negative = tuple(Permuted(p.permutation, -np.ones_like(p.signs)) for p in element)
        assert min(changes(before, at(model, group.act(negative, draw)))) > 0.1


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_no_part_of_the_variables_moves_alone(rng, activation, depth):
    model = model_of(hidden=DEPTHS[depth], activation=activation)
    draw = draw_of(model)
    before = at(model, draw)
    for block in permutations_of(model):
        for size in (1, 2):
            for names in combinations(block.axes, size):
                part = Exchangeable({n: block.axes[n] for n in names})
                (element,) = moving(Group((part,), model.network.shapes), rng, 1)
                assert min(changes(before, at(model, part.act(draw, *element[0])))) > 0.03


@pytest.mark.parametrize("activation", ["tanh", "silu", "selu", "softplus"])
def test_scaling_changes_a_network_that_is_not_homogeneous(activation):
    model = model_of(activation=activation)
    draw = draw_of(model)
    before = at(model, draw)
    for block in (b for b in model_of().symmetry if isinstance(b, Rescalable)):
        assert changes(before, at(model, block.act(draw, np.full(4, 3.0))))[0] > 0.1
