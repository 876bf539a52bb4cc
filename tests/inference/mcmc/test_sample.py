"""Moments of known targets by NUTS and HMC on every engine; warmups, devices and progress."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist

import onebasin as ob
from onebasin.base.errors import ArgumentError
from onebasin.base.progress import ChainBar, ProgressBars, _moves
from onebasin.inference import Hmc, Nuts, infer
from onebasin.inference.mcmc.numpyro import device_of, here, num_devices, on_device
from onebasin.models import Target

from ..known import MEAN, RATE, SHAPE, assert_known, assert_mean, known_target

ENGINES = ["numpyro", "stanli", pytest.param("cmdstan", marks=pytest.mark.stan)]


@pytest.mark.parametrize("engine", ENGINES)
def test_nuts_known_target_moments_and_a_depth_that_bounds_the_number_of_steps(engine):
    settings = Nuts(chains=4, warmup=300, draws=700, metric="dense")
    tree = infer(known_target(engine), settings, engine=engine, seed=3)
    assert_known(tree.posterior)
    depth, steps = (tree.sample_stats[n].to_numpy() for n in ("tree_depth", "n_steps"))
    assert (2.0**depth - 1 <= steps).all()
    assert (steps <= 2.0 ** (depth + 1) - 1).all()
    assert depth.max() > 1


@pytest.mark.parametrize(
    ("engine", "bounds"),
    [
        ("numpyro", {"trajectory_length": 4.0, "max_steps": 3, "metric": "unit"}),
        pytest.param("cmdstan", {"trajectory_length": 2.0}, marks=pytest.mark.stan),
    ],
)
def test_hmc_known_target_moments(engine, bounds):
    settings = Hmc(chains=3, warmup=400, draws=1500, **bounds)
    tree = infer(known_target(engine), settings, engine=engine, seed=4)
    for i in range(2):
        assert_mean(tree.posterior["x"].to_numpy()[..., i], MEAN[i])
    assert_mean(tree.posterior["tau"].to_numpy(), SHAPE / RATE)
    if "max_steps" in bounds:
        assert int(tree.sample_stats["n_steps"].max()) == bounds["max_steps"]
        assert 0.5 < float(tree.sample_stats["acceptance_rate"].mean()) < 1


def test_hmc_moves_a_gaussian_by_its_default_and_traces_it_no_more_often_for_more_draws():
    """Over a whole period, the engines' own default, it ends where it began: the smallest ESS here is then 4."""
    traced = []

    def model() -> None:
        traced.append(1)
        numpyro.sample("x", dist.Normal(0, 1).expand([5]))

    def drawn(draws: int) -> tuple[np.ndarray, int]:
        traced.clear()
        settings = Hmc(chains=2, warmup=200, draws=draws)
        x = infer(Target("normal", numpyro_model=model), settings, seed=1).posterior["x"]
        return x.to_numpy(), len(traced)

    x, many = drawn(500)
    assert min(float(arviz_stats.ess(x[..., i])) for i in range(5)) > 250
    assert min(float(arviz_stats.ess(x[..., i] ** 2)) for i in range(5)) > 250
    assert drawn(60)[1] == many


RECORDED = {
    "nuts": (Nuts(chains=2, warmup=60, draws=20), 2.9545854141870826),
    "hmc": (Hmc(chains=2, warmup=60, draws=20, trajectory_length=0.3), 1.5844207214357613),
}
"""Last draw of tau with seed 1, recorded before chains could start at optima (jax 0.10, x86-64)."""


@pytest.mark.parametrize("method", ["nuts", "hmc"])
def test_random_starts_give_the_recorded_draws(method):
    settings, last = RECORDED[method]
    tau = infer(known_target("numpyro"), settings, seed=1).posterior["tau"]
    # Another processor may round otherwise; short chains do not blow that up beyond this.
    assert float(tau[-1, -1]) == pytest.approx(last, rel=1e-6)


WARMUP, DRAWS = 6, 4


def nuts(engine: str, definition: str, **settings: Any) -> xr.DataTree:
    return ob.nuts(
        known_target(definition),
        engine=engine,
        chains=2,
        seed=1,
        check_symmetry=False,
        **{"warmup": WARMUP, "draws": DRAWS, **settings},
    )


