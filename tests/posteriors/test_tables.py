"""Tests of tables as people write them: separators, byte order marks, gaps, counting from 0, rows in any order."""

import io

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from onebasin.base.errors import PosteriorFileError
from onebasin.posteriors.open import open_tree
from onebasin.posteriors.view import as_view

CHAINS, DRAWS = 3, 20


@pytest.fixture
def table(rng):
    """Make a table as R's `posterior` writes it: three chains of 20 draws of two entries of `mu`."""
    mu = rng.normal(size=(CHAINS, DRAWS, 2))
    chain, iteration = (each.ravel() + 1 for each in np.indices((CHAINS, DRAWS)))
    columns = {".chain": chain, ".iteration": iteration, ".draw": np.arange(len(chain)) + 1}
    columns |= {f"mu[{k + 1}]": mu[..., k].ravel() for k in range(2)}
    return pd.DataFrame(columns), mu


def _text(frame, **how):
    out = io.StringIO()
    frame.to_csv(out, **{"index": False, **how})
    return out.getvalue().encode()


ZERO = {"mu[1]": "mu[0]", "mu[2]": "mu[1]"}
TUPLES = {"mu[1]": "('mu', 0)", "mu[2]": "('mu', 1)"}


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("mark.csv", lambda f: b"\xef\xbb\xbf" + _text(f)),
        ("commented.csv", lambda f: b"\xef\xbb\xbf# of R\n" + _text(f)),
        ("semicolons.csv", lambda f: _text(f, sep=";")),
        ("row_names.csv", lambda f: _text(f, index=True)),
        ("windows.csv", lambda f: _text(f, lineterminator="\r\n")),
        ("zero.csv", lambda f: _text(f.rename(columns=ZERO))),
        ("tuples.csv", lambda f: _text(f.rename(columns=TUPLES))),
        ("by_draw.csv", lambda f: _text(f.sort_values(".iteration"))),
        ("columns.csv", lambda f: _text(f[list(f)[::-1]])),
    ],
)
def test_a_table_is_read_however_it_was_written(tmp_path, table, name, write):
    frame, mu = table
    path = tmp_path / name
    path.write_bytes(write(frame))
    found = open_tree([path])["posterior"]
    assert list(found.data_vars) == ["mu"]
    np.testing.assert_allclose(found["mu"].values, mu, rtol=1e-12)


def test_a_field_without_a_number_is_nan(tmp_path, table):
    frame, mu = table
    frame.loc[5, "mu[1]"] = np.nan
    for word in ("NA", ""):
        path = tmp_path / f"missing{word}.csv"
        path.write_bytes(_text(frame, na_rep=word))
        found = open_tree([path])["posterior"]["mu"].values
        assert np.isnan(found[0, 5, 0])
        assert np.isnan(found).sum() == 1
        np.testing.assert_allclose(found[1:], mu[1:], rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.assign(group="a"), "column 'group' of `.*` has 'a' in row 1, which is not a"),
        (lambda f: pd.concat([f, pd.DataFrame([f.columns], columns=f.columns)]), "in row 61, whi"),
        (lambda f: f.assign(**{".chain": f[".chain"].replace(3, np.nan)}), "rows without a number"),
        (lambda f: f.drop(index=f.index[-1]), "between 19 and 20 draws"),
        (
            lambda f: f.assign(**{".chain": 1}),
            "several rows of a chain have the same draw number.*`.chain`",
        ),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_the_reason(tmp_path, table, change, said):
    path = tmp_path / "t.csv"
    path.write_bytes(_text(change(table[0]), sep=";"))
    with pytest.raises(PosteriorFileError, match=said):
        open_tree([path])


def test_rows_of_one_chain_are_put_in_the_order_of_their_draws(tmp_path, table):
    frame, mu = table
    one = frame[:DRAWS].drop(columns=[".chain", ".draw"])
    (tmp_path / "one.csv").write_bytes(_text(one[::-1]))
    found = open_tree([tmp_path / "one.csv"])["posterior"]
    np.testing.assert_allclose(found["mu"].values, mu[:1], rtol=1e-12)
    with pytest.raises(ValueError, match="several rows of a chain have the same draw number"):
        as_view(pd.concat([one, one]))


def _posterior(rng):
    mu, th = rng.normal(size=(4, 20)), rng.normal(size=(4, 20, 3))
    held = {"mu": (("chain", "draw"), mu), "th": (("chain", "draw", "k"), th)}
    return xr.Dataset(held, coords={"chain": range(4), "draw": range(20), "k": ["a", "b", "c"]})


@pytest.mark.parametrize("of", ["index", "columns", "csv", "parquet"])
def test_chains_and_draws_are_read_from_an_index_or_columns(tmp_path, rng, of):
    """Without these numbers, all chains would become one chain in the order of rows."""
    dataset = _posterior(rng)
    table = dataset[["mu"]].to_dataframe(dim_order=["draw", "chain"])
    if of == "columns":
        table = table.reset_index().sample(frac=1, random_state=0)
    if of in ("csv", "parquet"):
        getattr(table, f"to_{of}")(tmp_path / f"t.{of}")
        table = tmp_path / f"t.{of}"
    found = as_view(table).posterior
    np.testing.assert_allclose(found["mu"].transpose("chain", "draw"), dataset["mu"], rtol=1e-12)
    with pytest.raises(ValueError, match="several rows of a chain have the same draw number"):
        as_view(dataset.to_dataframe())  # One row per entry of a vector.


def test_stacked_datasets_columns_of_chains_and_of_two_levels_are_read(rng):
    dataset = _posterior(rng)
    shuffled = dataset.isel(draw=rng.permutation(20))
    for other in (dataset.stack(sample=("chain", "draw")), shuffled):
        np.testing.assert_array_equal(as_view(other).values("mu"), dataset["mu"])
    by_chain = dataset["mu"].to_pandas().T
    np.testing.assert_array_equal(as_view(by_chain).values("x"), dataset["mu"])
    wide = pd.DataFrame({("posterior", "mu"): dataset["mu"].values.ravel()})
    wide["chain", ""], wide["draw", ""] = np.repeat(range(4), 20), np.tile(range(20), 4)
    wide["sample_stats", "lp"] = 1.0
    view = as_view(wide)
    np.testing.assert_array_equal(view.values("mu"), dataset["mu"])
    assert (view.stat("lp") == 1).all()
