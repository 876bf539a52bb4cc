"""BridgeStan and nutpie, from the package index, on libraries of ours: unchanged, and without a download."""

import os
import shutil
from pathlib import Path

import bridgestan
import numpy as np
import nutpie
import pytest
from scipy.special import expit
from scipy.stats import beta

import onebasin as ob
from onebasin.stan.home.assemble import bridge_folder
from onebasin.stan.library import open_library

pytestmark = pytest.mark.cmdstan

PROGRAMS = Path(__file__).parent / "programs"
DATA = {"N": 5, "y": [1, 0, 1, 1, 0]}


@pytest.fixture
def folder(own_home, monkeypatch) -> Path:
    """What `BRIDGESTAN` is set to."""
    folder = bridge_folder(own_home)
    monkeypatch.setenv("BRIDGESTAN", str(folder))
    return folder


@pytest.fixture(scope="module")
def model(own_home) -> bridgestan.StanModel:
    """BridgeStan's own face of a library from the cache."""
    return bridgestan.StanModel(
        open_library(PROGRAMS / "bernoulli.stan", DATA, engine="cmdstan").file, DATA, warn=False
    )


def test_bridgestan_finds_every_function_it_asks_for(model):
    theta, rng = expit(0.4), model.new_rng(1)
    assert model.name() == "program_model"
    assert "Stan version: 2.39.0" in model.model_info()
    # As the executable that it shares an object with.
    assert "STAN_THREADS=false" in model.model_info()
    assert model.model_version() == (2, 9, 0)
    assert (model.param_num(), model.param_num(include_gq=True), model.param_unc_num()) == (1, 2, 1)
    assert model.param_names(include_tp=True, include_gq=True) == ["theta", "successes"]
    assert model.param_unc_names() == ["theta"]
    point = np.array([0.4])
    assert model.param_constrain(point) == pytest.approx([theta])
    assert 0 <= model.param_constrain(point, include_gq=True, rng=rng)[1] <= 10
    assert model.param_unconstrain(np.array([theta])) == pytest.approx([0.4])
    assert model.param_unconstrain_json({"theta": theta}) == pytest.approx([0.4])
    assert abs(model.param_initialize(rng)[0]) <= 2
    assert model.param_initialize(rng, {"theta": theta}) == pytest.approx([0.4])
    value, gradient = model.log_density_gradient(point, propto=False)
    assert value == pytest.approx(4 * np.log(theta) + 3 * np.log1p(-theta), rel=1e-14)
    assert model.log_density(point, propto=False) == pytest.approx(value, rel=1e-14)
    assert gradient == pytest.approx([4 - 7 * theta], rel=1e-13)
    curvature = -7 * theta * (1 - theta)
    assert model.log_density_hessian(point)[2][0] == pytest.approx([curvature], rel=1e-8)
    product = model.log_density_hessian_vector_product(point, np.array([2.0]))[1]
    assert product == pytest.approx([2 * curvature], rel=1e-8)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "variable does not exist; processing stage=data initialization; variable name=N"),
        ('{"N": 1', "Error in JSON parsing"),
        ({"N": 1, "y": [3]}, r"y\[1\] is 3, but must be less than or equal to 1"),
    ],
)
def test_bridgestan_is_told_what_is_wrong_with_data(model, data, words):
    with pytest.raises(RuntimeError, match=words):
        bridgestan.StanModel(model.lib_path, data, warn=False)


def test_exceptions_and_prints_of_a_program_are_handed_on(own_home, capsys):
    file = open_library(PROGRAMS / "hopeless.stan", engine="cmdstan").file
    hopeless = bridgestan.StanModel(file, warn=False)
    for call in (hopeless.log_density, hopeless.log_density_gradient):
        with pytest.raises(RuntimeError, match=r"Exception: never \(in 'program.stan', line 6"):
            call(np.zeros(1))
    with pytest.raises(RuntimeError, match=r"no initial point was found in 7 attempts; .* never"):
        hopeless.param_initialize(hopeless.new_rng(1), max_tries=7)
    with pytest.raises(RuntimeError, match="variable does not exist"):
        hopeless.param_unconstrain_json("{}")


def kilobytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="only Linux says what a process holds"
)
@pytest.mark.slow
def test_nothing_is_lost_in_a_hundred_thousand_calls(own_home, model):
    library = open_library(PROGRAMS / "bernoulli.stan", DATA, engine="cmdstan")
    hopeless = open_library(PROGRAMS / "hopeless.stan", engine="cmdstan")
    points, values = np.zeros((1000, 1)), np.full((1000, 1), 0.3)

    def thousand_of_each() -> None:
        library.log_density_gradient(points)
        library.constrain(points, include_gq=True)
        library.unconstrain(values)
        hopeless.log_density_gradient(points)
        for _ in range(50):
            bridgestan.StanModel(model.lib_path, DATA, warn=False).new_rng(1)
            with pytest.raises(RuntimeError):
                bridgestan.StanModel(model.lib_path, "{}", warn=False)

    for _ in range(3):
        thousand_of_each()
    before = kilobytes()
    for _ in range(25):
        thousand_of_each()
    assert kilobytes() - before < 2000


@pytest.mark.slow
def test_nutpie_compiles_and_samples_offline(folder, tmp_path, monkeypatch):
    shutil.copy(PROGRAMS / "bernoulli.stan", tmp_path)
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    compiled = nutpie.compile_stan_model(filename=str(tmp_path / "bernoulli.stan"))
    fit = nutpie.sample(
        compiled.with_data(**DATA), draws=1000, chains=2, seed=1, progress_bar=False
    )
    theta = np.asarray(fit.posterior.theta)
    assert theta.shape == (2, 1000)
    assert theta.mean() == pytest.approx(4 / 7, abs=0.03)


def test_a_library_is_a_target(model):
    target = ob.target(model)
    assert target.name == "program_model"
    posterior = ob.nuts(target, chains=2, warmup=100, draws=200, seed=1)
    row = ob.diagnose(posterior).parameters.loc["unconstrained[0]"]
    theta = posterior["posterior"]["theta"].values
    known = beta(4, 3)  # three successes of five, uniform prior, with the Jacobian of the logit
    assert row["rhat"] < 1.05
    assert theta.mean() == pytest.approx(known.mean(), abs=5 * known.std() / row["ess_bulk"] ** 0.5)
