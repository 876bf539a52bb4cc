"""Families, one compiled program for many simulations, bands, and errors that calibration detects."""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr
from scipy.special import ndtr
from scipy.stats import kstest

import onebasin as ob
from onebasin.base.precision import precision
from onebasin.inference import Family
from onebasin.inference.calibration import result as bands
from onebasin.inference.calibration.compiled import compiled_chains, compiled_densities
from onebasin.inference.calibration.family import MOST_ENTRIES, Looking, rank, simulated
from onebasin.inference.calibration.result import p_value
from onebasin.models.numpyro_target import numpyro_model
from onebasin.models.symmetry.blocks import Group
from onebasin.models.symmetry.closest import canonical
from onebasin.models.target import Target

from ...analysis.conftest import autoregression


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
    with pytest.raises(ob.OnebasinError, match="`observed` names y, but the model draws no site y"):
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
        draws = autoregression(rng, 0.8, (2, 400))
        shares.append(rank(draws, rng.normal(), rng, independent=False).share)
    assert p_value(np.array(shares)) > 1e-3


def normal(y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(mu, sigma).expand([5]), obs=y)


FAMILY = ob.truth.Family.of_numpyro(normal, observed="y")
GIVENS = ob.networks.Parametrisation("givens")
NETWORK = ob.truth.Family.of_network(
    ob.networks.BayesianNetwork(ob.networks.Network(2, (2,)), parametrisation=GIVENS),
    np.random.default_rng(0).normal(size=(6, 2)),
)
FEW = {"chains": 2, "draws": 4}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "settings"),
    # As long as rounding has not grown: one program sums in another order, and after 20 steps chains part.
    [(FAMILY, ob.Nuts(**FEW, warmup=20)), (NETWORK, ob.Nuts(**FEW, warmup=10))],
)
def test_what_is_drawn_for_many_simulations_is_what_the_method_draws_for_each(family, settings):
    simulations = [simulated(family, 1, number) for number in range(2)]
    drawn = compiled_chains(family, settings)(simulations)
    target = family.condition(simulations[1].data)
    posterior = ob.infer(target, settings, seed=simulations[1].seed)["posterior"]
    for name in posterior:
        assert not np.allclose(drawn[0].draws[name], drawn[1].draws[name])
        np.testing.assert_allclose(drawn[1].draws[name], posterior[name], rtol=1e-6, atol=1e-8)


def test_log_densities_of_many_simulations_are_those_of_each():
    simulations = [simulated(FAMILY, 2, number) for number in range(2)]
    points = [
        {"mu": np.array([0.1, 0.5]), "sigma": np.array([1.0, 2.0])},
        {"mu": np.array([1.0, -1.0]), "sigma": np.array([0.5, 1.0])},
    ]
    found = compiled_densities(FAMILY)(simulations, points)[1]
    y = simulations[1].data["y"]
    expected = dist.Normal(points[1]["mu"][:, None], points[1]["sigma"][:, None]).log_prob(y)
    assert np.allclose(found["log likelihood"], expected.sum(axis=1), rtol=1e-5)
    values = {name: value[0] for name, value in points[1].items()}
    alone = float(ob.log_density(FAMILY.condition(simulations[1].data), values))
    assert np.isclose(found["lp"][0], alone, rtol=1e-10)


def test_data_whose_size_changes_are_refused_in_words():
    def simulate(rng):
        return {"mu": 0.0, "sigma": 1.0}, {"y": np.zeros(rng.integers(3, 9))}

    growing = replace(FAMILY, simulate=simulate)
    simulations = [simulated(growing, 1, number) for number in range(6)]
    with pytest.raises(ValueError, match="`simulate` returned"):
        compiled_chains(growing, ob.Nuts(**FEW, warmup=20))(simulations)


RUNS = 2000


def leave(numbers: np.ndarray, alpha: float) -> np.ndarray:
    """Which runs of numbers (run, number) leave the band of a level."""
    count = numbers.shape[1]
    band = bands.band(count, alpha)
    ecdf = np.stack([bands.counts_below(one) for one in numbers]) / count
    return ((ecdf < band.lower) | (ecdf > band.upper)).any(axis=1)