@pytest.mark.parametrize(
    ("engine", "definition"),
    [
        ("stanli", "stan"),
        ("numpyro", "numpyro"),
        pytest.param("cmdstan", "stan", marks=(pytest.mark.stan, pytest.mark.cmdstan)),
    ],
)
def test_warmup_and_draws_are_the_iterations_of_one_chain(engine, definition):
    """Without adaptation, a chain does not know which of its iterations are called warmup."""
    fixed = {"adapt": False, "adapt_from": {"step_size": 0.5, "inverse_metric": [1.0, 0.5, 0.7]}}
    thinned = nuts(engine, definition, save_warmup=True, thin=2, **fixed)
    whole = nuts(engine, definition, warmup=0, draws=WARMUP + 2 * DRAWS, **fixed)
    for name in ("posterior", "sample_stats"):
        every, kept = whole[name].to_dataset(), thinned[name].to_dataset()
        warm = thinned[f"warmup_{name}"].to_dataset()
        assert set(warm) == set(kept) == set(every)
        for variable in ("x", "tau") if name == "posterior" else ("lp", "energy"):
            values = every[variable].values
            np.testing.assert_array_equal(warm[variable].values, values[:, :WARMUP])
            np.testing.assert_array_equal(kept[variable].values, values[:, WARMUP + 1 :: 2])
    assert thinned["warmup_posterior"]["x"].dims == thinned.posterior["x"].dims
    assert json.loads(thinned.attrs["settings"])["save_warmup"] is True
    assert "warmup_posterior" not in whole.children
    if engine == "stanli":
        bare = thinned.drop_nodes(["warmup_posterior", "warmup_sample_stats"])
        assert str(ob.diagnose(thinned)) == str(ob.diagnose(bare))


def test_nutpie_keeps_its_warmup_and_its_draws():
    kept, bare = (nuts("nutpie", "numpyro", save_warmup=save) for save in (True, False))
    for name in ("posterior", "sample_stats"):
        xr.testing.assert_equal(kept[name].to_dataset(), bare[name].to_dataset())
        assert dict(kept[f"warmup_{name}"].sizes) == {**kept[name].sizes, "draw": WARMUP}
    assert not np.isin(kept["warmup_posterior"]["tau"], kept.posterior["tau"]).all()


def test_a_start_of_a_stan_program_is_taken_by_nutpie():
    """Also where the density is flat along a coordinate, as it is along this `tau`."""
    far = {"x": [100.0, -200.0], "tau": 1.5}
    found = nuts("nutpie", "stan", init=far, max_tree_depth=1, save_warmup=True)
    np.testing.assert_array_equal(found["starts"]["x"], [far["x"]] * 2)
    assert (abs(found["warmup_posterior"]["x"].values[:, 0]) > 50).all()
    best = nuts("nutpie", "stan", init="optimum")
    np.testing.assert_allclose(best["starts"]["x"], [[1, -2]] * 2, atol=2e-3)


def test_a_run_that_keeps_its_warmup_cannot_be_resumed(tmp_path):
    with pytest.raises(ArgumentError, match="nuts with `save_warmup` saves nothing before it ends"):
        nuts("stanli", "stan", save_warmup=True, checkpoint=tmp_path / "kept")


# Of a Stan program nutpie wants a library with threads: headers, interface and program are compiled for it alone.
DEFINITIONS = ["numpyro", pytest.param("stan", marks=(pytest.mark.stan, pytest.mark.slow))]
SMALL = ob.Nuts(chains=2, warmup=200, draws=100)


def run(definition: str, **more: Any) -> xr.DataTree:
    given = {"method": SMALL, "seed": 1, **more}
    return ob.infer(known_target(definition), engine="nutpie", **given)


@pytest.mark.full
@pytest.mark.parametrize("definition", DEFINITIONS)
def test_known_moments(definition):
    settings = ob.Nuts(chains=4, warmup=300, draws=700)
    assert_known(run(definition, method=settings, seed=3).posterior)


@pytest.mark.full
@pytest.mark.parametrize("definition", DEFINITIONS)
def test_more_draws_go_on_from_those_that_are_kept(definition, tmp_path):
    place = tmp_path / "kept"
    run(definition, method=replace(SMALL, draws=60), checkpoint=place)
    longer = run(definition, checkpoint=place)
    xr.testing.assert_equal(longer.posterior.to_dataset(), run(definition).posterior.to_dataset())


@pytest.mark.full
@pytest.mark.stan
@pytest.mark.slow
def test_everything_that_a_program_computes_is_there():
    programs = Path(__file__).parents[3] / "notebooks" / "programs"
    target = ob.stan_program(
        programs / "mixture.stan", programs / "mixture.json", symmetry="mu,sigma,1-theta"
    )
    tree = ob.infer(target, engine="nutpie", method=SMALL, seed=1)
    stan = ob.infer(target, engine="cmdstan", method=SMALL, seed=1)
    assert set(tree.children) == set(stan.children) - {"adaptation"}
    for group in tree.children:
        ours, theirs = tree[group].to_dataset(), stan[group].to_dataset()
        assert {n: v.dims for n, v in ours.items()} == {n: v.dims for n, v in theirs.items()}
        assert {n: v.dtype for n, v in ours.items()} == {n: v.dtype for n, v in theirs.items()}
    assert set(tree.attrs) - {"nutpie"} == set(stan.attrs)


