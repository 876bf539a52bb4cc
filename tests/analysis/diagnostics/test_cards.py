"""What a notebook and a terminal show of a diagnosis: the answer first, everything escaped."""

import re

import numpy as np
import pandas as pd

import onebasin as ob
from onebasin.analysis.diagnostics.diagnose import diagnose, summary
from onebasin.analysis.report.tables import cost_table
from onebasin.base.table import Table
from onebasin.models.symmetry.blocks import Exchangeable


def test_a_terminal_shows_the_answer_first_and_the_tables_after_it(make_mcmc, rng):
    tree = make_mcmc({"\x1b[31mmu": rng.normal(size=(4, 500, 2))})
    found = diagnose(tree)
    pd.testing.assert_frame_equal(summary(tree), found.parameters)
    text = repr(found)
    assert "✓ labels" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "Worst R-hat" not in text


def test_the_table_keeps_variables_whole_in_the_models_order_and_names_the_worst_of_all(
    make_mcmc, rng
):
    noise = rng.normal(size=(4, 250, 60))
    noise[:, :, 7] += np.arange(4)[:, None]
    mu = rng.normal(size=(4, 250, 3))
    tau = rng.normal(size=(4, 250))
    found = diagnose(make_mcmc({"noise": noise, "mu": mu, "tau": tau}), align=False)
    short, whole = (found.card(whole=whole) for whole in (False, True))
    tables = [[part for part in card.parts if isinstance(part, Table)] for card in (short, whole)]
    rows = [[row[0].value.strip("`") for row in table.cells] for (table,) in tables]
    assert rows[0] == ["mu[0]", "mu[1]", "mu[2]", "tau"]
    assert rows[1] == [*(f"noise[{k}]" for k in range(60)), "mu[0]", "mu[1]", "mu[2]", "tau"]
    text = short.text()
    assert "60 more (`noise`). Worst of all 64: R-hat" in " ".join(text.split())
    assert "(`noise[7]`)" in text and "more (" not in whole.text()
    marked = {row[0].value for row in tables[1][0].cells if any(cell.flag for cell in row)}
    assert marked == {"`noise[7]`"}


def test_each_fact_of_an_answer_stands_once(make_mcmc, rng):
    mu = np.array([-4.0, 4.0]) + rng.normal(size=(4, 500, 2))
    mu[::2] = mu[::2, :, ::-1]
    diverging = (np.arange(2000) < 3).reshape(4, 500)
    tree = make_mcmc({"mu": mu}, stats={"diverging": diverging})
    found = diagnose(tree, symmetry=(Exchangeable({"mu": 0}),))
    text = " ".join(repr(found).split())
    for fact in (
        "3 of 2000 draws diverged",
        f"{found.rhat.value:.2f}",
        "Raise the target",
        "mu` move",
    ):
        assert text.count(fact) == 1, fact
    assert found.judgement.sentence.count("diverged") == 1  # which stands alone elsewhere


def test_a_summary_prints_the_digits_that_the_sd_needs_in_80_columns_and_holds_all(make_mcmc, rng):
    z = rng.normal(size=(3, 4, 250))
    tree = make_mcmc({"fine": 1234.5678 + 1e-6 * z[0], "large": 1.7e9 + 10 * z[1], "mu": z[2]})
    table = summary(tree)
    assert table.loc["large", "mean"] == diagnose(tree).parameters.loc["large", "mean"]
    lines = repr(table).replace(",", "").splitlines()
    assert max(map(len, lines)) <= 80
    assert " sd " in lines[1] and "R-hat" in lines[1]
    assert "1234.56780" in lines[2] and "1700000016" in lines[3]
    rhats = re.findall(r" (1\.0\d+) ", "\n".join(lines[2:5]))
    assert len(rhats) == 3 and len({*map(len, rhats)}) == 1


def test_what_to_do_can_be_pasted_where_the_posterior_is_a_file(make_mcmc, rng, tmp_path):
    mu = np.array([-4.0, 4.0]) + rng.normal(size=(4, 250, 2))
    mu[::2] = mu[::2, :, ::-1]
    ob.save(make_mcmc({"mu": mu}), tmp_path / "run.nc")
    found = diagnose(tmp_path / "run.nc")
    command = f"`onebasin align {tmp_path / 'run.nc'} --out aligned.nc`"
    assert command in found.judgement.causes[0].remedy
    again = ob.align(tmp_path / "run.nc", diagnosis=found)
    assert again.element is found.aligned.alignment.element
    assert again.found == found.exchangeable == ("mu",)
    raw, aligned = cost_table({"run": found}).cells
    assert aligned[0].value == "run, aligned"
    assert aligned[-1].value > 10 * raw[-1].value  # ESS of aligned draws for the same gradients
