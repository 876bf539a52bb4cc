"""bin/stansummary against NumPy and ArviZ, behind cmdstanpy and on files written by hand."""

from collections.abc import Iterable
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import pytest

from ..each import each
from .csv_chains import as_table, call, config, summary, summary_csv, write_chains
from .driver_runs import GAUSS, Rows, sample

pytestmark = [
    pytest.mark.stan,
    pytest.mark.usefixtures("quiet"),
    # cmdstanpy 1.3.2 reads the table with it; pandas 3.1 would rather it did not.
    pytest.mark.filterwarnings("ignore:The 'float_precision' argument is deprecated"),
]

# The columns of the draws, whose first index runs fastest; their names; the rows of the summary.
COLUMNS = """
m.1.1 m.2.1 m.1.2 m.2.2 m.1.3 m.2.3 a.1.1 a.2.1 a.1.2 a.2.2 tau
pair:1 pair:2.1.1 pair:2.2.1 pair:2.1.2 pair:2.2.2
pairs.1:1 pairs.1:2.1 pairs.1:2.2 pairs.2:1 pairs.2:2.1 pairs.2:2.2
"""
NAMES = """
m[1,1] m[2,1] m[1,2] m[2,2] m[1,3] m[2,3] a[1,1] a[2,1] a[1,2] a[2,2] tau
pair.1 pair.2[1,1] pair.2[2,1] pair.2[1,2] pair.2[2,2]
pairs[1].1 pairs[1].2[1] pairs[1].2[2] pairs[2].1 pairs[2].2[1] pairs[2].2[2]
"""
ORDER = """
lp__ m[1,1] m[1,2] m[1,3] m[2,1] m[2,2] m[2,3] a[1,1] a[1,2] a[2,1] a[2,2] tau
pair.1 pair.2[1,1] pair.2[1,2] pair.2[2,1] pair.2[2,2]
pairs[1].1 pairs[1].2[1] pairs[1].2[2] pairs[2].1 pairs[2].2[1] pairs[2].2[2]
"""
STATISTICS = "Mean MCSE StdDev MAD 2.5% 50% 99% ESS_bulk ESS_tail ESS_bulk/s R_hat"


def draws_of(files: Iterable[str | Path]) -> dict[str, np.ndarray]:
    """The columns of the files, each (chain, draw)."""
    chains = [Rows(Path(file)) for file in files]
    return {name: np.array([chain[name] for chain in chains]) for name in chains[0].names}


def expected(draws: np.ndarray, percentiles=(5, 50, 95)) -> dict[str, float]:
    """What the columns of a summary mean; `draws` is (chain, draw)."""
    half = draws.shape[1] // 2
    split = np.vstack([draws[:, :half], draws[:, -half:]])
    low, high = np.quantile(split, [0.05, 0.95])
    tails = [
        az.ess(tail.astype(float), method="identity") for tail in (split <= low, split >= high)
    ]
    sd = draws.std(ddof=1)
    return {
        "Mean": draws.mean(),
        "MCSE": sd / np.sqrt(float(az.ess(draws, method="identity"))),
        "StdDev": sd,
        "MAD": 1.4826 * np.median(np.abs(draws - np.median(draws))),
        **{f"{p:g}%": np.quantile(draws, p / 100) for p in percentiles},
        "ESS_bulk": float(az.ess(draws, method="bulk")),
        "ESS_tail": float(min(tails)),
        "R_hat": float(az.rhat(draws, method="rank")),
    }


def assert_rows(table: pd.DataFrame, draws: dict[str, np.ndarray], percentiles=(5, 50, 95)) -> None:
    """Hold a table to ArviZ and NumPy, column by column.

    Measured worst case: 2e-14, of a mean near zero. ArviZ's own tail ESS and standard error use
    other definitions (`<=` at the upper quantile, half chains) and are up to 0.6 % and 2 % off.
    Every half chain has to visit both tails: of one that does not, Stan 2.39 makes an ESS of half
    the number of draws.
    """
    assert list(table.index) == list(draws)
    for name, values in draws.items():
        for statistic, value in expected(values, percentiles).items():
            found = table.loc[name, statistic]
            np.testing.assert_allclose(found, value, rtol=1e-8, atol=1e-12, err_msg=name)


