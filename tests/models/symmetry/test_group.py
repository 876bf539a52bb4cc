"""The group of a symmetry, and the blocks of networks with their elements."""

import math
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
    Network,
    NormalPrior,
    Parametrisation,
    Rescalable,
    Rotation,
)
from onebasin.models.networks.architecture import ACTIVATIONS, Activation
from onebasin.models.symmetry.blocks import (
    Complement,
    Counterparts,
    Flip,
    Group,
    from_json,
    to_json,
)
from onebasin.models.symmetry.elements import Permuted, Rotated, Scaled

MIXTURE = {"mu": (3,), "sigma": (3,), "theta": (3,), "other": ()}
NETWORK = {"W1": (2, 3), "b1": (3,), "W2": (3, 4), "b2": (4,), "W3": (4, 1)}
CASES = {
    "mixture": ((Exchangeable({"mu": 0, "sigma": 0, "theta": 0}),), MIXTURE),
    "factors": ((Exchangeable({"L": 1, "scale": 0}, flips=("L",)),), {"L": (5, 3), "scale": (3,)}),
    "rotating factors": (
        (Rotation({"L": 1, "scores": 0, "S": (0, 1)}),),
        {"L": (5, 3), "scores": (3, 7), "S": (3, 3)},
    ),
    "deep tanh": (
        (
            Exchangeable({"W1": 1, "b1": 0, "W2": 0}, flips=True),
            Exchangeable({"W2": 1, "b2": 0, "W3": 0}, flips=True),
        ),
        NETWORK,
    ),
    "deep relu": (
        (
            Exchangeable({"W1": 1, "b1": 0, "W2": 0}),
            Rescalable({"W1": 1, "b1": 0}, {"W2": 0}),
            Exchangeable({"W2": 1, "b2": 0, "W3": 0}),
            Rescalable({"W2": 1, "b2": 0}, {"W3": 0}),
        ),
        NETWORK,
    ),
    "hidden Markov": (
        (Exchangeable({"A": (0, 1), "mu": 0, "start": 0}),),
        {"A": (3, 3), "mu": (3,), "start": (3,)},
    ),
    "two components": (
        (Exchangeable({"mu": 0}, complements=("theta",)),),
        {"mu": (2,), "theta": ()},
    ),
    "binary": ((Complement(("p", "q")),), {"p": (), "q": (4,)}),
    "signs of whole variables": (
        (Flip(("theta", "a"), complements=("p",)),),
        {"theta": (6,), "a": (2, 3), "p": ()},
    ),
    "separate parameters": (
        (
            Counterparts(
                (("m1", "m2", "m3"), ("b1", "b2", "b3")), {"theta": 0}, flips=("b1~b2~b3",)
            ),
        ),
        {
            **dict.fromkeys(("m1", "m2", "m3"), ()),
            **dict.fromkeys(("b1", "b2", "b3"), (2,)),
            "theta": (3,),
        },
    ),
    "positions": (
        (
            Counterparts(
                (("A[0,:]", "A[2,:]"), ("v[1]", "x"), ("x2", "-y"), ("eta", "-eta")),
                complements=("w",),
            ),
            Counterparts((("v[0]", "v[3]"),)),
        ),
        {"A": (3, 2), "v": (4,), **dict.fromkeys(("x", "x2", "y", "eta", "w"), ())},
    ),
}


every_group = pytest.mark.parametrize("group", [Group(*case) for case in CASES.values()], ids=CASES)


def values_of(group: Group, rng: np.random.Generator, lead=()) -> dict[str, np.ndarray]:
    return {name: rng.uniform(size=(*lead, *shape)) for name, shape in group.shapes.items()}


def assert_equal(found, expected) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-14, err_msg=name)


@every_group
def test_a_product_acts_like_its_factors_one_after_the_other(group, rng):
    values = values_of(group, rng, (7,))
    first, then = group.random(rng, (7,)), group.random(rng, (7,))
    expected = group.act(then, group.act(first, values))
    assert_equal(group.act(group.compose(first, then), values), expected)


@every_group
def test_the_inverse_undoes(group, rng):
    values = values_of(group, rng, (7,))
    element = group.random(rng, (7,))
    assert_equal(group.act(group.inverse(element), group.act(element, values)), values)
    assert_equal(group.act(element, group.act(group.inverse(element), values)), values)


@every_group
def test_random_elements_move_something(group, rng):
    values = values_of(group, rng, (50,))
    moved = group.act(group.random(rng, (50,)), values)
    touched = {name for block in group.symmetry for name in block.variables}
    for name, value in values.items():
        assert np.array_equal(moved[name], value) is (name not in touched)


@every_group
def test_each_draw_is_moved_by_its_own_element(group, rng):
    values = values_of(group, rng, (2, 3))
    element = group.random(rng, (2, 3))
    moved = group.act(element, values)
    for place in np.ndindex(2, 3):
        parts = tuple(
            type(part)(*(None if array is None else array[place] for array in part))
            for part in element
        )
        one = group.act(parts, {name: value[place] for name, value in values.items()})
        assert_equal({name: value[place] for name, value in moved.items()}, one)


