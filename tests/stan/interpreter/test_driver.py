"""The interpreter's driver: command lines as CmdStan takes them, and the files that it writes."""

import errno
import json
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from onebasin.base.errors import StanRunError
from onebasin.posteriors.storable import gather
from onebasin.stan.choice import driver
from onebasin.stan.compile import ProgramInfo, last_words
from onebasin.stan.interpreter import driver as process
from onebasin.stan.interpreter.driver import Model
from onebasin.stan.run import (
    CommandStart,
    Files,
    Output,
    ReadyProgram,
    command_line,
    read,
    read_adaptation,
    run,
    sample,
)

from ..conftest import PROGRAMS
from .compiling import compiled

MEAN, COVARIANCE = np.array([1.0, -2.0]), np.array([[1.0, 0.6], [0.6, 0.5]])
START = CommandStart(seed=3)
Drive = Callable[..., Output]


@pytest.fixture
def drive(tmp_path) -> Drive:
    """Run a method on a Gaussian, or on another program, and read what it writes."""

    def drive(method, *last, program="gauss", start=START, trace=False, **how) -> Output:
        data, out = tmp_path / "data.json", tmp_path / "out.csv"
        data.write_text(
            json.dumps({"D": 2, "mu": MEAN.tolist(), "Sigma": COVARIANCE.tolist(), "N": 0, "y": []})
        )
        files = Files(data=data, output=out, diagnostics=tmp_path / "trace.csv" if trace else None)
        source = PROGRAMS / f"{program}.stan"
        ready = ReadyProgram(source, driver(source), data, ProgramInfo((), (), (), (), ()))
        if isinstance(method, str):
            arguments = [*command_line(files, start, method, **how), *last]
        else:
            arguments = method(files, start, **how)
        run(ready, arguments, tmp_path)
        return read(out)

    return drive


def nuts(files, start, *, metric="diag", draws=1000, adapted=()):
    engine = ["engine=nuts", "max_depth=10"]
    how = {"draws": draws, "target_acceptance": 0.8, "refresh": 100, "metric": metric}
    warmup = {"warmup": 300} if not adapted else {"warmup": 0, "adapt": False}
    return sample(engine, files, start, adapted=adapted, **how, **warmup)


def assert_gaussian(x: np.ndarray, error: float) -> None:
    np.testing.assert_allclose(x.mean(0), MEAN, atol=error)
    np.testing.assert_allclose(np.cov(x.T), COVARIANCE, atol=error)


@pytest.mark.parametrize(("metric", "shape"), [("diag", (2,)), ("dense", (2, 2)), ("unit", (0,))])
def test_nuts_finds_the_posterior_and_goes_on_from_its_warmup(drive, tmp_path, metric, shape):
    found = drive(nuts, metric=metric)
    assert_gaussian(found.variables["x"], 0.25)
    names = "lp__ accept_stat__ treedepth__ n_leapfrog__ divergent__ energy__"
    assert set(names.split()) < set(found.method)
    (step,) = set(found.method["stepsize__"].tolist())
    assert found.seconds("Warm-up") >= 0 and found.seconds("Sampling") >= 0
    adaptation = read_adaptation(found.comments, step)
    assert adaptation.inverse_metric.shape == shape
    adapted = adaptation.arguments(tmp_path)
    again = drive(nuts, metric=metric, draws=20, adapted=adapted)
    assert set(again.method["stepsize__"]) == {step} and again.variables["x"].shape == (20, 2)


def test_a_start_has_the_values_that_its_file_gives():
    values = {"m": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "a": [[0.5, 1.5], [2.5, 3.5]], "tau": 2.0}
    text = (
        "parameters { matrix[2, 3] m; array[2] vector[2] a; real<lower=0> tau; }\n"
        "model { tau ~ exponential(1); }\ngenerated quantities { real twice = 2 * tau; }"
    )
    model = Model(compiled(text, PROGRAMS), "{}", seed=1)
    row = np.array([model.values(model.unconstrained(json.dumps(values)))])
    found = {name: entries.take(row)[0] for name, entries in gather(model.columns).items()}
    for name, value in {**values, "twice": 4.0}.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, err_msg=name)


def test_optimum_and_laplace(drive, tmp_path):
    found = drive("optimize", jacobian=1, algorithm="lbfgs", iter=200)
    np.testing.assert_allclose(found.variables["x"], [MEAN], atol=1e-4)
    (tmp_path / "mode.json").write_text(json.dumps({"x": MEAN.tolist()}))
    mode = tmp_path / "mode.json"
    draws = drive("laplace", start=CommandStart(seed=1), mode=mode, jacobian=1, draws=2000)
    assert_gaussian(draws.variables["x"], 0.15)
    assert np.ptp(draws.method["log_p__"] - draws.method["log_q__"]) < 1e-4
    with pytest.raises(StanRunError, match="exit code 1:\nstanli cannot optimise without the Jac"):
        drive("optimize", jacobian=0, algorithm="lbfgs", iter=200)


@pytest.mark.parametrize("family", ["meanfield", "fullrank"])
def test_variational_writes_the_mean_first_and_the_trace_of_the_elbo(drive, tmp_path, family):
    how = {"algorithm": family, "iter": 2000, "grad_samples": 5, "elbo_samples": 100}
    how |= {"tol_rel_obj": 0.001, "eval_elbo": 100, "output_samples": 400}
    found = drive("variational", *("adapt", "engaged=1"), trace=True, **how)
    assert found.variables["x"].shape == (401, 2)
    np.testing.assert_allclose(found.variables["x"][0], MEAN, atol=0.3)
    trace = np.loadtxt(tmp_path / "trace.csv", delimiter=",", skiprows=1)
    assert trace[0, 0] == 100 and np.all(np.diff(trace[:, 0]) == 100)
    assert abs(trace[-1, 2]) < 1  # a normalised density: 0 where the family holds it


def test_a_program_that_fails_exits_with_its_words(drive):
    with pytest.raises(StanRunError, match=r"(?s)exit code 1:\n.*never"):
        drive(nuts, program="hopeless")


def test_a_full_disk_is_said_in_the_words_of_our_driver(monkeypatch, capsys):
    def fails(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for name, stand_in in (("Model", SimpleNamespace(of=fails)), ("bound_memory", lambda: None)):
        monkeypatch.setattr(process, name, stand_in)
    monkeypatch.setattr(process.signal, "signal", lambda *_: None)
    assert process.main(["p.stan", "method=sample"]) == 1
    said = capsys.readouterr().out
    assert last_words(f"Iteration: 1 / 2\n{said}").startswith(
        "Error: cannot write output file: No space"
    )