@pytest.mark.parametrize(("count", "alpha"), [(50, 0.05), (200, 0.05), (200, 0.01), (301, 0.1)])
def test_uniform_numbers_leave_the_band_as_often_as_stated(count, alpha):
    left = leave(np.random.default_rng(count).uniform(size=(RUNS, count)), alpha).mean()
    error = np.sqrt(alpha * (1 - alpha) / RUNS)
    assert alpha - 5 * error - 0.15 * alpha < left < alpha + 5 * error  # levels are steps


def test_the_p_value_and_the_band_say_the_same():
    rng = np.random.default_rng(2)
    band = bands.band(80, 0.05)
    for shape in np.repeat([1.0, 1.3], 50):
        numbers = rng.beta(shape, 1, size=80)
        ecdf = bands.counts_below(numbers) / 80
        outside = bool(np.any((ecdf < band.lower) | (ecdf > band.upper)))
        assert outside == (bands.p_value(numbers) <= 0.05)


@pytest.mark.parametrize("side", [1, -1, 0])
def test_an_sd_or_a_shift_that_is_said_to_be_seen_is_seen_9_times_in_10(side):
    factor, shift = bands.seen_ratio(200, 0.01), bands.seen_shift(200, 0.01)
    z = np.random.default_rng(5).normal(size=(RUNS, 200))
    seen = leave(ndtr(factor**side * z if side else shift + z), 0.01).mean()
    error = 5 * np.sqrt(0.09 / RUNS)
    assert 1 < factor < 1.6
    assert seen > 0.9 - error and (side or seen < 0.9 + error)


SEED = 1
OBSERVATIONS = 2
GRID = np.linspace(-9.0, 3.0, 2000)


def simulate(rng: np.random.Generator) -> tuple[dict, dict]:
    """sigma ~ Exponential(1), y ~ Normal(0, sigma), by the logarithm of sigma."""
    z = np.log(rng.exponential())
    return {"z": z}, {"y": rng.normal(0, np.exp(z), size=OBSERVATIONS)}


def program(*, jacobian: bool = True, rate: float = 1.0, scale: float = 1.0) -> Callable[..., None]:
    """The model by its log density over z; each argument plants an error."""

    def stated(y=None):
        z = numpyro.sample("z", dist.ImproperUniform(dist.constraints.real, (), ()))
        sigma = jnp.exp(z)
        prior = dist.Exponential(rate).log_prob(sigma) + (z if jacobian else 0.0)
        numpyro.factor("prior", prior)
        numpyro.sample("y", dist.Normal(0, scale * sigma).expand([OBSERVATIONS]), obs=y)

    return stated


def family(stated: Callable[..., None]) -> Family:
    """What a program is given, whatever it states."""
    return Family(
        "scale",
        simulate,
        lambda data: numpyro_model(stated, data),
        model=lambda data: lambda: stated(**data),
    )


def by_grid(stated: Callable[..., None], draws: int = 250) -> Callable[[Target, int], xr.DataTree]:
    """A method that draws from a program's posterior exactly, on a fine grid of z."""

    @jax.jit
    def densities(y):
        def one(z):
            return numpyro.infer.util.log_density(stated, (), {"y": y}, {"z": z})[0]

        return jax.vmap(one)(jnp.asarray(GRID))

    def method(target: Target, seed: int) -> xr.DataTree:
        with precision("float64"):
            log = np.asarray(densities(target.data["y"]))
        rng, weight = np.random.default_rng(seed), np.exp(log - log.max())
        z = rng.choice(GRID, size=(1, draws), p=weight / weight.sum())
        z += rng.uniform(-0.5, 0.5, size=z.shape) * (GRID[1] - GRID[0])
        return xr.DataTree.from_dict({"posterior": xr.Dataset({"z": (("chain", "draw"), z)})})

    return method


KNOWN, EXACT = family(program()), by_grid(program())


def calibrated(**errors):
    stated = program(**errors)
    return ob.calibrate(family(stated), by_grid(stated), simulations=200, seed=SEED)


@pytest.fixture(scope="module")
def right():
    return calibrated()


@pytest.mark.full
def test_the_right_program_is_calibrated(right):
    assert right.verdict == "calibrated"
    assert right.sentences[0].startswith("Calibrated as far as 200 simulations can tell")
    assert right.names == ("log likelihood", "lp", "z")
    for name in right.names:
        assert kstest(right.shares(name), "uniform").pvalue > 1e-3
    found = right.to_frame()
    assert (found["shift"].abs() < 0.35).all() and (abs(found["ratio"] - 1) < 0.35).all()


