"""Files of other makers: Zarr stores, posteriordb's JSON, older names; what is broken is refused in a sentence."""

import json
import logging
import shutil
import zipfile

import numpy as np
import pytest
import xarray as xr

from onebasin.base.errors import PosteriorFileError
from onebasin.inference.runs.posterior import open_posterior, save
from onebasin.posteriors.naming import grouped, stem
from onebasin.posteriors.schema import adopted

from ..each import each
from .chains import refusal

DIMS = ("chain", "draw")


@pytest.fixture
def posterior(rng):
    return xr.Dataset({"mu": ((*DIMS, "mu_dim_0"), rng.normal(size=(2, 9, 3)))})


@each("version", [2, 3])
def test_stores_of_either_format_are_read(posterior, tmp_path, version):
    tree = xr.DataTree.from_dict({"posterior": posterior})
    tree.to_zarr(tmp_path / "run.zarr", zarr_format=version, consolidated=False)
    assert open_posterior(tmp_path / "run.zarr").identical(tree)
    shutil.make_archive(str(tmp_path / "run"), "zip", tmp_path, "run.zarr")  # a folder in it
    assert open_posterior(tmp_path / "run.zip").identical(tree)


def test_variables_of_a_foreign_store_come_by_name(tmp_path, rng):
    names = [f"v{i}" for i in rng.permutation(30)]
    drawn = xr.Dataset({name: (DIMS, rng.normal(size=(2, 9))) for name in names})
    xr.DataTree.from_dict({"posterior": drawn}).to_zarr(tmp_path / "run.zarr", zarr_format=2)
    assert list(open_posterior(tmp_path / "run.zarr").posterior) == sorted(names)


