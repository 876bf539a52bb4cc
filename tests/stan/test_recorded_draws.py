"""Draws of CmdStan itself, as published, digit by digit.

The numbers were printed by CmdStan 2.37.0 on x86-64 Linux, for its own example program with seed 123. They are
from the reference page of `CmdStanModel` in the documentation of cmdstanr (development version, end of 2025),
which runs each method and prints summaries. An effective sample size to four digits, or an E-BFMI to seven, is
met only by the same two thousand draws: another random stream, another order of calls or another rounding
anywhere would show. Stan 2.39 has not changed any of these draws. At the end stand rows that CmdStan 2.39.0 wrote.
"""

import platform
import re
from pathlib import Path

import arviz as az
import cmdstanpy
import numpy as np
import pytest

from onebasin.stan.compile import compile_program
from onebasin.stan.home.assemble import Home

from .driver_runs import DATA

pytestmark = [
    pytest.mark.stan,
    pytest.mark.usefixtures("quiet"),
    # Elsewhere the compiler may fuse a multiplication with an addition, in CmdStan as in ours.
    pytest.mark.skipif(platform.machine() != "x86_64", reason="recorded on x86-64"),
]

SEED = 123


@pytest.fixture(scope="module")
def example(cmdstan_home: Home) -> cmdstanpy.CmdStanModel:
    """CmdStan's own example program."""
    model, _ = compile_program(cmdstan_home.path / "examples" / "bernoulli" / "bernoulli.stan")
    return model


def printed(value: float, digits: int = 3) -> str:
    """A number as the page prints it."""
    return f"{value:#.{digits}g}"


def summary(draws: np.ndarray) -> list[str]:
    """Mean, median, sd, mad, 5 % and 95 % quantiles, to three digits; `draws` is (chain, draw)."""
    flat = draws.ravel()
    mad = 1.4826 * np.median(np.abs(flat - np.median(flat)))
    low, high = np.quantile(flat, [0.05, 0.95])
    values = (flat.mean(), np.median(flat), flat.std(ddof=1), mad, low, high)
    return [printed(value) for value in values]


def effective_sizes(draws: np.ndarray) -> tuple[int, int]:
    """Effective sample sizes of the bulk and of the tails."""
    tail = az.ess(draws, method="tail", prob=(0.05, 0.95))
    return round(float(az.ess(draws, method="bulk"))), round(float(tail))


def console(fit) -> str:
    runset = getattr(fit, "runset", None) or fit._runset
    return Path(runset.stdout_files[0]).read_text()


def test_nuts_gives_the_published_draws(example):
    fit = example.sample(DATA, seed=SEED, chains=2, show_progress=False)
    theta, lp = (fit.draws_xr(inc_warmup=False).theta.values, fit.draws()[:, :, 0].T)
    published = [0.17, 0.46, 0.41, 0.25, 0.18, 0.33, 0.15, 0.29, 0.24, 0.24]
    assert np.round(theta[0, :10], 2).tolist() == published
    assert np.round(theta[1, :5], 2).tolist() == [0.28, 0.19, 0.19, 0.28, 0.23]
    assert summary(theta) == ["0.255", "0.240", "0.127", "0.130", "0.0773", "0.491"]
    assert summary(lp) == ["-7.32", "-7.02", "0.799", "0.355", "-8.89", "-6.75"]
    assert effective_sizes(theta) == (557, 616)
    assert effective_sizes(lp) == (819, 1020)
    energy = fit.method_variables()["energy__"].T
    e_bfmi = np.mean(np.diff(energy) ** 2, axis=1) * 999 / 1000 / energy.var(axis=1, ddof=1)
    assert [f"{value:.6f}" for value in e_bfmi] == ["1.114870", "1.030279"]


@pytest.mark.parametrize(
    ("inits", "first", "last"),
    [
        (None, "-16.144", "6 -5.00402 0.000246518 8.73164e-07 1 1 9"),
        ({"theta": 0.75}, "-11.6657", "6 -5.00402 0.000237915 9.55309e-07 1 1 9"),
    ],
)
def test_lbfgs_takes_the_published_steps(example, inits, first, last):
    text = console(example.optimize(DATA, seed=SEED, inits=inits))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert {f"Initial log joint probability = {first}", last} <= set(lines)


