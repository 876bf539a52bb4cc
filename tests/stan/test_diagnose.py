"""bin/diagnose on chains with one trouble each, most of them written by hand."""

from pathlib import Path

import arviz as az
import numpy as np
import pytest

from ..each import each
from .csv_chains import call, config, write_chains
from .driver_runs import GAUSS, sample

pytestmark = [pytest.mark.stan, pytest.mark.usefixtures("quiet")]

TREES = "Checking sampler transitions treedepth.\n"
TRANSITIONS = "Checking sampler transitions for divergences.\n"
ENERGIES = "Checking E-BFMI - sampler transitions HMC potential energy.\n"
TREEDEPTH = f"{TREES}Treedepth satisfactory for all transitions.\n\n"
DIVERGENCES = f"{TRANSITIONS}No divergent transitions found.\n\n"
ENERGY = f"{ENERGIES}E-BFMI satisfactory.\n\n"
SIZE = "Rank-normalized split effective sample size satisfactory for all parameters.\n\n"
RHAT = "Rank-normalized split R-hat values satisfactory for all parameters.\n\n"
FINE = "Processing complete, no problems detected.\n"
DONE = "Processing complete.\n"
DEEP = (
    TREES
    + "{0} of {1} ({2}%) transitions hit the maximum treedepth limit of {3}, or 2^{3} leapfrog steps.\n"
    "Trajectories that are prematurely terminated due to this limit will result in slow exploration.\n"
    "For optimal performance, increase this limit.\n\n"
).format
DIVERGENT = (
    TRANSITIONS + "{} of {} ({}%) transitions ended with a divergence.\n"
    "These divergent transitions indicate that HMC is not fully able to explore the posterior distribution.\n"
    "Try increasing adapt delta closer to 1.\n"
    "If this doesn't remove all divergences, try to reparameterize the model.\n\n"
).format
LOW_ENERGY = (
    ENERGIES
    + "The E-BFMI, {}, is below the nominal threshold of 0.30 which suggests that HMC may have trouble "
    "exploring the target distribution.\nIf possible, try to reparameterize the model.\n\n"
).format
NO_ENERGY = (
    f"{ENERGIES}The E-BFMI cannot be computed: the energies do not vary, or are not finite.\n\n"
)
SMALL = (
    "The following parameters had fewer than 0.001 effective draws per transition:\n  {}\n"
    "Such low values indicate that the effective sample size estimators may be biased high and actual performance "
    "may be substantially lower than quoted.\n\n"
).format
UNMIXED = (
    "The following parameters had rank-normalized split R-hat greater than 1.01:\n  {}\n"
    "Such high values indicate incomplete mixing and biased estimation.\n"
    "You should consider regularizing your model with additional prior information or a more effective "
    "parameterization.\n\n"
).format


def diagnosis(home, files: list[Path]) -> str:
    done = call(home, "diagnose", *files)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(11).normal(size=shape)


# Behind cmdstanpy


def test_a_good_run_has_no_problems(own_home, gauss):
    fit = sample(gauss, data=GAUSS, chains=4)
    assert fit.diagnose() == TREEDEPTH + DIVERGENCES + ENERGY + SIZE + RHAT + FINE


def test_trajectories_cut_short_are_counted(own_home, gauss):
    fit = sample(gauss, data=GAUSS, chains=2, iter_sampling=500, max_treedepth=2)
    count = int(np.sum(fit.method_variables()["treedepth__"] >= 2))
    assert 0 < count < 1000
    assert fit.diagnose().startswith(DEEP(count, 1000, f"{count / 10:.2f}", 2) + DIVERGENCES)


@pytest.mark.slow
def test_a_funnel_diverges(own_home, compiled):
    fit = sample(compiled("funnel"), data=None, chains=4)
    count = int(fit.divergences.sum())
    assert count > 0
    text = fit.diagnose()
    assert DIVERGENT(count, 4000, f"{count / 40:.2f}") in text
    assert text.endswith(DONE)