def test_the_statistics_are_those_of_arviz(own_home, tmp_path):
    columns = {name: toy(i, 4, 500) for i, name in enumerate(COLUMNS.split())}
    files = write_chains(tmp_path, columns | {"pairs.2:1": np.full((4, 500), 2.0)})
    draws = draws_of(files)
    names = dict(zip(NAMES.split(), COLUMNS.split(), strict=True)) | {"lp__": "lp__"}
    varying = {name: draws[names[name]] for name in ORDER.split() if name != "pairs[2].1"}
    table = summary(own_home, tmp_path, "--percentiles=2.5,50,99", *files)
    assert " ".join(table.columns) == STATISTICS
    assert_rows(table.loc[list(varying)], varying, (2.5, 50, 99))
    # The last index runs fastest; a constant has neither error nor effective size.
    assert [n for n in table.index if n == "lp__" or not n.endswith("__")] == ORDER.split()
    row = table.loc["pairs[2].1"]
    assert row[["Mean", "2.5%", "50%", "99%"]].tolist() == [2, 2, 2, 2]
    assert row[["StdDev", "MAD"]].tolist() == [0, 0]
    assert row[["MCSE", "ESS_bulk", "ESS_tail", "ESS_bulk/s", "R_hat"]].isna().all()


# Behind cmdstanpy


@pytest.mark.slow
def test_variables_of_every_shape_have_these_columns_and_names(own_home, compiled):
    fit = sample(compiled("shapes"), data=None, chains=4, iter_sampling=500, sig_figs=17)
    columns = draws_of(fit.runset.csv_files)
    assert [name for name in columns if not name.endswith("__")] == COLUMNS.split()
    assert list(fit.summary(sig_figs=17).index) == ORDER.split()


def test_saved_warmup_is_left_out(gauss):
    settings = {"iter_warmup": 200, "iter_sampling": 200, "thin": 2, "sig_figs": 17}
    tables = [
        sample(gauss, data=GAUSS, chains=2, save_warmup=save, **settings).summary(sig_figs=17)
        for save in (False, True)
    ]
    without, with_warmup = (table.drop(columns="ESS_bulk/s") for table in tables)
    pd.testing.assert_frame_equal(with_warmup, without)


def test_a_program_without_parameters_is_summarised(compiled, own_home):
    fit = sample(compiled("nothing"), data=None, sig_figs=17)
    table = fit.summary(sig_figs=17)
    assert list(table.index) == ["lp__", "z"]
    assert np.isnan(table.loc["lp__", "R_hat"])  # it is 0 in every draw
    draws = draws_of(fit.runset.csv_files)["z"]
    assert draws.size == 1000
    assert table.loc["z", "Mean"] == pytest.approx(draws.mean(), rel=1e-8)


# Files


def toy(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2, size=shape)


def test_the_rate_is_per_second_of_sampling_of_all_chains(own_home, tmp_path):
    files = write_chains(tmp_path, {"x": toy(1, 3, 100)}, seconds=(100, 2.5))
    row = summary(own_home, tmp_path, *files).loc["x"]
    assert row["ESS_bulk/s"] == pytest.approx(row["ESS_bulk"] / 7.5, rel=1e-12)


def test_warmup_rows_of_any_engine_are_left_out(own_home, tmp_path):
    x = toy(2, 2, 401)  # an odd number: half chains leave out the one in the middle
    files = write_chains(tmp_path, {"x": x}, warmup=30, engine="static")
    table = summary(own_home, tmp_path, *files)
    assert_rows(table.loc[["x"]], {"x": x})
    assert table.loc["energy__", "95%"] < 100


def test_a_program_without_parameters_has_no_warmup(own_home, tmp_path):
    path = tmp_path / "draws.csv"
    path.write_text(config(save_warmup="true") + "lp__,accept_stat__,z\n0,0,1\n0,0,3\n#\n")
    assert summary(own_home, tmp_path, path).loc["z", "Mean"] == 2


@each(
    ("arguments", "names"),
    [
        ([], ["5%", "50%", "95%"]),
        (["--percentiles= 2.5, 50 ,97.5"], ["2.5%", "50%", "97.5%"]),
        (["--percentiles", "0.1,99.9"], ["0.1%", "99.9%"]),
        (["-p", "25"], ["25%"]),
        (["--percentiles="], []),
        (["-p", " "], []),
    ],
)
def test_percentiles_are_as_asked_for(own_home, tmp_path, arguments, names):
    x = toy(3, 2, 400)
    files = write_chains(tmp_path, {"x": x})
    table = summary(own_home, tmp_path, *arguments, *files)
    assert [name for name in table.columns if name.endswith("%")] == names
    assert_rows(table.loc[["x"]], {"x": x}, [float(name[:-1]) for name in names])


@each(
    ("arguments", "text"),
    [([], "0.333333"), (["-s", "3"], "0.333"), (["--sig_figs=12"], "0.333333333333")],
)
def test_digits_are_as_asked_for(own_home, tmp_path, arguments, text):
    files = write_chains(tmp_path, {"x": [[0, 0, 1, 0, 0, 1]]})
    line = summary_csv(own_home, tmp_path, *arguments, *files).splitlines()[8]
    assert line.split(",")[:2] == ['"x"', text]