@pytest.mark.full
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"metric": "dense"}, "`metric` is 'dense', but engine='nutpie' supports only 'diag'"),
        ({"dtype": "float32"}, "`dtype` is 'float32', but engine='nutpie' supports only 'float64'"),
    ],
)
def test_settings_that_it_has_not_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        run("numpyro", method=replace(SMALL, **given))


@pytest.mark.full
def test_without_the_package_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(
        ob.errors.InferenceError, match=r"not installed: run `pip install 'onebasin\[nutpie\]'`"
    ):
        run("numpyro")


@pytest.mark.full
def test_no_start_of_finite_density_is_said():
    def model() -> None:
        x = numpyro.sample("x", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
        numpyro.factor("nowhere", jnp.where(x[0] > -10, -jnp.inf, 0.0))

    with pytest.raises(
        ob.errors.InferenceError, match="No starting point with a finite log density"
    ):
        ob.infer(Target("nowhere", numpyro_model=model), engine="nutpie", method=SMALL)


SCRIPT = """
import json

import jax

jax.config.update("jax_num_cpu_devices", int(__import__("sys").argv[1]))
jax.config.update("jax_enable_x64", True)
import numpyro
from numpyro.distributions import Normal

import onebasin as ob
from onebasin.inference.mcmc import numpyro as engine

seen, advance = set(), engine.NumpyroChains.advance

def watched(self, state, *args, **how):
    seen.add(engine.device_of(state).id)
    return advance(self, state, *args, **how)

engine.NumpyroChains.advance = watched
target = ob.Target("normal", numpyro_model=lambda: numpyro.sample("x", Normal(3.0, 2.0)))
settings = ob.Nuts(chains=3, warmup=20, draws=20)
posterior = ob.infer(target, engine="numpyro", method=settings, progress=False)
draws = posterior["posterior"]["x"].values.tolist()
print(json.dumps({"devices": sorted(seen), "draws": draws}))
"""


def sampled(devices: int) -> dict:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    words = [sys.executable, "-c", SCRIPT, str(devices)]
    done = subprocess.run(words, env=inherited, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_chains_are_spread_over_devices_and_draw_the_same():
    one, two = sampled(1), sampled(2)
    assert (one["devices"], two["devices"]) == ([0], [0, 1])
    assert two["draws"] == one["draws"]


def test_chains_stay_on_the_device_that_was_chosen():
    (device,) = jax.local_devices()[:1]
    with jax.default_device(device), on_device(3):
        assert num_devices() == 1
        assert device_of(here({"x": jax.numpy.zeros(2)})) == device


class Seen(ProgressBars):
    """Bars that keep what they are told."""

    def __init__(self) -> None:
        super().__init__(False)
        self.told, self.noted = [], []

    def add(self, description: str, total: int, *, timed: bool = True) -> int:
        self.told.append((0, description))
        return super().add(description, total, timed=timed)

    def move(self, bar: int, completed: int, description: str | None = None) -> None:
        self.told.append((completed, description))

    def note(self, message: str) -> None:
        self.noted.append(message)


def test_a_bar_names_phase_step_size_and_divergences():
    seen = Seen()
    bar = ChainBar(seen, 1, 100, 200)
    bar.show(50, step_size=0.51234, divergences=3)
    bar.show(150, step_size=0.25, divergences=0, acceptance=0.876)
    bar.end(1.25, step_size=0.25, divergences=4, acceptance=0.8)
    assert seen.told == [
        (0, "chain 1 warmup"),
        (50, "chain 1 warmup   step 0.512, 3 divergent"),
        (150, "chain 1 sampling step 0.25, accept 0.88, 0 divergent"),
        (300, "chain 1 sampling step 0.25, accept 0.80, 4 divergent"),
    ]
    assert seen.noted == ["chain 1 is finished after 1.2 s: step 0.25, accept 0.80, 4 divergent"]


@pytest.mark.parametrize(
    ("environment", "terminal", "moves"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "CI": "false"}, True, True),
        ({"TERM": "xterm", "CI": "true"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_bars_move_only_where_somebody_sees_them(environment, terminal, moves):
    assert _moves(terminal, environment) is moves


@pytest.mark.parametrize("engine", ["numpyro", pytest.param("stan", marks=pytest.mark.stan)])
def test_elsewhere_than_in_a_terminal_a_chain_is_a_line(engine, capfd):
    settings = ob.Nuts(chains=2, warmup=60, draws=60)
    capfd.readouterr()
    tree = ob.infer(known_target(engine), engine=engine, method=settings, progress=True)
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("chain ")]
    assert len(lines) == 2
    for number in range(2):
        step = float(tree.sample_stats["step_size"][number, -1])
        divergent = int(tree.sample_stats["diverging"][number].sum())
        accept = float(tree.sample_stats["acceptance_rate"][number].mean())
        (line,) = (line for line in lines if line.startswith(f"chain {number} "))
        assert line.endswith(f": step {step:.3g}, accept {accept:.2f}, {divergent} divergent")
