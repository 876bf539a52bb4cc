"""Readings of random programs and of single operations: nothing false is read."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import onebasin as ob
from onebasin.base.precision import precision
from onebasin.inference.symmetries.find import ReadingError
from onebasin.models.reading import rules
from onebasin.models.reading.read import read

from .programs import counted

RNG = np.random.default_rng(3)
X = RNG.normal(size=(12, 3))
Y = RNG.normal(size=12)


def test_nothing_false_is_read_from_random_programs_and_hardly_anything_is_missed():
    total, found, false = counted(range(30))
    assert false == []
    assert found >= 0.95 * total > 100


def test_nothing_false_is_read_from_loops_convolutions_and_branches():
    total, found, false = counted(range(5_000, 5_015), steps=10, deep=True)
    assert false == []
    assert found >= 0.9 * total > 30


def test_nothing_false_is_read_from_rare_operations():
    total, _, false = counted(range(100, 112), odd=True)
    assert false == []
    assert total > 30


def with_(**shapes):
    """Read a function of arrays of these shapes."""

    def call(function):
        with precision("float64"), jax.numpy_rank_promotion("allow"):
            return read(lambda values: function(**values), shapes)

    return call


def sizes(found):
    return {tuple(sorted(each.places)): each.size for each in found.classes}


def test_an_operation_that_is_not_understood_is_named_and_moves_nothing():
    def called_back(a, b):
        shape = jax.ShapeDtypeStruct(a.shape, a.dtype)
        return jnp.sum(jax.pure_callback(np.sort, shape, a)) + jnp.sum(b**2)

    found = with_(a=(3,), b=(4,))(called_back)
    assert found.unknown == ("pure_callback",)
    assert sizes(found) == {("b",): 4}
    assert "pure_callback" in found.fixed["a", 0].what


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda a: jnp.sum(a[jnp.asarray([0, 2, 2, 1])] * jnp.arange(4.0)), "indexed by data"),
        (lambda a: jnp.sum(a * jnp.arange(3.0)), "a constant of shape (3,) differs along it"),
        (lambda a: jnp.sum(jnp.cumsum(a) ** 2), "added up in order"),
        (lambda a: jnp.sum(jnp.sort(a) * a[::-1]), "its order is reversed"),
        (lambda a: a[jnp.argmax(a)] + a[0], "the place of a maximum along it"),
        (lambda a: jax.lax.scan(lambda c, x: (jnp.sin(c + x), None), 0.0, a)[0], "in order"),
    ],
)
def test_an_axis_that_stays_says_why(function, what):
    found = with_(a=(3,))(function)
    assert found.classes == ()
    assert what in found.fixed["a", 0].what


def test_parts_of_an_axis_move_where_the_rest_does_not():
    found = with_(a=(5,))(lambda a: jnp.sum(a[1:] ** 2) * a[0])
    (each,) = found.classes
    assert (each.size, each.places["a"]) == (4, (ob.networks.AxisPart.between(0, 1, 5),))


def test_a_flattened_axis_moves_by_the_factor_that_does():
    kernel = RNG.normal(size=(6, 2, 3))

    def flattened(a, b):  # channels last, then places and channels in one axis
        return jnp.sum(jnp.tanh((kernel @ jnp.ones((3, 1)) * a).reshape(6, -1) @ b))

    found = with_(a=(4,), b=(8,))(flattened)
    assert found.classes[0].places["b"] == (ob.networks.AxisPart.factor(0, (2, 4), 1),)


def test_zeros_take_any_sign_and_numbers_none():
    odd = with_(a=(3,))(lambda a: jnp.sum(jnp.where(a**2 > 1, a, 0.0)) ** 2)
    assert odd.flips == (("a",),)
    other = with_(a=(3,))(lambda a: jnp.sum(jnp.where(a**2 > 1, a, 1.0)) ** 2)
    assert other.flips == ()


def test_what_a_loop_carries_settles_with_labels_and_signs():
    def recurrent(w, u, v):
        def step(state, x):
            return jnp.tanh(state @ w + x * u), None

        end, _ = jax.lax.scan(step, jnp.zeros(4), Y)
        return (end @ v - 1.0) ** 2

    found = with_(w=(4, 4), u=(4,), v=(4,))(recurrent)
    (each,) = found.classes
    assert {n: len(places) for n, places in each.places.items()} == {"u": 1, "v": 1, "w": 2}
    assert [sorted(name for name, _ in own) for own in each.signs] == [["u", "v", "w", "w"]]


def experts(x, y):
    scale = jnp.asarray([1.0, 2.0, 5.0])
    a = numpyro.sample("a", dist.Normal(0, scale).to_event(1))
    weights = numpyro.sample("w", dist.Normal(0, 1).expand([3, 4]).to_event(2))
    out = numpyro.sample("v", dist.Normal(0, 1).expand([4]).to_event(1))
    numpyro.sample("y", dist.Normal(jnp.tanh(x @ weights) @ out + a.sum(), 0.5), obs=y)


def test_find_symmetry_says_what_was_read_and_why_other_axes_stay():
    found = ob.find_symmetry(ob.numpyro_model(experts, {"x": X, "y": Y}))
    assert found.words == ("+-w:1,+-v",)
    assert [block.source for block in found.blocks] == ["read"]
    assert set(found.fixed) == {"a:0", "w:0"}
    assert "prior of a" in found.fixed["a:0"]
    assert found.fixed["w:0"].endswith("in y")
    assert "Read from the program" in repr(found)
    assert "proof" not in repr(found)
    assert found.to_dict()["fixed"] == dict(found.fixed)


def test_what_the_log_density_contradicts_is_a_fault_of_the_reader(monkeypatch):
    def careless(walk, eqn, args):  # as if the order did not matter
        return args[0]

    monkeypatch.setitem(rules.RULES, "cumsum", careless)
    target = ob.target(lambda p: -jnp.sum(jnp.cumsum(p["a"]) ** 2), {"a": ("real", 3)})
    with pytest.raises(ReadingError, match="bug in onebasin"):
        ob.find_symmetry(target)


def test_a_network_of_many_parameters_is_read_and_hardly_evaluated():
    shapes = {"a": (30, 100), "b": (100, 60), "c": (60, 2)}
    x = RNG.normal(size=(5, 30))

    def network(p):
        hidden = jnp.tanh(jnp.tanh(x @ p["a"]) @ p["b"])
        return -jnp.sum((hidden @ p["c"] - x[:, :2]) ** 2) - sum(jnp.sum(v**2) for v in p.values())

    found = ob.find_symmetry(ob.target(network, {n: ("real", s) for n, s in shapes.items()}))
    assert set(found.words) == {"+-a:1,+-b", "+-b:1,+-c"}
    assert found.evaluations < 100
    assert "9,120 parameters are too many" in found.open[0]


def test_whatever_branch_is_taken_its_axes_count():
    def branched(a, b, c):
        return jnp.sum(jax.lax.cond(c > 0, lambda: a, lambda: b) * jnp.arange(3.0))

    assert with_(a=(3,), b=(3,), c=())(branched).classes == ()


def test_a_tiled_array_leaves_the_order_of_its_copies_free():
    found = with_(p=(6,), q=(3,))(lambda p, q: jnp.sum(jnp.sin(p + jnp.tile(q, 2))))
    assert sizes(found) == {("p",): 2, ("p", "q"): 3}


def test_a_constant_is_looked_at_to_its_end():
    found = with_(a=(15,))(lambda a: jnp.sum(a * jnp.where(jnp.arange(15) < 12, 1.0, 2.0)))
    assert [each.size for each in found.classes] == [12, 3]


def test_a_result_that_changes_its_sign_shows_none():
    assert with_(a=(3,))(jnp.sum).flips == ()
    assert with_(a=(3,))(lambda a: jnp.sum(a) ** 2).flips == (("a",),)


def test_a_total_knows_no_order_of_what_was_reshaped():
    free = with_(a=(3, 2))(lambda a: jnp.sum(jnp.sin(a.reshape(2, 3))))
    assert sorted(each.size for each in free.classes) == [2, 3]
    bound = with_(a=(3, 2), b=(3,))(lambda a, b: jnp.sum(jnp.sin(a.reshape(2, 3) + b)))
    assert sizes(bound) == {}


def test_entries_that_are_taken_at_known_places_keep_what_order_they_have():
    def taken(places, weigh):
        weights = jnp.arange(1.0, 1 + len(places)) if weigh else 1.0
        found = with_(a=(4,))(lambda a: jnp.sum(jnp.sin(a[np.array(places)]) * weights))
        return [each.size for each in found.classes]

    assert taken([2, 0, 3, 1], weigh=False) == [4]
    assert taken([2, 0, 3, 1], weigh=True) == []
    assert taken([0, 0, 1, 1, 2, 2, 3, 3], weigh=False) == [4]
    assert taken([1, 2, 3], weigh=False) == [3]
    # The last two come once more, so that the first two move only among themselves.
    assert taken([0, 1, 2, 3, 2, 3], weigh=False) == [2, 2]

    table = np.array([[2, 0], [3, 1]])
    assert with_(a=(4,))(lambda a: jnp.sum(a[table] * jnp.arange(4.0).reshape(2, 2))).classes == ()


@pytest.mark.slow
def test_nothing_false_is_read_from_many_rare_operations():
    assert counted(range(30_000, 30_500), odd=True)[2] == []


@pytest.mark.slow
def test_two_thousand_random_programs():
    total, found, false = counted(range(10_000, 11_500))
    more = counted(range(20_000, 20_500), steps=10, deep=True)
    assert false == more[2] == []
    assert found + more[1] >= 0.98 * (total + more[0])