@each(
    ("wanted", "names"),
    [
        (["x"], ["x"]),
        (["m.1.2", "lp__"], ["lp__", "m[1,2]"]),
        (["m[2,1]", "m[1,2]"], ["m[1,2]", "m[2,1]"]),
        (["m"], ["m[1,1]", "m[1,2]", "m[2,1]", "m[2,2]"]),
        (["pair:2", "energy__"], ["energy__", "pair.2"]),
    ],
)
def test_only_the_parameters_asked_for_are_shown(own_home, tmp_path, wanted, names):
    columns = ["x", "m.1.1", "m.2.1", "m.1.2", "m.2.2", "mm.1", "pair:1", "pair:2"]
    files = write_chains(tmp_path, {name: toy(4, 1, 20) for name in columns})
    options = [f"--include_param={wanted[0]}", *(x for name in wanted[1:] for x in ("-i", name))]
    assert list(summary(own_home, tmp_path, *options, *files).index) == names
    console = call(own_home, "stansummary", *options, *files).stdout
    shown = [line.split()[0] for line in console.splitlines()[7:] if len(line.split()) == 12]
    assert shown == names


# The console


def test_the_console_shows_what_the_file_has(own_home, tmp_path):
    files = write_chains(tmp_path, {"x": toy(5, 2, 100), "y.1": toy(6, 2, 100)}, num_samples=100)
    done = call(own_home, "stansummary", *files)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[:6] == [
        "Inference for Stan model: toy_model",
        "2 chains: each with iter=100; warmup=1000; thin=1; 100 iterations saved.",
        "",
        "Warmup took (0.50, 0.50) seconds, 1.0 seconds total",
        "Sampling took (2.0, 2.0) seconds, 4.0 seconds total",
        "",
    ]
    assert lines[-5:] == [
        "",
        "Samples were drawn using hmc with nuts.",
        "For each parameter, ESS_bulk and ESS_tail measure the effective sample size for the entire "
        "sample (bulk)",
        "and for the .05 and .95 tails (tail), and R_hat measures the potential scale reduction on "
        "split chains.",
        "At convergence R_hat will be very close to 1.00.",
    ]
    assert {len(line) for line in lines[6:-5]} == {0, len(lines[6])}  # columns stand in line
    text = summary_csv(own_home, tmp_path, *files)
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert comments == [f"# {line}" for line in (*lines[:6], *lines[-4:])]
    table = as_table(text)
    assert lines[6].split() == list(table.columns)
    rows = [line.split() for line in lines[7:-5] if line]
    assert [row[0] for row in rows] == list(table.index)
    for row in rows:
        exact = table.loc[row[0]].to_numpy()
        np.testing.assert_allclose([float(word) for word in row[1:]], exact, rtol=0.051)


@each(
    ("value", "text"),
    [
        # As in tables that CmdStan printed.
        ("-0.36", "-0.36"),
        ("0.025", "0.025"),
        ("-0.063", "-6.3e-02"),
        ("0.0065", "6.5e-03"),
        ("0.998", "1.00"),
        ("35182", "35182"),
        ("-243.02", "-243"),
        ("0", "0.00"),
    ],
)
def test_numbers_look_like_cmdstans(own_home, tmp_path, value, text):
    files = write_chains(tmp_path, {"x": [[float(value)] * 4]})
    console = call(own_home, "stansummary", "-i", "x", *files).stdout
    (row,) = [line.split() for line in console.splitlines() if line.startswith("x ")]
    assert [row[1], *row[5:8]] == [text] * 4  # the mean and the percentiles
    assert row[8:] == ["nan"] * 4
    # The log density is styled like the model, the sampler's statistics are not.
    columns = {"lp__": [[-41.0] * 4], "accept_stat__": [[0.9] * 4], "x": [[0.0065] * 4]}
    console = call(own_home, "stansummary", "-p", "", *write_chains(tmp_path, columns)).stdout
    means = dict(line.split()[:2] for line in console.splitlines() if len(line.split()) == 9)
    found = [means[name] for name in ("lp__", "x", "accept_stat__")]
    assert found == ["-4.1e+01", "6.5e-03", "0.90"]


