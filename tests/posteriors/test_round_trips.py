"""Tests that every format returns what was written, and that content it cannot store is reported."""

import json
import logging

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from onebasin.base.errors import PosteriorFileError
from onebasin.posteriors.open import open_posterior
from onebasin.posteriors.writing import save

WHOLE = ("run.nc", "run.zarr", "run")
DRAWS = ("run.csv", "run.parquet")


@pytest.fixture
def tree(rng):
    shape, dims = (3, 20), ("chain", "draw")
    coords = {"chain": np.arange(3), "draw": np.arange(20)}
    posterior = xr.Dataset(
        {
            "mu": ((*dims, "part"), rng.normal(size=(*shape, 2))),
            "L": ((*dims, "L_dim_0", "L_dim_1"), rng.normal(size=(*shape, 2, 3))),
            "tau": (dims, np.exp(300 * rng.normal(size=shape))),
            "k": (dims, rng.integers(0, 9, size=shape)),
        },
        coords={**coords, "part": ["low <b>", "h\x1b[31m"]},
        attrs={"note": "of draws"},
    )
    posterior["mu"].attrs["units"] = "m"
    numbers = {"diverging": rng.random(shape) < 0.2, "tree_depth": rng.integers(1, 9, size=shape)}
    numbers |= {name: rng.normal(size=shape) for name in ("lp", "own")}
    stats = xr.Dataset({name: (dims, values) for name, values in numbers.items()}, coords)
    data = xr.Dataset({"y": ("obs", np.arange(4.0)), "N": 4})
    groups = {"posterior": posterior, "sample_stats": stats, "observed_data": data}
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {"target": "t", "seed": 3, "settings": json.dumps({"draws": 20})}
    return tree


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("lazy", [False, True])
def test_formats_of_arrays_hold_everything(tree, tmp_path, name, lazy, caplog):
    again = open_posterior(save(tree, tmp_path / name), lazy=lazy)
    xr.testing.assert_identical(again.load(), tree)
    again.close()
    assert not caplog.records


@pytest.mark.parametrize("name", DRAWS)
def test_formats_of_draws_hold_their_values(tree, tmp_path, name, caplog):
    with caplog.at_level(logging.WARNING, "onebasin"):
        again = open_posterior(save(tree, tmp_path / name))
    for variable, values in tree.posterior.data_vars.items():
        np.testing.assert_array_equal(again.posterior[variable].values, values.values)
        assert again.posterior[variable].dims[:2] == ("chain", "draw")
    (record,) = caplog.records
    said = record.getMessage()
    assert "observed_data" in said and "3 attributes" in said and "(part)" in said
    for variable, values in tree.sample_stats.data_vars.items():
        np.testing.assert_array_equal(again.sample_stats[variable].values, values.values)
    assert again.sample_stats.diverging.dtype == bool


def test_a_table_has_a_row_a_draw(tree, tmp_path):
    first, *rows = save(tree, tmp_path / "run.csv").read_text().splitlines()
    assert first.startswith("chain,draw,divergent__,treedepth__,lp__,own__,mu.1,mu.2,L.1.1,L.1.2")
    assert len(rows) == 60
    assert [row.split(",")[:2] for row in rows[19:21]] == [["1", "20"], ["2", "1"]]


def test_parquet_tables_of_pandas_are_read(tmp_path):
    chain, draw = np.divmod(np.arange(40), 10)
    wide = pd.DataFrame({".chain": chain, ".iteration": draw, "a[1]": draw + 0.5, "a[2]": -chain})
    wide.iloc[::-1].to_parquet(tmp_path / "wide.parquet")
    found = open_posterior(tmp_path / "wide.parquet").posterior
    assert list(found.data_vars) == ["a"]
    expected = np.stack([(draw + 0.5).reshape(4, 10), -chain.reshape(4, 10)], axis=-1)
    np.testing.assert_array_equal(found.a.values, expected)


def test_parquet_files_without_draws_are_refused(tmp_path):
    path = tmp_path / "bad.parquet"
    pd.DataFrame({"chain": [1] * 8, "draw": range(8), "a": 0.0, "word": "a"}).to_parquet(path)
    with pytest.raises(PosteriorFileError, match=r"column 'word' of `.*` has 'a' in row 1, which"):
        open_posterior(path)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(PosteriorFileError, match="not a readable Parquet file"):
        open_posterior(path)


@pytest.mark.parametrize("name", ["run.nc", "run.zarr", "run.csv"])
def test_what_is_there_is_replaced_by_force_alone(tree, tmp_path, name):
    path = save(tree, tmp_path / name)
    with pytest.raises(PosteriorFileError, match="which already exists"):
        save(tree, path)
    other = tree.isel(chain=slice(0, 2))
    save(other, path, force=True)
    assert open_posterior(path).posterior.sizes["chain"] == 2
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_store_takes_the_place_of_a_store_alone(tree, tmp_path):
    notes = tmp_path / "notes.zarr"
    notes.mkdir()
    (notes / "mine.txt").write_text("precious")
    with pytest.raises(PosteriorFileError, match="is a folder with other files"):
        save(tree, notes, force=True)
    assert (notes / "mine.txt").read_text() == "precious"
    (tmp_path / "file.zarr").write_text("precious")
    with pytest.raises(PosteriorFileError, match="is a file, but a folder will be written"):
        save(tree, tmp_path / "file.zarr", force=True)
    (tmp_path / "folder.nc").mkdir()
    with pytest.raises(PosteriorFileError, match="is a folder, but a file will be written"):
        save(tree, tmp_path / "folder.nc", force=True)


@pytest.mark.parametrize("name", ["run.zarr", *DRAWS])
def test_complex_numbers_are_refused(tree, tmp_path, name):
    tree["posterior"] = tree.posterior.to_dataset().assign(z=tree.posterior.tau * 1j)
    with pytest.raises(ValueError, match="cannot store the complex numbers of `z`"):
        save(tree, tmp_path / name)
    assert not list(tmp_path.iterdir())