@pytest.mark.full
@pytest.mark.parametrize("error", [{"jacobian": False}, {"scale": 1.6}])
def test_a_planted_error_is_seen_by_200_simulations(error):
    found = calibrated(**error)
    assert found.verdict == "not calibrated"
    assert found.sentences[0].startswith("NOT calibrated")
    by_name = {one.name: one for one in found.off}
    assert by_name["z"].shift_interval[0] > 0 or by_name["z"].shift_interval[1] < 0


@pytest.mark.full
def test_how_wrong_an_sd_is_is_told_with_an_interval():
    """A conjugate posterior whose sd is 0.8 of the right one: intervals too narrow by 20 %."""

    def draw(rng):
        mu = rng.normal()
        return {"mu": mu}, {"y": mu + rng.normal(size=3)}

    def narrow(target, seed):
        y = target.data["y"]
        mean, sd = y.sum() / 4, 0.8 * 0.5
        draws = mean + sd * np.random.default_rng(seed).normal(size=(1, 200))
        return xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": (("chain", "draw"), draws)})})

    def normal(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(mu, 1).expand([3]), obs=y)

    def condition(data):
        return numpyro_model(normal, data)

    known = Family("normal", draw, condition, model=lambda data: lambda: normal(**data))
    found = ob.calibrate(known, narrow, simulations=300, seed=3)
    of_mu = next(one for one in found.off if one.name == "mu")
    assert found.verdict == "not calibrated"
    assert of_mu.ratio_interval[0] < 1.25 < of_mu.ratio_interval[1]
    assert of_mu.sentence.startswith("intervals too narrow by")


@pytest.mark.full
def test_a_posterior_that_is_the_prior_is_seen_by_quantities_of_the_data_alone():
    """Ranks of the parameter are uniform whatever the data; those of the log likelihood are not (Modrák et al.)."""

    def prior(target, seed):
        z = np.log(np.random.default_rng(seed).exponential(size=(1, 100)))
        return xr.DataTree.from_dict({"posterior": xr.Dataset({"z": (("chain", "draw"), z)})})

    found = ob.calibrate(KNOWN, prior, simulations=100, seed=SEED)
    outside = {one.name for one in found.outside}
    assert "log likelihood" in outside and "z" not in outside


@pytest.mark.full
def test_what_fails_or_does_not_converge_is_counted_and_said():
    def failing(target, seed):
        if seed % 3 == 0:
            raise ob.errors.InferenceError("It does not want to.")
        return EXACT(target, seed)

    found = ob.calibrate(KNOWN, failing, simulations=90, seed=SEED)
    assert found.verdict == "cannot be judged"
    assert 15 < found.failed < 45 and found.failed == sum(bool(f) for f in found.failures)
    assert f"the method failed in {found.failed} of 90 simulations" in found.sentences[0]

    def stuck(target, seed):
        tree = EXACT(target, seed)
        z = np.concatenate([tree.posterior.z.values + by for by in (-9, 9)])
        return xr.DataTree.from_dict({"posterior": xr.Dataset({"z": (("chain", "draw"), z)})})

    found = ob.calibrate(KNOWN, stuck, simulations=60, seed=SEED)
    assert (found.verdict, found.unconverged) == ("cannot be judged", 60)
    assert "chains did not converge in 60 of 60 simulations" in found.sentences[0]


@pytest.mark.full
def test_ranks_are_kept_and_gone_on_from(tmp_path, right):
    calls = []

    def counted(target, seed):
        calls.append(seed)
        return EXACT(target, seed)

    how = {"seed": SEED, "folder": tmp_path}
    first = ob.calibrate(KNOWN, counted, simulations=10, **how)
    assert len(calls) == len(set(calls)) == 10
    more = ob.calibrate(KNOWN, counted, simulations=20, **how)
    assert len(calls) == len(set(calls)) == 20
    again = ob.calibrate(KNOWN, counted, simulations=20, **how)
    assert len(calls) == 20
    assert np.array_equal(more.share, again.share)
    assert np.array_equal(more.share[:10], first.share)
    assert np.array_equal(right.share[:20], more.share)
    other = ob.calibrate(family(program(rate=2.0)), counted, simulations=5, **how)
    assert len(calls) == 25 and not np.array_equal(other.share, more.share[:5])
