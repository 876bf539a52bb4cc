"""PyMC models as targets: each has the density, the gradient and the names of the Stan program of the same model.

PyMC is an extra that the lock leaves out: these tests are slow ones, import it as they begin, and are skipped without.
"""

from functools import cache
from importlib import import_module
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import onebasin as ob
from onebasin.base.machine import is_installed, lacks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_installed("pymc"), reason=lacks("A PyMC model", "pymc")),
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning"),
    pytest.mark.filterwarnings("ignore:Data in y contains missing values:UserWarning"),
]

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.stan"))
RENAMED = {"packed": "factor_cholesky-cov-packed__", "raw": "memory_interval__"}
"""Parameters that PyMC transforms and NumPyro does not, by their names in the Stan programs."""

OTHER_CHARTS = {"share", "spread", "apart"}
"""Parameters whose unconstrained coordinates differ between Stan and NumPyro."""


@cache
def targets(path: Path) -> tuple[ob.Target, ob.Target]:
    """The PyMC model and the Stan program of this name."""
    modules = [import_module(f"{__package__}.{name}") for name in ("regressions", "levels")]
    of_name = next(getattr(m, path.stem) for m in modules if hasattr(m, path.stem))
    model, data = of_name()
    return ob.target(model), ob.stan_program(path, data)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_model_has_the_density_of_its_stan_program(path):
    mine, stan = targets(path)
    density, known = ob.jax_density(mine), ob.jax_density(stan)
    assert {RENAMED.get(n, n) for n in known.names} == set(density.names)
    vectors = jnp.asarray(np.random.default_rng(3).uniform(-1, 1, (5, density.size)))
    points = [{n: np.asarray(v) for n, v in density.constrain(at).items()} for at in vectors]
    same = [{n: point[RENAMED.get(n, n)] for n in known.names} for point in points]
    of_stan = [known.unconstrain(point) for point in same]
    shapes = {RENAMED.get(n, n): np.shape(v) for n, v in known.constrain(of_stan[0]).items()}
    assert shapes == {n: v.shape for n, v in points[0].items()}

    found = np.array([float(ob.log_density(mine, point)) for point in points])
    right = np.array([float(ob.log_density(stan, point)) for point in same])
    assert np.ptp(found) > 1
    assert found - found[0] == pytest.approx(right - right[0], rel=1e-8, abs=1e-8)

    gradient = [density.unravel(g) for g in jax.vmap(jax.grad(density.log_density))(vectors)]
    for at, point_gradient in zip(of_stan, gradient, strict=True):
        expected = known.unravel(jax.grad(known.log_density)(at))
        for name in set(known.names) - OTHER_CHARTS:
            slope = np.asarray(expected[name])
            assert np.asarray(point_gradient[RENAMED.get(name, name)]) == pytest.approx(
                slope, rel=1e-8, abs=1e-8 * np.abs(slope).max()
            ), name


@pytest.mark.parametrize("name", ["schools_noncentred", "logistic", "mixture"])
def test_draws_of_a_model_and_its_stan_program_have_the_same_means(name):
    path = next(path for path in PROGRAMS if path.stem == name)
    mine, stan = [
        ob.nuts(target, chains=2, warmup=300, draws=500, seed=1) for target in targets(path)
    ]
    if name == "schools_noncentred":  # a deterministic, with the name and the labels of its axis
        assert mine["posterior"]["theta"].dims == ("chain", "draw", "school")
        assert list(mine["posterior"]["school"].values) == list("ABCDEFGH")
    tables = [ob.diagnose(posterior).parameters for posterior in (mine, stan)]
    for variable in stan["posterior"].data_vars:
        rows = [t[[label.partition("[")[0] == variable for label in t.index]] for t in tables]
        means, errors = (np.stack([r[column] for r in rows]) for column in ("mean", "mcse_mean"))
        assert (np.abs(means[0] - means[1]) < 5 * np.hypot(*errors)).all(), variable