def test_autocorrelations_are_those_of_the_chain(own_home, tmp_path):
    x = np.cumsum(np.random.default_rng(7).normal(size=(2, 30)), axis=1)
    files = write_chains(tmp_path, {"x": x})
    console = call(own_home, "stansummary", "-a", "2", "-s", "6", "-i", "x", *files).stdout
    lines = console.split("Displaying the autocorrelations for chain 2:\n\n")[1].splitlines()
    assert lines[0].split() == ["Lag", "x"]
    table = np.array([line.split() for line in lines[1:]], dtype=float)
    centred = x[1] - x[1].mean()
    products = np.correlate(centred, centred, "full")[29:] / np.arange(30, 0, -1)
    np.testing.assert_array_equal(table[:, 0], np.arange(30))
    np.testing.assert_allclose(table[:, 1], products / products[0], atol=1e-6)


# Other methods


@each(
    ("facts", "lines", "sampler"),
    [
        (
            {"method": "variational", "algorithm": "meanfield (Default)", "output_samples": 4},
            "lp__,log_p__,log_g__,x|# Stepsize adaptation complete.|# eta = 1|0,0,0,999|"
            "0,-1,-2,1|0,-1,-3,2|0,-2,-2,3|0,-1,-1,6",
            "meanfield",
        ),
        (
            {"method": "pathfinder", "algorithm": None},
            "lp_approx__,lp__,x|-1, -2, 1|-2, -1, 2|-1, -3, 3|-2, -2, 6|"
            "#|# Elapsed Time: 0.01 seconds (Pathfinder)|#",
            "pathfinder",
        ),
        ({"method": "optimize", "algorithm": "lbfgs (Default)"}, "lp__,x|-1,3", "lbfgs"),
    ],
)
def test_files_of_other_methods_are_summarised(own_home, tmp_path, facts, lines, sampler):
    path = tmp_path / "draws.csv"
    facts = {"num_samples": None, "num_warmup": None, "save_warmup": None, "engine": None} | facts
    path.write_text(config(**facts) + lines.replace("|", "\n") + "\n")
    row = summary(own_home, tmp_path, path).loc["x"]
    assert row["Mean"] == 3
    assert np.isnan(row["ESS_bulk/s"])
    done = call(own_home, "stansummary", path)
    assert "Sampling took (0.00) seconds, 0.00 seconds total" in done.stdout
    assert f"Samples were drawn using {sampler}." in done.stdout


# Refusals


@each(
    ("arguments", "message"),
    [
        (["--percentiles=50,5"], '--percentiles: "50,5" is not allowed; it has to be a list'),
        (["-p", "5,5"], "increasing numbers"),
        (["-p", "0.05"], "from 0.1 to 99.9"),
        (["-p", "99.95"], "from 0.1 to 99.9"),
        (["-p", "5,,95"], "separated by commas"),
        (["-p", "5,ten"], "separated by commas"),
        (["-p", "nan"], "from 0.1 to 99.9"),
        (["--sig_figs=0"], '--sig_figs: "0" is not allowed; it has to be an integer from 1 to 18.'),
        (["-s", "19"], "from 1 to 18"),
        (["-s", "2.5"], "from 1 to 18"),
        (["--autocorr=0"], "the number of a chain, from 1"),
        (["--autocorr=2"], "--autocorr: there is no chain 2; 1 were given."),
        (["-i", "x", "-i", "no", "-i", "x.1"], "Unrecognized parameter(s): no, x.1."),
        (["-c", "no/such/folder.csv"], "Cannot save to csv_filename: no/such/folder.csv: No such"),
        (["--colour"], "The option --colour is not known; --help lists them."),
        (["no.csv"], "Cannot open input csv file: no.csv."),
    ],
)
def test_what_makes_no_sense_is_refused(own_home, tmp_path, arguments, message):
    files = write_chains(tmp_path, {"x": toy(9, 1, 10)})
    done = call(own_home, "stansummary", *arguments, *files)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stdout == ""


def test_usage_is_shown_and_no_file_overwritten(own_home, tmp_path):
    bare, asked = call(own_home, "stansummary"), call(own_home, "stansummary", "--help")
    assert (bare.returncode, asked.returncode) == (1, 0)
    assert bare.stdout == asked.stdout
    assert asked.stdout.startswith("Usage: stansummary [OPTIONS] FILE...")
    assert call(own_home, "stansummary", "-s", "3").stderr.startswith("No input files")
    files, mine = write_chains(tmp_path, {"x": toy(8, 1, 10)}), tmp_path / "mine.csv"
    done = call(own_home, "stansummary", *files, "--sig_figs")
    assert (done.returncode, done.stderr) == (1, "The option --sig_figs needs a value.\n")
    mine.write_text("mine")
    done = call(own_home, "stansummary", "-c", mine, *files)
    assert done.returncode == 1
    assert f"-c: Path already exists: {mine}" in done.stderr
    assert mine.read_text() == "mine"