def test_advi_gives_the_published_elbos_and_draws(example):
    fit = example.variational(DATA, seed=SEED)
    lines = [" ".join(line.split()) for line in console(fit).splitlines()]
    for line in (
        "Success! Found best value [eta = 1] earlier than expected.",
        "100 -6.164 1.000 1.000",
        "200 -6.225 0.505 1.000",
        "300 -6.186 0.339 0.010 MEDIAN ELBO CONVERGED",
    ):
        assert line in lines
    columns = dict(zip(fit.column_names, np.asarray(fit.variational_sample).T, strict=True))
    assert summary(columns["theta"]) == ["0.251", "0.236", "0.107", "0.108", "0.100", "0.446"]
    assert summary(columns["log_p__"]) == ["-7.14", "-6.93", "0.528", "0.247", "-8.21", "-6.75"]
    assert summary(columns["log_g__"])[:5] == ["-0.520", "-0.244", "0.740", "0.326", "-1.90"]


def test_pathfinder_gives_the_published_paths_and_draws(example):
    fit = example.pathfinder(DATA, seed=SEED)
    text = console(fit)
    started = re.findall(r"Path \[\d\] :Initial log joint density = (\S+)", text)
    assert started == ["-18.273334", "-19.192715", "-6.774820", "-7.949193"]
    best = re.findall(r"Best Iter: \[(\d)\] ELBO \((\S+)\) evaluations: \((\d+)\)", text)
    assert best == [
        *(("5", "-6.145070", "156"), ("2", "-6.170358", "156")),
        *(("4", "-6.177909", "123"), ("5", "-6.197118", "156")),
    ]
    columns = dict(zip(fit.column_names, fit.draws().T, strict=True))
    assert summary(columns["theta"]) == ["0.258", "0.241", "0.121", "0.119", "0.0840", "0.475"]
    approximate = ["-1.07", "-0.724", "0.871", "0.306", "-2.82", "-0.451"]
    assert summary(columns["lp_approx__"]) == approximate
    assert summary(columns["lp__"]) == ["-7.26", "-6.97", "0.720", "0.304", "-8.77", "-6.75"]
    assert printed(columns["path__"].mean()) == "2.46"


# Rows of files that cmdstanpy keeps for its own tests (`test/data`), recorded in July and August 2026


def body(path: str) -> list[str]:
    return [line for line in Path(path).read_text().splitlines() if not line.startswith("#")]


@pytest.mark.slow
def test_optimum_and_laplace_draws_are_those_of_2_39(compiled):
    """`laplace/rosenbrock_opt.csv` and `laplace/rosenbrock_laplace.csv`: CmdStan 2.39.0, seed 1234."""
    model = compiled("rosenbrock")
    mode = model.optimize(seed=1234, jacobian=True)
    written = Path(mode.runset.csv_files[0])
    assert body(written)[1:] == ["-5.7541452e-12,31,0.99999769,0.99999532"]
    assert written.read_text().splitlines()[-1] == (
        "# Optimization terminated normally: Convergence detected: "
        "relative gradient magnitude is below tolerance"
    )
    fit = model.laplace_sample(mode=mode, seed=1234)
    rows = body(fit._runset.csv_files[0])
    assert rows[:4] == [
        "log_p__,log_q__,x,y",
        "-9.5596288,-0.30181251,1.5472822,2.0897779",
        "-119.9856,-1.2240435,2.0593191,3.15055",
        "-35.770282,-1.0420473,1.7221902,2.3722328",
    ]
    assert rows[8] == "-1.5753889,-0.69495215,0.79251976,0.50429981"


def test_nuts_rows_and_adaptation_are_those_of_2_37(example):
    """`runset-good/bern-1.csv`: CmdStan 2.37.0, seed 12345, id 1, 100 draws."""
    fit = example.sample(DATA, seed=12345, chains=1, iter_sampling=100, show_progress=False)
    text = Path(fit.runset.csv_files[0]).read_text()
    assert (
        "# Step size = 0.766137\n# Diagonal elements of inverse mass matrix:\n# 0.567537\n" in text
    )
    rows = body(fit.runset.csv_files[0])
    assert rows[1] == "-6.80017,0.96223506,0.76613686,2,3,0,7.2971456,0.21115047"
    assert rows[50] == "-7.4299828,1,0.76613686,1,1,0,7.6536138,0.12574232"
    assert rows[100] == "-8.6188197,0.65496656,0.76613686,1,3,0,10.013181,0.070365832"