def test_densities_on_other_supports_are_those_of_scipy():
    """Also of a censored gamma, whose gradient by its shape PyTensor does not give to JAX."""
    import pymc as pm

    with pm.Model() as model:
        pm.VonMises("angle", 0.5, 2)
        pm.Gamma("soft", 2, 1, default_transform=pm.distributions.transforms.log_exp_m1)
        pm.TruncatedNormal("below", 0, 1, upper=0.5)
        shape = pm.Exponential("shape", 1)
        pm.Censored("y", pm.Gamma.dist(shape, 1), lower=None, upper=2, observed=[0.3, 1.2, 2.0])

    def known(p):
        alone = stats.vonmises(2, 0.5).logpdf(p["angle"]) + stats.gamma(2).logpdf(p["soft"])
        y = stats.gamma(p["shape"])
        return alone - p["below"] ** 2 / 2 - p["shape"] + y.logpdf([0.3, 1.2]).sum() + y.logsf(2)

    target = ob.target(model)
    points = [
        {"angle": 3.0, "soft": 0.4, "below": -1.0, "shape": 0.7},
        {"angle": -1.0, "soft": 2.0, "below": 0.4, "shape": 3.0},
    ]
    found = [float(ob.log_density(target, point)) for point in points]
    assert np.diff(found) == pytest.approx(np.diff([known(point) for point in points]), rel=1e-8)
    outside = {**points[0], "below": 0.6}
    assert float(ob.log_density(target, outside)) == -np.inf
    density = ob.jax_density(target)
    assert np.isfinite(jax.grad(density.log_density)(jnp.zeros(4))).all()


def test_what_jax_cannot_compute_is_refused():
    import pymc as pm
    import pytensor.tensor as pt
    from pytensor import wrap_py

    @wrap_py(itypes=[pt.dscalar], otypes=[pt.dscalar])
    def black_box(x):
        return np.array(x**2)

    with pm.Model() as model:
        pm.Potential("own", -black_box(pm.Normal("x")))
    with pytest.raises(ob.OnebasinError, match="cannot compile an operation of `model` for JAX"):
        ob.target(model)


def test_data_with_gaps_are_left_out_one_by_one_and_drawn_again():
    """The seen rows count: their densities are known in closed form, and new inputs reach the model."""
    import pymc as pm

    x = np.linspace(-1, 1, 16)
    y = np.where(np.arange(16) % 4, 1 + x, np.nan)
    with pm.Model() as gaps:
        level = pm.Normal("level", 0, 2)
        pm.Normal("y", level + x, 1, observed=y)
    target = ob.target(gaps)
    run = ob.nuts(target, chains=2, warmup=300, draws=500, seed=1)
    seen = (y - x)[np.isfinite(y)]
    rest = (seen.sum() - seen) / (len(seen) - 1 + 0.25)
    sd = np.sqrt(1 + 1 / (len(seen) - 1 + 0.25))
    found = ob.loo(run, model=target)
    assert (found.n_data_points, found.answer) == (12, "usable")
    assert found.elpd == pytest.approx(stats.norm.logpdf(seen, rest, sd).sum(), abs=0.1)
    assert "y" in ob.predict(run, {}, model=target).predictions
    with pm.Model() as line:
        at = pm.Data("at", x)
        slope = pm.Normal("slope", 0, 2)
        pm.Normal("y", slope * at, 0.1, observed=2 * x, shape=at.shape)
    target = ob.target(line)
    run = ob.nuts(target, chains=2, warmup=300, draws=300, seed=1)
    new = ob.predict(run, {"at": np.array([5.0, 10.0])}, model=target)
    assert new.intervals()["mean"].to_numpy() == pytest.approx([10, 20], rel=0.05)
    assert line["at"].get_value().shape == (16,), "the model keeps its data"
    with pytest.raises(ob.OnebasinError, match=r"but the model .* declares only these data"):
        ob.predict(run, {"x": x}, model=target)


def test_random_rows_are_refused():
    import pymc as pm

    with pm.Model() as model:
        some = pm.Minibatch(np.zeros(20), batch_size=5)
        pm.Normal("y", pm.Normal("mu"), 1, observed=some, total_size=20)
    with pytest.raises(ob.OnebasinError, match="log density of `model` contains random numbers"):
        ob.target(model)
