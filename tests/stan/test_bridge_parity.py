"""Libraries against CmdStan's executables of the same programs: densities, gradients, values, quantities."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from onebasin.stan.library import StanLibrary, open_library
from onebasin.stan.program import stan_program
from onebasin.stan.run import CommandStart, Files, ReadyProgram, make_ready, read, run

PROGRAMS = Path(__file__).parent / "programs"
KNOWN = PROGRAMS / "known"
NOTEBOOKS = Path(__file__).parents[2] / "notebooks" / "programs"
NOISE = np.random.default_rng(7)
SCHOOLS = json.loads((NOTEBOOKS / "schools.json").read_text())
MIXED = {"K": 2, "N": 25, "y": np.r_[NOISE.normal(-2, 1, 15), NOISE.normal(3, 0.5, 10)]}
X = NOISE.normal(size=40)

CASES = {
    PROGRAMS / "bernoulli.stan": {"N": 5, "y": [1, 0, 1, 1, 0]},
    PROGRAMS / "gauss.stan": {"D": 2, "mu": [1.0, -1.0], "Sigma": [[2.0, 0.5], [0.5, 1.0]]},
    KNOWN / "counts.stan": {"N": 20, "successes": 6},
    KNOWN / "decay.stan": {"N": 3, "time": [0.5, 1.0, 2.0], "y": [0.7, 0.5, 0.2]},
    KNOWN / "eight_schools.stan": SCHOOLS,
    KNOWN / "eight_schools_centred.stan": SCHOOLS,
    KNOWN / "free_mixture.stan": MIXED,
    KNOWN / "gaussian_process.stan": {
        **{"G": 2, "N": 6, "x": np.linspace(0, 4, 6)},
        "y": NOISE.normal(size=(2, 6)),
    },
    KNOWN / "logistic.stan": {"N": 40, "x": X[:, None], "y": NOISE.binomial(1, expit(X))},
    KNOWN / "mixture.stan": MIXED,
    KNOWN / "parallel.stan": {"N": 40, "x": X, "y": NOISE.poisson(np.exp(0.3 * X))},
    NOTEBOOKS / "item_response.stan": NOTEBOOKS / "item_response.json",
    NOTEBOOKS / "mixture.stan": NOTEBOOKS / "mixture.json",
    NOTEBOOKS / "regression.stan": NOTEBOOKS / "regression.json",
    NOTEBOOKS / "schools.stan": NOTEBOOKS / "schools.json",
}


@pytest.fixture(
    params=[
        pytest.param(case, marks=[] if case.stem == "bernoulli" else pytest.mark.slow)
        for case in CASES
    ],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def both(request, own_home, tmp_path) -> tuple[StanLibrary, ReadyProgram]:
    """A program in this process, and as an executable with the same data."""
    data = CASES[request.param]
    ready = make_ready(stan_program(request.param, data), tmp_path)
    return open_library(request.param, data, engine="cmdstan", seed=4), ready


def output(ready: ReadyProgram, arguments: list[str]):
    run(ready, arguments, ready.data.parent)
    return read(ready.data.with_name("out.csv"))


def test_a_library_is_the_program_that_cmdstan_runs(both, rng):
    library, ready = both
    files = Files(data=ready.data, output=ready.data.with_name("out.csv"))
    points = rng.normal(scale=0.5, size=(4, library.dim))
    place = ready.data.with_name("points.json")
    for jacobian in (True, False):
        place.write_text(json.dumps({"params_r": points.tolist()}))
        words = ["method=log_prob", f"unconstrained_params={place}", f"jacobian={int(jacobian)}"]
        found = output(ready, [*words, *files.arguments()]).method["lp__"]
        values, gradients = library.log_density_gradient(points, jacobian=jacobian)
        np.testing.assert_allclose(values, found, rtol=1e-12)
        columns = np.loadtxt(files.output, delimiter=",", comments="#", dtype=str)
        table = columns[[row[0] != "lp__" for row in columns]].astype(float)
        np.testing.assert_allclose(gradients, table[:, 1:], rtol=1e-12, atol=1e-12)

    constrained = library.constrain(points)
    np.testing.assert_allclose(library.unconstrain(constrained), points, rtol=1e-9, atol=1e-9)
    start = library.unpack(library.constrain(points[0], include_tp=True), include_tp=True)
    place.write_text(json.dumps({n: start[n].tolist() for n in ready.info.parameters}))
    words = ["method=sample", "num_samples=1", "num_warmup=0", "algorithm=fixed_param"]
    where = CommandStart(seed=4, init=place).arguments()
    drawn = output(ready, [*where, *words, *files.arguments()])
    for name, value in start.items():
        np.testing.assert_allclose(value, drawn.variables[name][0], rtol=1e-12, atol=1e-14)

    if not ready.info.generated:
        return
    draws = ready.data.with_name("draws.csv")
    rows = [",".join(repr(float(entry)) for entry in row) for row in constrained]
    draws.write_text("\n".join([",".join(library.names()), *rows]) + "\n")
    words = ["method=generate_quantities", f"fitted_params={draws}"]
    made = output(ready, ["random", "seed=4", *files.arguments(), *words])
    every, stream = {"include_tp": True, "include_gq": True}, library.generator(4, chain=1)
    drawn = library.constrain(library.unconstrain(constrained), generator=stream, **every)
    ours = library.unpack(drawn, **every)
    for name in ready.info.generated:
        np.testing.assert_allclose(ours[name], made.variables[name], rtol=1e-12, atol=1e-14)