@pytest.mark.parametrize(
    ("case", "order"),
    [
        ("mixture", 6),
        ("factors", 6 * 8),
        ("deep tanh", (6 * 8) * (24 * 16)),
        ("hidden Markov", 6),
        ("two components", 2),
        ("binary", 2),
        ("separate parameters", 6 * 8),
        ("positions", 2 * 2),
    ],
)
def test_order_counts_the_elements(case, order, rng):
    group = Group(*CASES[case])
    assert group.log_order == pytest.approx(math.log(order), rel=1e-12)
    if order > 100:
        return
    values = values_of(group, rng)
    orbit = {
        tuple(np.concatenate([np.ravel(v) for v in group.act(g, values).values()]).tolist())
        for g in group.elements()
    }
    assert len(orbit) == order
    assert_equal(group.act(next(group.elements()), values), values)


def test_a_transition_matrix_is_permuted_in_rows_and_columns():
    group = Group(*CASES["hidden Markov"])
    matrix = np.arange(9.0).reshape(3, 3)
    order = np.array([2, 0, 1])
    values = {"A": matrix, "mu": np.arange(3.0), "start": np.arange(3.0)}
    moved = group.act((Permuted(order),), values)
    np.testing.assert_array_equal(moved["A"], matrix[order][:, order])
    np.testing.assert_array_equal(moved["mu"], order)


def test_a_rotation_multiplies_components_by_a_matrix_reflections_among_them(rng):
    group = Group(*CASES["rotating factors"])
    values = values_of(group, rng, (40,))
    (part,) = element = group.random(rng, (40,))
    q = part.matrix
    moved = group.act(element, values)
    np.testing.assert_allclose(moved["L"], values["L"] @ np.swapaxes(q, 1, 2), rtol=1e-12)
    np.testing.assert_allclose(moved["scores"], q @ values["scores"], rtol=1e-12)
    np.testing.assert_allclose(moved["S"], q @ values["S"] @ np.swapaxes(q, 1, 2), rtol=1e-12)
    assert {-1.0, 1.0} == set(np.linalg.det(q).round(12))
    assert isinstance(part, Rotated)


def test_the_weight_of_two_components_is_complemented_by_the_swap_alone():
    group = Group(*CASES["two components"])
    values = {"mu": np.array([[1.0, 2.0], [1.0, 2.0]]), "theta": np.array([0.25, 0.25])}
    moved = group.act((Permuted(np.array([[1, 0], [0, 1]])),), values)
    np.testing.assert_array_equal(moved["mu"], [[2, 1], [1, 2]])
    np.testing.assert_array_equal(moved["theta"], [0.75, 0.25])


def test_only_the_named_variables_change_sign():
    group = Group(*CASES["factors"])
    values = {"L": np.ones((5, 3)), "scale": np.ones(3)}
    moved = group.act((Permuted(np.arange(3), np.array([1.0, -1.0, 1.0])),), values)
    np.testing.assert_array_equal(moved["L"][0], [1, -1, 1])
    np.testing.assert_array_equal(moved["scale"], [1, 1, 1])


def apart(*tuples, **along):
    return (Counterparts(tuples, along),)


PAIR = apart(("mu[0]", "mu[1]"))


@pytest.mark.parametrize(
    ("symmetry", "message"),
    [
        (
            (Exchangeable({"muu": 0}),),
            "`symmetry` names muu, which does not exist. The variables are mu, sigma, theta, other",
        ),
        ((Exchangeable({"mu": 1}),), r"moves axis 1 of mu, but the shape of mu is \(3,\)"),
        ((Exchangeable({"mu": -1}),), "moves axis -1 of mu"),
        ((Exchangeable({"other": 0}),), r"moves axis 0 of other, but the shape of other is \(\)"),
        (
            (Exchangeable({"mu": 0}), Exchangeable({"mu": 0, "sigma": 0})),
            "two blocks that move axis 0 of mu",
        ),
        ((Exchangeable({}, complements=("theta",)),), "a block that moves no axis"),
        ((Exchangeable({"mu": 0}, complements=("other",)),), "two components, but the block has 3"),
        ((Complement("thet"),), "names thet, which does not exist"),
        ((Exchangeable({"mu": 0, "w": 0}),), "axis 0 of mu has length 3, axis 0 of w has length 2"),
        ((Rotation({"L": 1}), Exchangeable({"L": 1})), "move axis 1 of L"),
        ((Rotation({"S": 1}),), "with loadings that have at least 3 rows"),
        (apart(("a", "mu")), r"members of a~mu, so they must have equal shapes; got \(\), \(3,\)"),
        (apart(("mu[0]", "mu[3]")), r"but mu has shape \(3,\)\. Choose positions that exist"),
        (apart(("mu[0]", "mu[2]"), ("w[0]", "mu[2]")), "lists some entries of mu twice"),
        (
            apart(("a", "other"), mu=0),
            r"together \(axis 0 of a~other has length 2, axis 0 of mu has length 3\)",
        ),
        (apart(("a", "gone")), "names gone, which does not exist"),
        (
            (*PAIR, Exchangeable({"mu": 0})),
            "Two blocks of `symmetry` move mu: one by exchanges of mu",
        ),
        (
            (*PAIR, *apart(("mu[0]", "a"))),
            "Two blocks of `symmetry` move mu: one by exchanges of mu",
        ),
        ((*PAIR, Flip("mu")), "Two blocks of `symmetry` move mu: one by exchanges of mu"),
    ],
)
def test_symmetry_that_does_not_fit_is_refused(symmetry, message):
    with pytest.raises(ValueError, match=message):
        Group(symmetry, MIXTURE | {"a": (), "w": (2,), "L": (5, 3), "S": (2, 3)})


@pytest.mark.parametrize("case", CASES)
def test_json_keeps_every_block(case):
    symmetry = CASES[case][0]
    assert from_json(to_json(symmetry)) == symmetry
    assert from_json(to_json(())) == ()


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