def test_a_run_without_hmc_has_neither_transitions_nor_energy(own_home, compiled):
    fit = sample(compiled("nothing"), data=None, chains=2, fixed_param=True)
    assert fit.diagnose() == SIZE + RHAT + FINE
    text = sample(compiled("nothing"), data=None, chains=2).diagnose()  # energies of nothing
    assert "The E-BFMI cannot be computed: the energies do not vary" in text


# Files


def test_harmless_files_have_no_problems(own_home, tmp_path):
    files = write_chains(tmp_path, {"x": noise(2, 500)})
    assert diagnosis(own_home, files) == TREEDEPTH + DIVERGENCES + ENERGY + SIZE + RHAT + FINE


def test_divergences_are_counted_and_warmup_is_not(own_home, tmp_path):
    divergences = np.zeros((2, 300))
    divergences[0, 7] = divergences[1, [0, 299]] = 1
    files = write_chains(tmp_path, {"x": noise(2, 300), "divergent__": divergences}, warmup=50)
    expected = TREEDEPTH + DIVERGENT(3, 600, "0.50") + ENERGY + SIZE + RHAT + DONE
    assert diagnosis(own_home, files) == expected


def test_a_chain_is_held_to_its_own_treedepth(own_home, tmp_path):
    depths = np.full((2, 200), 4)
    depths[:, :20] = 5
    folders = [tmp_path / name for name in "ab"]
    files = []
    for chain, (folder, limit) in enumerate(zip(folders, (5, 10), strict=True)):
        folder.mkdir()
        columns = {"x": noise(2, 200)[chain], "treedepth__": depths[chain]}
        files += write_chains(folder, columns, max_depth=limit)
    text = diagnosis(own_home, files)
    assert text.startswith(DEEP(20, 400, "5.00", 5) + DIVERGENCES)
    assert text.endswith(DONE)


@each(
    ("energies", "paragraph"),
    [
        # Steps of 1 throughout; the variance of 1, ..., 8 is 6.
        ([[1, 2, 3, 4], [5, 6, 7, 8]], LOW_ENERGY("0.17")),
        # The chains are strung together: six steps of 1 and one of 7, (6 + 49) / 7 over 210 / 7.
        ([[1, 2, 3, 4], [11, 12, 13, 14]], LOW_ENERGY("0.26")),
        # Three steps of 1 over 5 / 3; alone, neither chain would be low.
        ([[1, 2, 3, 4]], ENERGY),
        ([[5, 5, 5, 5]], NO_ENERGY),
    ],
)
def test_e_bfmi_is_that_of_all_chains(own_home, tmp_path, energies, paragraph):
    shape = np.shape(energies)
    files = write_chains(tmp_path, {"energy__": energies, "x": np.ones(shape)})
    last = FINE if paragraph == ENERGY else DONE
    assert diagnosis(own_home, files) == TREEDEPTH + DIVERGENCES + paragraph + SIZE + RHAT + last


def test_chains_that_disagree_are_named(own_home, tmp_path):
    shift = np.linspace(0, 0.6, 13)[:, None, None] * np.array([[-1], [1]])
    columns = {f"x.{i + 1}": draws for i, draws in enumerate(noise(13, 2, 400) + shift)}
    rhat = {name: float(az.rhat(draws, method="rank")) for name, draws in columns.items()}
    high = [name.replace(".", "[") + "]" for name, value in rhat.items() if value > 1.01499]
    assert 3 < len(high) < 10  # both sides of the threshold are tried
    assert any(1.01 < value < 1.01499 for value in rhat.values())
    lp = np.array([[0.0], [50.0]]) + noise(2, 400)  # no parameter
    text = diagnosis(own_home, write_chains(tmp_path, columns | {"lp__": lp, "constant": lp * 0}))
    assert text == TREEDEPTH + DIVERGENCES + ENERGY + SIZE + UNMIXED(", ".join(high)) + DONE


