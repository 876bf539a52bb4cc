"""Planted errors are seen by 200 simulations, and what is right is let through.

Posteriors of programs, wrong ones among them, are drawn exactly.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr
from scipy.stats import kstest

import onebasin as ob
from onebasin.base.precision import precision
from onebasin.inference import Family
from onebasin.models.numpyro_target import numpyro_model
from onebasin.models.target import Target

pytestmark = pytest.mark.full

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


def test_the_right_program_is_calibrated(right):
    assert right.verdict == "calibrated"
    assert right.sentences[0].startswith("Calibrated as far as 200 simulations can see")
    assert right.names == ("log likelihood", "lp", "z")
    for name in right.names:
        assert kstest(right.shares(name), "uniform").pvalue > 1e-3
    found = right.to_frame()
    assert (found["shift"].abs() < 0.35).all() and (abs(found["ratio"] - 1) < 0.35).all()


@pytest.mark.parametrize("error", [{"jacobian": False}, {"scale": 1.6}])
def test_a_planted_error_is_seen_by_200_simulations(error):
    found = calibrated(**error)
    assert found.verdict == "not calibrated"
    assert found.sentences[0].startswith("NOT calibrated")
    by_name = {one.name: one for one in found.off}
    assert by_name["z"].shift_interval[0] > 0 or by_name["z"].shift_interval[1] < 0


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


def test_a_posterior_that_is_the_prior_is_seen_by_quantities_of_the_data_alone():
    """Ranks of the parameter are uniform whatever the data; those of the log likelihood are not (Modrák et al.)."""

    def prior(target, seed):
        z = np.log(np.random.default_rng(seed).exponential(size=(1, 100)))
        return xr.DataTree.from_dict({"posterior": xr.Dataset({"z": (("chain", "draw"), z)})})

    found = ob.calibrate(KNOWN, prior, simulations=100, seed=SEED)
    outside = {one.name for one in found.outside}
    assert "log likelihood" in outside and "z" not in outside


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
