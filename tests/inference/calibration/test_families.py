"""Families draw parameters and data as the model states them, and are looked at modulo symmetry."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import onebasin as ob
from onebasin.inference.calibration.family import MOST_ENTRIES, Looking, rank, simulated
from onebasin.inference.calibration.result import p_value
from onebasin.models.symmetry.closest import canonical
from onebasin.models.symmetry.group import Group


def test_a_numpyro_model_draws_what_it_observes():
    def line(x, noise, y=None):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        numpyro.deterministic("twice", 2 * slope)
        numpyro.sample("obs", dist.Normal(slope * x, noise), obs=y)

    x = np.linspace(-1, 1, 4)
    family = ob.truth.Family.of_numpyro(line, {"x": x, "noise": 1e-6}, observed={"y": "obs"})
    parameters, data = family.simulate(np.random.default_rng(1))
    assert set(parameters) == {"slope", "twice"} and list(data) == ["y"]
    assert np.allclose(data["y"], parameters["slope"] * x, atol=1e-4)
    assert parameters["twice"] == 2 * parameters["slope"]
    other, _ = family.simulate(np.random.default_rng(2))
    assert other["slope"] != parameters["slope"]
    assert family.condition(data).data["y"] is not None
    with pytest.raises(ob.OnebasinError, match="`observed` is y, but the model draws no site y"):
        ob.truth.Family.of_numpyro(
            lambda y=None: numpyro.sample("obs", dist.Normal(), obs=y), observed="y"
        ).simulate(np.random.default_rng(0))


@pytest.mark.parametrize("weights", ["free", "givens"])
def test_a_network_draws_weights_of_its_parametrisation(weights):
    model = ob.networks.BayesianNetwork(
        ob.networks.Network(2, (3,)),
        parametrisation=ob.networks.Parametrisation(weights, "ordered"),
    )
    family = ob.truth.Family.of_network(model, np.ones((5, 2)))
    simulation = simulated(family, 0, 0)
    norms = np.linalg.norm(simulation.parameters["W1"], axis=0)
    assert np.allclose(norms, 1) == (weights == "givens")
    assert (np.diff(simulation.parameters["b1"]) > 0).all()
    target = family.condition(simulation.data)
    assert np.isfinite(float(ob.log_density(target, simulation.parameters)))


def test_a_simulation_follows_from_seed_and_number():
    family = ob.truth.Family("one", lambda rng: ({"mu": rng.normal()}, {}), lambda data: None)
    first, again, next_one = (simulated(family, 3, number) for number in (5, 5, 6))
    assert first.parameters == again.parameters and first.seed == again.seed
    assert first.parameters != next_one.parameters and first.seed != next_one.seed


@pytest.mark.parametrize(
    "symmetry",
    [
        (ob.Exchangeable({"mu": 0, "sigma": 0}, complements=("theta",)),),
        (ob.Exchangeable({"W": 1, "b": 0}, flips=True),),
        (ob.Exchangeable({"A": (0, 1), "mu": 0}),),
        (ob.Flip(("mu", "W")),),
        (ob.Complement(("theta",)),),
    ],
)
def test_the_canonical_labelling_is_the_same_for_all_that_relabelling_makes_of_a_draw(symmetry):
    rng = np.random.default_rng(1)
    shapes = {"mu": (2,), "sigma": (2,), "theta": (), "W": (3, 2), "b": (2,), "A": (2, 2)}
    draws = {name: rng.uniform(-1, 1, size=(20, *shape)) for name, shape in shapes.items()}
    draws["theta"] = (draws["theta"] + 1) / 2
    group = Group(symmetry, shapes)
    moved = group.act(group.random(rng, (20,)), draws)
    assert any(not np.allclose(moved[name], draws[name]) for name in shapes)
    first, second = canonical(symmetry, draws), canonical(symmetry, moved)
    for name in shapes:
        assert np.allclose(first[name], second[name])


def test_what_a_symmetry_moves_is_looked_at_in_one_labelling_alone():
    symmetry = (ob.Exchangeable({"mu": 0}),)
    looking = Looking(symmetry, {"mean": lambda values, data: values["mu"].mean(axis=1)})
    values = {"mu": np.array([[2.0, 1.0], [1.0, 2.0]]), "tau": np.array([0.5, 0.6])}
    found = looking.at(values, {}, {"lp": np.zeros(2)})
    assert list(found) == ["lp", "mean", "mu[0], in order", "mu[1], in order", "tau"]
    assert found["mu[0], in order"].tolist() == [1.0, 1.0]
    long = {"theta": np.arange(200.0).reshape(2, 100)}
    names = list(Looking((), {}).at(long, {}, {}))  # of long variables, some entries
    assert len(names) == MOST_ENTRIES and (names[0], names[-1]) == ("theta[0]", "theta[99]")


def test_aligned_quantities_treat_the_truth_as_any_draw():
    rng = np.random.default_rng(2)
    mu = np.array([-2.0, 2.0]) + 0.3 * rng.normal(size=(60, 2))
    swapped = rng.uniform(size=60) < 0.5
    mu[swapped] = mu[swapped, ::-1]
    aligned = ob.truth.aligned_quantity("mu")({"mu": mu}, {})["mu"]
    assert np.allclose(np.sort(aligned, axis=1), np.sort(mu, axis=1))
    assert np.ptp(aligned, axis=0).max() < 2.5


def test_ranks_of_correlated_draws_are_uniform():
    rng, shares = np.random.default_rng(3), []
    for _ in range(300):
        noise = rng.normal(size=(2, 400))
        draws = np.empty_like(noise)
        draws[:, 0] = noise[:, 0]
        for step in range(1, 400):
            draws[:, step] = 0.8 * draws[:, step - 1] + 0.6 * noise[:, step]
        shares.append(rank(draws, rng.normal(), rng, independent=False).share)
    assert p_value(np.array(shares)) > 1e-3
