"""What draws mean: whole numbers, weights, angles, particles, rounding. A wrong reading would call bad draws usable."""

import numpy as np
import pandas as pd
import pytest

import onebasin as ob
from onebasin.analysis.diagnostics.invariants import invariants
from onebasin.analysis.summaries.summary import recurring
from onebasin.models.symmetry.blocks import Flip, as_symmetry
from onebasin.posteriors import schema

APART = np.array([0, 0, 6, 6])[:, None]


@pytest.mark.parametrize(
    "draws",
    [
        lambda z: 2e16 + 1e15 * z,
        lambda z: (5e7 + 5e6 * z).astype(np.float32),
        lambda z: (5e7 + 5e6 * z).astype(np.float32).astype(float),  # widened
        lambda z: (1.2e7 + 10 * z).astype(np.float32),  # which recur
        lambda z: np.round(1.5e6 + 100 * z, -1),  # six digits, as of a file
        lambda z: 1e15 + z,
    ],
)
def test_numbers_without_fractions_are_no_integers(rng, draws):
    vector = draws(rng.normal(size=(4, 200, 2)) + APART[..., None])
    found = ob.diagnose({"N": vector, "a": rng.normal(size=(4, 200))})
    assert found.verdict == "unusable"
    assert found.rhat.value > 1.5
    assert found.left_out["integer"] == () == found.constants


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_whole_numbers_that_recur_are_integers(rng, kind):
    counts = rng.poisson(1000, size=(4, 200, 3)).astype(kind)
    signs = rng.choice([-1, 1], size=(4, 200, 3)).astype(kind)
    found = ob.diagnose({"n": counts, "s": signs, "a": rng.normal(size=(4, 200))})
    assert set(found.left_out["integer"]) == {"n", "s"}


def test_rounding_of_terms_decides_nothing(rng):
    raw = np.array([-4.0, -0.5, 5]) + 0.1 * rng.normal(size=(4, 300, 3))
    off = raw - raw.mean(-1, keepdims=True)
    off[2:] = off[2:][..., [1, 2, 0]]
    tiny = 1e-17 * (rng.normal(size=(4, 300)) + APART)
    found = ob.diagnose({"off": off, "total": off.sum(-1), "rate": tiny})
    assert found.constants == ("total",)
    assert found.parameters.loc["rate", "rhat"] > 1.5
    table = invariants({"off": off}, as_symmetry("off", {"off": (3,)}))
    assert np.ptp(table.of("mean(off)")) == 0
    assert np.ptp(table.of("mean(off^2)")) > 0


def _weighted(rng, name="log_weight", shift=0.0):
    x = 3 * rng.normal(size=(4, 1000)) + shift
    stats = {name: -0.5 * (x - 1) ** 2 + 0.5 * (x / 3) ** 2 + 7}
    return {"posterior": {"x": x, "v": np.stack([x, x**2], -1)}, "sample_stats": stats}


def test_draws_are_taken_by_their_weights(rng):
    draws = _weighted(rng)
    ratio = draws["sample_stats"]["log_weight"]
    weights = np.exp(ratio - ratio.max())
    worth = weights.sum() ** 2 / (weights**2).sum()
    found, row = ob.diagnose(draws), ob.summary(draws).loc["x"]
    assert found.verdict == "usable"
    error = row["mcse_mean"]
    mean = (weights * draws["posterior"]["x"]).sum() / weights.sum()
    assert row["mean"] == pytest.approx(mean, abs=error)
    assert row["sd"] == pytest.approx(1, abs=4 * row["mcse_sd"])
    assert row["q5"] == pytest.approx(1 - 1.645, abs=6 * error)
    assert row["ess_bulk"] == pytest.approx(worth, rel=0.1)
    assert error == pytest.approx(row["sd"] / np.sqrt(row["ess_bulk"]), rel=0.1)
    apart = ob.diagnose(_weighted(rng, shift=9 * (APART > 0)))
    assert apart.verdict == "unusable"


