"""A program in this process: its densities against closed forms, batches against single points, what it refuses."""

import gc
import logging
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from onebasin.base.errors import StanDataError, StanRunError
from onebasin.stan.compile import ProgramInfo
from onebasin.stan.home.assemble import find_toolchain
from onebasin.stan.interfaces import Interface
from onebasin.stan.library import StanLibrary, open_library

PROGRAMS = Path(__file__).parent / "programs"
DATA = {"N": 5, "y": [1, 0, 1, 1, 0]}
ENGINES = ("stanli", "cmdstan")


@pytest.fixture(scope="module", params=ENGINES)
def engine(request) -> str:
    if request.param == "cmdstan":
        request.getfixturevalue("own_home")
    return request.param


@pytest.fixture(scope="module")
def library(engine) -> StanLibrary:
    """Three successes in five, with a uniform prior."""
    return open_library(PROGRAMS / "bernoulli.stan", DATA, engine=engine, seed=3)


def log_density(point: np.ndarray, *, propto: bool, jacobian: bool) -> np.ndarray:
    theta = expit(point[..., 0])
    value = 3 * np.log(theta) + 2 * np.log1p(-theta)
    return value + (np.log(theta * (1 - theta)) if jacobian else 0)


@pytest.mark.parametrize("jacobian", [True, False])
@pytest.mark.parametrize("propto", [True, False])
def test_log_density_and_gradient_are_the_closed_form(library, rng, propto, jacobian):
    flags = {"propto": propto, "jacobian": jacobian}
    points = rng.normal(size=(3, 4, 1))
    theta = expit(points)
    slope = 3 * (1 - theta) - 2 * theta + ((1 - 2 * theta) if jacobian else 0)
    values, gradients = library.log_density_gradient(points, **flags)
    np.testing.assert_allclose(values, log_density(points, **flags), rtol=1e-13)
    np.testing.assert_allclose(gradients, slope, atol=1e-13)
    np.testing.assert_allclose(library.log_density(points, **flags), values, rtol=1e-14)


def test_constrained_values_and_back(library, rng):
    points = rng.normal(size=(6, 1))
    values = library.constrain(points)
    np.testing.assert_allclose(values, expit(points), rtol=1e-14)
    np.testing.assert_allclose(library.unconstrain(values), points, atol=1e-13)
    assert np.isnan(library.unconstrain([2.0])).all()
    assert (library.dim, library.unconstrained_names) == (1, ("theta",))
    assert library.names(include_gq=True) == ("theta", "successes")
    assert library.variables(include_gq=True) == {"theta": (), "successes": ()}


def test_generated_quantities_follow_their_generator(library):
    points = np.full((2000, 1), 0.5)
    first, again = (library.constrain(points, include_gq=True) for _ in range(2))
    other = library.constrain(points, include_gq=True, generator=library.generator(4))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    mean, sd = binom.stats(10, expit(0.5))[0], binom.std(10, expit(0.5))
    assert abs(first[:, 1].mean() - mean) < 5 * sd / np.sqrt(2000)


def test_several_threads_at_once(library, rng):
    points, found = rng.normal(size=(2000, 1)), {}

    def evaluate(number: int) -> None:
        found[number] = library.log_density_gradient(points)

    threads = [threading.Thread(target=evaluate, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for values, gradients in found.values():
        assert np.array_equal(values, found[0][0]) and np.array_equal(gradients, found[0][1])


def test_rejected_points_have_no_density(engine):
    hopeless = open_library(PROGRAMS / "hopeless.stan", engine=engine)
    values, gradients = hopeless.log_density_gradient([[0.0], [1.0]])
    assert np.array_equal(values, [-np.inf, -np.inf]) and np.isnan(gradients).all()


def test_what_a_program_prints_is_handed_on(caplog, engine):
    said: list[str] = []
    nothing, later = (
        open_library(PROGRAMS / "nothing.stan", engine=engine, on_print=said.append) for _ in "ab"
    )
    del later  # of which the earlier one is independent
    gc.collect()
    nothing.log_density(np.zeros((2, 0)))
    assert "".join(said) == "nothing to weigh\nnothing to weigh\n"
    with caplog.at_level(logging.INFO, logger="onebasin"):
        open_library(PROGRAMS / "nothing.stan", engine=engine).log_density(np.zeros(0))
    assert "nothing to weigh" in caplog.text


def test_a_program_without_parameters(engine):
    nothing = open_library(PROGRAMS / "nothing.stan", engine=engine)
    assert (nothing.dim, nothing.names(), nothing.unconstrained_names) == (0, (), ())
    values, gradients = nothing.log_density_gradient(np.zeros((2, 0)))
    assert np.array_equal(values, [0, 0]) and gradients.shape == (2, 0)
    assert nothing.constrain(np.zeros((2, 0)), include_gq=True).shape == (2, 1)


def false_library(folder: Path, construct: str) -> Path:
    """A library whose functions do nothing, but for what is given."""
    other, source = folder / "other_model.so", folder / "other.c"
    bodies = {name: ("void", "") for name in Interface.functions} | {
        "onebasin_stan_version": ("const char *", 'return "";'),
        "onebasin_construct": ("void", construct),
    }
    source.write_text(
        "".join(f"{kind} {name}(void) {{ {body} }}\n" for name, (kind, body) in bodies.items())
    )
    compiler = find_toolchain().compiler
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", source, "-o", other], check=True)
    return other


@pytest.mark.slow
@pytest.mark.parametrize("jacobian", [True, False])
@pytest.mark.parametrize("propto", [True, False])
def test_both_engines_have_the_same_densities(own_home, rng, propto, jacobian):
    libraries = [open_library(PROGRAMS / "densities.stan", engine=engine) for engine in ENGINES]
    points = rng.normal(scale=0.5, size=(4, libraries[0].dim))
    one, other = (
        library.log_density_gradient(points, propto=propto, jacobian=jacobian)
        for library in libraries
    )
    np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
    np.testing.assert_allclose(one[1], other[1], rtol=1e-10, atol=1e-12)


def test_a_program_that_crashes_ends_no_process_but_its_own(own_home, tmp_path, monkeypatch):
    program = tmp_path / "deep.stan"
    program.write_text("parameters { real x; } model { x ~ std_normal(); }")
    crashing = false_library(tmp_path, construct="*(volatile int *)0 = 1;")
    made = crashing, ProgramInfo((), ("x",), (), (), ())
    monkeypatch.setattr("onebasin.stan.library.compile_library", lambda path, **how: made)
    with pytest.raises(
        StanRunError, match=r"^The program deep was ended by SIGSEGV, a memory error or endless"
    ):
        open_library(program, engine="cmdstan")


@pytest.mark.usefixtures("unchecked")
def test_data_are_refused(engine):
    for data, words in (
        ({"N": -1, "y": []}, r"rejects its data:\n.*N is -1"),
        ({"N": 1}, "lacks y"),
    ):
        with pytest.raises(StanDataError, match=words):
            open_library(PROGRAMS / "bernoulli.stan", data, engine=engine)


@pytest.mark.usefixtures("unchecked")
def test_a_point_of_another_length_is_refused(library):
    with pytest.raises(
        ValueError, match=r"last axis of `points` must have length 1 for .* got shape \(2,\)"
    ):
        library.log_density([0.0, 1.0])