def test_a_chain_that_is_stuck_is_named(own_home, tmp_path):
    moving = noise(2, 500)
    stuck = np.array([moving[0], np.full(500, 0.1)])
    apart = np.repeat([[1.0], [2.0]], 500, axis=1)  # R-hat is infinite
    same_start = np.where(np.arange(500) % 250 == 0, 0.3, moving)  # of every half chain
    assert az.rhat(stuck, method="rank") > 1.1 > 1.01 > az.rhat(same_start, method="rank")
    columns = {"moving": moving, "stuck": stuck, "apart": apart, "start": same_start}
    text = diagnosis(own_home, write_chains(tmp_path, columns))
    assert text == TREEDEPTH + DIVERGENCES + ENERGY + SIZE + UNMIXED("stuck, apart") + DONE


def test_small_effective_sizes_are_named(own_home, tmp_path):
    steps = noise(6, 2, 10_000)
    columns = {"constant": np.zeros((2, 10_000))}
    for i, keep in enumerate((0, 0.9, 0.99, 0.999, 0.9999, 1)):
        walk = steps[i].copy()
        for t in range(1, walk.shape[1]):
            walk[:, t] += keep * walk[:, t - 1]
        columns[f"x{i}"] = walk
    ratio = {
        name: min(az.ess(x, method="bulk"), az.ess(x, method="tail", prob=(0.05, 0.95))) / x.size
        for name, x in columns.items()
        if name != "constant"
    }
    low = [name for name, value in ratio.items() if value < 0.001]
    assert 0 < len(low) < 6
    assert all(abs(value / 0.001 - 1) > 0.1 for value in ratio.values())  # ArviZ is 1 % off
    text = diagnosis(own_home, write_chains(tmp_path, columns))
    assert SMALL(", ".join(low)) in text
    assert text.endswith(DONE)


# Input that is none


def test_without_any_file_it_shows_the_usage_or_fails(own_home, tmp_path):
    done = call(own_home, "diagnose")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: diagnose FILE...")
    assert call(own_home, "diagnose", "--help").stdout == done.stdout
    done = call(own_home, "diagnose", "no.csv", "none.csv")
    assert done.returncode == 1
    assert done.stdout == (
        "File no.csv not found\nFile none.csv not found\nNo valid input files, exiting.\n"
    )
    files = write_chains(tmp_path, {"x": noise(1, 500)})
    text = diagnosis(own_home, [Path("no.csv"), *files])  # passed over
    assert text.startswith("File no.csv not found\n" + TREEDEPTH)
    assert text.endswith(FINE)


@each(
    ("text", "reason"),
    [
        ("", "no column names found"),
        ("# model = toy\n1,2\n3,4\n", "no column names found"),
        (config() + "lp__,x\n", "no draws found"),
        (config() + "lp__,x\n1,2\n3\n", "expected 2 columns, but found 1 instead for row 2"),
        (config() + "lp__,x\n1\n3\n", "2 column names, but 1 columns of draws"),
        # Cut short during warm-up, where Stan's own reader would never end.
        (config(save_warmup="true") + "lp__,stepsize__,x\n1,1,2\n3,1,4\n", "no draws found"),
    ],
)
def test_files_without_draws_are_refused(own_home, tmp_path, text, reason):
    path = tmp_path / "draws.csv"
    path.write_text(text)
    done = call(own_home, "diagnose", path)
    assert done.returncode == 1
    assert done.stdout.startswith(f"Cannot parse input csv file: {path}")
    assert reason in done.stdout
    same = call(own_home, "stansummary", path)
    assert same.returncode == 1
    if reason == "no draws found":
        assert same.stderr == f"No sampling draws found in Stan CSV file: {path}.\n"
    else:
        assert same.stderr == done.stdout


@each(
    ("second", "reason"),
    [
        ({"y": noise(1, 20)}, "chain 2 header column 8 doesn't match chain 1 header"),
        ({"x": noise(1, 19)}, "chain 2, missing or extra rows"),
        ({"x": noise(1, 20), "y": noise(1, 20)}, "chain 2 missing or extra columns"),
    ],
)
def test_chains_of_different_runs_are_refused(own_home, tmp_path, second, reason):
    (tmp_path / "other").mkdir()
    files = write_chains(tmp_path, {"x": noise(1, 20)})
    files += write_chains(tmp_path / "other", second)
    for tool in ("diagnose", "stansummary"):
        done = call(own_home, tool, *files)
        assert done.returncode == 1
        assert reason in done.stdout + done.stderr
