"""bin/stansummary and bin/diagnose: on files written by hand, and behind cmdstanpy."""

import sys

import arviz as az
import numpy as np
import pandas as pd
import pytest

from onebasin.stan.home.assemble import launcher
from onebasin.stan.home.summaries import diagnose, stansummary

from ..posteriors import chains
from .driver_runs import GAUSS, sample

# cmdstanpy 1.3.2 reads the table with it; pandas 3.1 would rather it did not.
pytestmark = pytest.mark.filterwarnings("ignore:The 'float_precision' argument is deprecated")
# Columns of a file, and their names in the table.
COLUMNS = "m.1.1 m.2.1 m.1.2 m.2.2 tau pair:1 pair:2.1 pair:2.2 pairs.1:2.1 pairs.2:2.1"
NAMES = "m[1,1] m[2,1] m[1,2] m[2,2] tau pair.1 pair.2[1] pair.2[2] pairs[1].2[1] pairs[2].2[1]"


def gamma(seed, *shape):
    return np.random.default_rng(seed).gamma(2, size=shape)


def summary(folder, *arguments):
    assert stansummary([*map(str, arguments), "--sig_figs=17", f"-c{folder / 'out.csv'}"]) == 0
    return pd.read_csv(folder / "out.csv", index_col=0)


def write_chains(folder, columns):
    """Write a file for each row of the columns, which are (chain, draw), after ten rows of warmup."""
    paths, (length, draws) = [], next(iter(columns.values())).shape
    for chain in range(length):
        text = chains.text(
            chain + 1, draws=draws, warmup=10, keep_warmup=True, names=",".join(columns)
        )
        head, *lines = text[text.index("lp__,") :].splitlines()
        own = iter(np.column_stack([values[chain] for values in columns.values()]))
        for place, line in enumerate(lines):
            if place > 10 and not line.startswith("#"):
                stats = line.split(",")[:7]
                lines[place] = ",".join([*stats, *map(repr, next(own).tolist())])
        paths.append(folder / f"chain_{chain + 1}.csv")
        paths[-1].write_text(text[: text.index("lp__,")] + "\n".join([head, *lines]) + "\n")
    return paths


def check_with_arviz(row, draws):
    """Compare a row of a table with ArviZ; `draws` are (chain, draw)."""
    expected = {
        "Mean": draws.mean(),
        "StdDev": draws.std(ddof=1),
        "MCSE": draws.std(ddof=1) / np.sqrt(float(az.ess(draws, method="mean"))),
        "50%": np.quantile(draws, 0.5),
        "ESS_bulk": float(az.ess(draws, method="bulk")),
        "ESS_tail": float(az.ess(draws, method="tail", prob=(0.05, 0.95))),
        "R_hat": float(az.rhat(draws, method="rank")),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(row[name], value, rtol=1e-8, atol=1e-12, err_msg=name)


def test_a_table_has_the_numbers_of_arviz_in_the_order_of_cmdstan(tmp_path, capsys):
    columns = {name: gamma(i, 4, 300) for i, name in enumerate(COLUMNS.split())}
    files = write_chains(tmp_path, columns | {"fixed": np.full((4, 300), 2.0)})
    table = summary(tmp_path, "--percentiles=2.5,50,99", *files)
    assert " ".join(table) == "Mean MCSE StdDev MAD 2.5% 50% 99% ESS_bulk ESS_tail ESS_bulk/s R_hat"
    assert [n for n in table.index if not n.endswith("__")] == [*NAMES.split(), "fixed"]
    check_with_arviz(table.loc["m[2,1]"], columns["m.2.1"])
    check_with_arviz(table.loc["pairs[2].2[1]"], columns["pairs.2:2.1"])
    x = columns["tau"]
    assert table.loc["tau", "MAD"] == pytest.approx(1.4826 * np.median(np.abs(x - np.median(x))))
    assert table.loc["tau", "ESS_bulk/s"] == pytest.approx(table.loc["tau", "ESS_bulk"] / 2)
    fixed = table.loc["fixed"]
    assert (fixed["Mean"], fixed["StdDev"]) == (2, 0)
    assert fixed[["MCSE", "ESS_bulk", "ESS_tail", "R_hat"]].isna().all()
    assert "pairs[2].2[1]" in capsys.readouterr().out


def test_chains_are_judged_as_by_the_command(tmp_path, capfd):
    apart = gamma(2, 2, 200) + np.array([[0], [4]])
    files = write_chains(tmp_path, {"x": apart, "fixed": np.ones((2, 200))})
    assert diagnose(list(map(str, files))) == 0
    assert "✗" in capfd.readouterr().out


@pytest.mark.stan
@pytest.mark.usefixtures("quiet", "own_home")
def test_cmdstanpy_summarises_and_diagnoses(gauss):
    fit = sample(gauss, data=GAUSS, chains=4, iter_sampling=500, save_warmup=True, sig_figs=17)
    table = fit.summary(percentiles=(10, 50), sig_figs=17)
    draws = fit.draws_xr()
    assert table.index[0] == "lp__"
    for name in table.index[1:]:
        base, _, index = name.rstrip("]").partition("[")
        values = draws[base].values
        for place in index.split(",") if index else ():
            values = values[:, :, int(place) - 1]
        check_with_arviz(table.loc[name], values)
    assert fit.diagnose().startswith("✓ Usable")


def test_a_script_runs_in_the_python_that_made_it():
    assert f"exec '{sys.executable}' -P -m onebasin.stan.home.summaries diagnose" in launcher(
        "diagnose"
    )