def test_broken_stores_are_refused(posterior, tmp_path):
    path = save(xr.DataTree.from_dict({"posterior": posterior}), tmp_path / "run.zarr")
    (path / "posterior" / "mu" / ".zarray").write_text("{")
    assert "is no Zarr store that can be read" in refusal(path)
    claims = {"shape": [10**9, 10**6], "chunks": [1, 1], "dtype": "<f8", "fill_value": 0.0}
    whole = {"zarr_format": 2, "order": "C", "compressor": None, "filters": None}
    (path / "posterior" / "mu" / ".zarray").write_text(json.dumps(whole | claims))
    assert "of values, but has" in refusal(path)
    shutil.rmtree(path / "posterior")
    shutil.copytree(path, tmp_path / "bare.zarr")
    zipped = save(xr.DataTree.from_dict({"posterior": posterior}), tmp_path / "run.zarr.zip")
    content = zipped.read_bytes()
    for damaged in (content[: len(content) // 2], content.replace(bytes(4), b"\x01\0\0\0", 40)):
        zipped.write_bytes(damaged)
        with pytest.raises(PosteriorFileError, match=r"run\.zarr\.zip"):
            open_posterior(zipped)


def test_a_store_without_draws_is_refused(posterior, tmp_path):
    xr.DataTree.from_dict({"prior": posterior}).to_zarr(tmp_path / "p.zarr", zarr_format=2)
    assert "holds no group 'posterior'" in refusal(tmp_path / "p.zarr")


def test_a_dataset_without_groups_is_the_draws(posterior, tmp_path):
    posterior.to_netcdf(tmp_path / "draws.nc")
    np.testing.assert_array_equal(open_posterior(tmp_path / "draws.nc").posterior.mu, posterior.mu)
    xr.DataTree.from_dict({"prior": posterior}).to_netcdf(tmp_path / "prior.nc")
    assert "holds no group 'posterior'" in refusal(tmp_path / "prior.nc")


CHAIN = {"mu": [1.0, 2.0, 3.0, 4.0], "theta[1]": [1, 2, 3, 4], "theta[2]": [5, 6, 7, 8]}


def test_posteriordbs_draws_are_read(tmp_path, caplog):
    path = tmp_path / "eight.json.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("eight.json", json.dumps([CHAIN, CHAIN]))
    found = open_posterior(path).posterior
    assert {name: values.shape for name, values in found.data_vars.items()} == {
        "mu": (2, 4),
        "theta": (2, 4, 2),
    }
    np.testing.assert_array_equal(found.theta.values[1, :, 1], [5, 6, 7, 8])
    (tmp_path / "one.json").write_text(json.dumps({"x": [[1, 2], [3, 4], [5, 6.5]]}))
    assert open_posterior(tmp_path / "one.json").posterior.x.shape == (1, 3, 2)
    (tmp_path / "two.json").write_text(
        json.dumps({"x": [[1, 2, 3], [4, 5, 6]], "v": [[[1]] * 3] * 2})
    )
    with caplog.at_level(logging.WARNING, "onebasin"):
        found = open_posterior(tmp_path / "two.json").posterior
    assert found.x.values.tolist() == [[1, 2, 3], [4, 5, 6]] and found.v.shape == (2, 3, 1)
    assert "read as 2 chains of 3 draws" in caplog.text


@each(
    ("said", "says"),
    [
        ("{", "is no JSON that can be read"),
        ("", "is no JSON that can be read"),
        ("3", "but not the draws of a posterior"),
        ("[]", "but not the draws of a posterior"),
        ('[{"a": 3}]', "but not the draws of a posterior"),
        ('{"N": 3, "y": [1, 2]}', "but not the draws of a posterior"),
        ('[{"a": []}]', "holds no draws"),
        ('[{"a": [1, 2]}, {"a": [1]}]', "holds `a`, whose chains or draws differ in shape"),
        ('[{"a": [1, 2]}, {"b": [1, 2]}]', "in one chain and not in another"),
        (
            '[{"a": [1, 2], "b": [1]}]',
            "holds `b` with (chain, draw) of (1, 1), and others with (1, 2)",
        ),
        ('[{"draw": [1, 2]}]', "which is the name of an axis"),
        ('[{"": [1, 2]}]', "a name that no file can store"),
        ('[{"a": ["x", "y"]}]', "holds `a` of type <U1, and only numbers"),
        ('[{"a": [[1], [1, 2]]}]', "holds `a`, whose chains or draws differ in shape"),
    ],
)
def test_json_that_holds_no_draws_is_refused(tmp_path, said, says):
    path = tmp_path / "bad.json"
    path.write_text(said)
    message = refusal(path)
    assert says in message and str(path) in message


def test_archives_are_held_to_what_they_claim(tmp_path):
    path = tmp_path / "bomb.json.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", b" " * 70_000_000)
    with zipfile.ZipFile(path) as archive:
        assert archive.infolist()[0].file_size == 70_000_000
    assert "of values, but has" in refusal(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "nothing")
    assert "holds no JSON" in refusal(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", "[]")
        archive.writestr("b.json", "[]")
    assert "holds 2 JSON files" in refusal(path)


def test_older_names_of_statistics_are_ours(posterior, rng):
    shape = (2, 9)
    old = xr.Dataset(
        {
            "divergent": (DIMS, np.zeros(shape, bool)),
            "treedepth": (DIMS, np.ones(shape, int)),
            "lp": (DIMS, np.zeros(shape)),
            "lp__": (DIMS, np.ones(shape)),
            "log_likelihood": ((*DIMS, "obs"), rng.normal(size=(*shape, 5))),
        }
    )
    tree = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": old})
    tree.attrs["seed"] = 3
    found = adopted(tree)
    assert set(found.sample_stats.data_vars) == {"diverging", "tree_depth", "lp", "lp__"}
    np.testing.assert_array_equal(found.sample_stats.lp, 0)
    assert found.log_likelihood.obs.shape == (*shape, 5)
    assert found.attrs == {"seed": 3}
    assert set(tree.sample_stats.data_vars) == set(old.data_vars)  # as it was
    assert adopted(found) is found


def test_files_of_an_older_layout_are_read_with_their_warmup(posterior, tmp_path):
    stats = xr.Dataset({"depth": (DIMS, np.ones((2, 9), int))})
    groups = {"posterior": posterior, "sample_stats": stats, "warmup_posterior": posterior}
    xr.DataTree.from_dict(groups).to_netcdf(tmp_path / "old.nc", engine="h5netcdf")
    tree = open_posterior(tmp_path / "old.nc", lazy=True)
    assert set(tree.children) == set(groups)
    assert tree.sample_stats.tree_depth.values.all()
    tree.close()


def test_names_that_differ_in_a_number_are_chains_of_one_run(tmp_path):
    names = [
        "a_1.csv",
        "a_2.csv",
        "b-1.csv",
        "b-2.csv",
        "c.csv",
        "a_10.csv",
        "run_1.nc",
        "run_2.nc",
    ]
    groups = grouped([tmp_path / name for name in names])
    assert [[path.name for path in group] for group in groups] == [
        ["a_1.csv", "a_2.csv", "a_10.csv"],
        ["b-1.csv", "b-2.csv"],
        ["c.csv"],
        ["run_1.nc"],
        ["run_2.nc"],
    ]
    assert [stem(group).name for group in groups] == ["a", "b", "c", "run_1", "run_2"]
    assert stem([tmp_path / "eight.schools.json.zip"]).name == "eight.schools"
    assert len(grouped([tmp_path / "x" / "a_1.csv", tmp_path / "y" / "a_2.csv"])) == 2
