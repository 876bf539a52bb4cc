"""Problems: both engines state the same density, the declared symmetry is one, invariants are left alone."""

from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr
from numpyro.handlers import seed, trace

from onebasin.base.precision import precision
from onebasin.inference import check_symmetry, log_density
from onebasin.inference.contracts.method import density_by
from onebasin.models.symmetry.blocks import Group, equal_modes
from onebasin.posteriors.references import open_reference
from onebasin.truth.problems import PROBLEMS
from onebasin.truth.problems.programs import DATA, PROGRAMS, read_data

SHARED = Path(__file__).parents[3] / "notebooks" / "programs"
QUICK = ("relu-teacher-givens+ordered", "tanh-teacher", "boston", "mixture-2")
"""Beginnings of the names of those whose programs other tests compile too. The other programs, half a minute of
compiling each, are held to NumPyro's density by `make slow`."""
SLOW = ("hidden-markov", "topics", "mixture-3", "mixture-5")
"""Symmetries that others show as well, in less time."""
SHARES = {"weight", "A", "start", "share", "phi"}
"""Parameters whose entries add up to 1."""
SYMMETRIC = [name for name, problem in PROBLEMS.items() if equal_modes(problem.target().symmetry)]


def points(name: str) -> dict[str, np.ndarray]:
    """Six points."""
    with precision("float64"):
        return density_by("numpyro", PROBLEMS[name].target()).points(6, 7)


def shapes_of(name: str) -> dict[str, tuple[int, ...]]:
    """Shapes of a problem's parameters, for which nothing is compiled."""
    model = seed(PROBLEMS[name].target().numpyro_model, jax.random.key(0))

    def parameters():
        sites = trace(model).get_trace().values()
        return {
            s["name"]: s["value"] for s in sites if s["type"] == "sample" and not s["is_observed"]
        }

    return {key: value.shape for key, value in jax.eval_shape(parameters).items()}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n.startswith(QUICK) else pytest.mark.slow) for n in PROBLEMS],
)
def test_both_engines_have_the_same_density(name):
    target, at = PROBLEMS[name].target(), points(name)
    dims = {k: ("chain", "draw", *(f"{k}{i}" for i in range(v.ndim - 1))) for k, v in at.items()}
    draws = xr.Dataset({key: (dims[key], value[None]) for key, value in at.items()})
    found = (log_density(target, draws, engine=engine).values for engine in ("numpyro", "stanli"))
    np.testing.assert_allclose(*(np.diff(values) for values in found), rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow if n in SLOW else ())
        for n in SYMMETRIC
        if not PROBLEMS[n].target().is_network
    ],
)
def test_the_declared_symmetry_is_one_of_the_density(name):
    found = check_symmetry(PROBLEMS[name].target(), engine="numpyro", seed=3)
    assert max(found.differences) < 1e-7


@pytest.mark.parametrize("name", SYMMETRIC)
def test_no_relabelling_changes_an_invariant(name, rng):
    problem, shapes = PROBLEMS[name], shapes_of(name)
    draws = {key: rng.uniform(0.1, 0.9, (1, 6, *shape)) for key, shape in shapes.items()}
    for key in SHARES & draws.keys():
        draws[key] /= draws[key].sum(axis=-1, keepdims=True)
    group = Group(equal_modes(problem.target().symmetry), shapes)
    moved = group.act(group.random(rng, (1, 6)), draws)
    assert any(not np.array_equal(moved[key], draws[key]) for key in draws)
    assert problem.invariants
    for function in problem.invariants.values():
        values = function(draws)
        assert values.shape[:2] == (1, 6)
        assert values.ndim in (2, 3)
        np.testing.assert_allclose(function(moved), values, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_reference_has_the_data_of_the_problem(name):
    reference = open_reference(name)
    there = [g for g in ("constant_data", "observed_data") if g in reference]
    groups = [reference[g].to_dataset() for g in there]
    held = {str(n): v.values for group in groups for n, v in group.data_vars.items()}
    target = PROBLEMS[name].target()
    found = {"x": target.x, "y": target.y} if target.is_network else read_data(name)
    assert held
    for key, value in held.items():
        np.testing.assert_allclose(np.ravel(value), np.ravel(found[key]), rtol=1e-12)


@pytest.mark.parametrize(
    ("copy", "data", "shared"),
    [
        ("item_response", "item-response-2pl", "item_response"),
        ("mixture_of_two", "mixture-2", "mixture"),
        ("schools", "eight-schools", "schools"),
    ],
)
def test_programs_and_data_of_the_documentation_are_the_same_files(copy, data, shared):
    assert (PROGRAMS / f"{copy}.stan").read_text() == (SHARED / f"{shared}.stan").read_text()
    assert (DATA / f"{data}.json").read_text() == (SHARED / f"{shared}.json").read_text()


@pytest.mark.parametrize("name", ["mixture-2", "mixture-3", "item-response-2pl", "hidden-markov"])
def test_family_simulates_what_the_problem_is_of(name, rng):
    problem = PROBLEMS[name]
    assert problem.family is not None
    family = problem.family()
    values, data = family.simulate(rng)
    assert {key: np.shape(value) for key, value in values.items()} == shapes_of(name)
    assert np.shape(data["y"]) == np.shape(read_data(name)["y"])
    assert np.isfinite(float(log_density(family.condition(data), values, engine="numpyro")))
    assert family.quantities.keys() == problem.invariants.keys()