def test_weights_under_another_name_are_named(rng):
    for name in ("log_weights", "weights", "weight", "logwt", "Weight"):
        found = ob.diagnose(_weighted(rng, name))
        assert found.verdict == "unusable", name
        assert f"`{name}` looks like weights" in found.judgement.sentence
    x = rng.normal(size=(4, 300))
    shares = np.exp(x) / np.exp(x).sum()
    assert ob.diagnose({"x": x, "weight": shares}).causes == ("weighted",)
    assert ob.diagnose(pd.DataFrame({"x": x[0], "weights": shares[0]})).causes == ("weighted",)
    for body in ({"weight": 70 + x}, {"weights": rng.dirichlet(np.ones(3), size=(4, 300))}):
        assert ob.diagnose({"x": x} | body).causes != ("weighted",)


@pytest.mark.parametrize("count", [20, 300])
def test_few_particles_are_few_draws(rng, count):
    particles = rng.normal(size=(count, 2))
    draws = {"x": particles[rng.integers(0, count, size=(4, 1000))]}
    found = ob.diagnose(draws)
    assert found.causes == ("resampled",)
    assert (found.parameters["ess_bulk"] <= count).all()
    error = found.parameters["mcse_mean"]
    assert (error >= found.parameters["sd"] / np.sqrt(count)).all()


def test_repeats_and_rounding_are_no_particles(rng):
    kept = np.cumsum(rng.random((4, 2000)) < 0.05, axis=1)
    metropolis = np.take_along_axis(rng.normal(size=(4, 2001)), kept, axis=1)
    rounded, counts = rng.normal(size=(4, 1000)).round(1), 1.0 * rng.poisson(3, size=(4, 500))
    for draws in (metropolis, rounded, counts):
        assert recurring([draws]) is None
    many = rng.normal(size=5000)[rng.integers(0, 5000, size=(4, 1000))]
    assert ob.diagnose({"x": many}).verdict == "usable"


def _wrapped(x, first=-np.pi, period=2 * np.pi):
    return (x - first) % period + first


@pytest.mark.parametrize(
    ("centre", "sd", "circle"),
    [
        *((c, 0.1, (-np.pi, 2 * np.pi)) for c in (np.pi, 3.05, 2.91)),
        (np.pi, 0.8, (-np.pi, 2 * np.pi)),
        (0.0, 0.2, (0.0, 2 * np.pi)),
        (180.0, 6.0, (-180.0, 360.0)),
    ],
)
def test_an_angle_across_its_cut_has_its_own_mean_and_rhat(rng, centre, sd, circle):
    true = centre + sd * rng.normal(size=(4, 500))
    draws = {"phi": _wrapped(true, *circle), "b": rng.normal(size=(4, 500))}
    found = ob.diagnose(draws)
    row = found.parameters.loc["phi"]
    assert found.verdict == "usable"
    off, half = row["mean"] - true.mean(), circle[1] / 2
    assert (off + half) % circle[1] == pytest.approx(half, abs=sd / 20)
    assert row["sd"] == pytest.approx(true.std(), rel=0.02)
    assert row["rhat"] == pytest.approx(ob.diagnose({"x": true}).rhat.value, abs=1e-9)
    assert found.angles == ("phi",)


def test_signs_and_bounds_are_no_angles(rng):
    signs = (3.1 + 0.01 * rng.normal(size=(4, 500))) * rng.choice([-1, 1], size=(4, 500))
    assert ob.diagnose({"x": signs}).exchangeable == ("+-x:",)
    waiting = rng.exponential(size=(4, 500))
    assert ob.diagnose({"x": waiting / waiting.max() * 6.27}).angles == ()


def test_a_declared_sign_of_an_angle_across_its_cut_aligns_nothing(rng, make_mcmc):
    phi = _wrapped(np.pi + 0.1 * rng.normal(size=(4, 500)))
    tree = make_mcmc({"phi": phi})
    tree.attrs[schema.SYMMETRY] = schema.encode_symmetry((Flip(("phi",)),))
    found = ob.diagnose(tree)
    assert found.verdict == "usable"
    assert found.parameters.loc["phi", "sd"] == pytest.approx(0.1, abs=0.01)
