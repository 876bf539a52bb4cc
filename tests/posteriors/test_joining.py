"""Tests that separate runs become one posterior, and that runs of different posteriors are rejected."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.base.errors import PosteriorFileError
from onebasin.models.symmetry.evidence import Evidence


def run(seed, *, chains=1, draws=20, part=2, **attrs):
    rng = np.random.default_rng(seed)
    lead, coords = (chains, draws), {"chain": np.arange(chains), "draw": np.arange(draws)}
    dims = ("chain", "draw")
    posterior = xr.Dataset({"mu": ((*dims, "part"), rng.normal(size=(*lead, part)))}, coords)
    stats = xr.Dataset({"lp": (dims, rng.normal(size=lead))}, coords)
    data = xr.Dataset({"y": ("obs", np.arange(3.0))})
    groups = {"posterior": posterior, "sample_stats": stats, "observed_data": data}
    tree = xr.DataTree.from_dict(groups | {"log_prior": stats.rename(lp="all")})
    own = {"method": "nuts", "engine": "stan", "seed": seed, "gradient_evaluations": 10 * seed}
    own |= {"settings": json.dumps({"chains": chains, "draws": draws}), "fingerprint": f"of {seed}"}
    own |= {"sampling_seconds": json.dumps([float(seed)] * chains)}
    tree.attrs = own | {"symmetry_evidence": Evidence(points=5, draws=3).to_json(), **attrs}
    return tree


@pytest.fixture
def files(tmp_path):
    runs = {"one": run(1), "two": run(2, chains=2), "three": run(3)}
    return [ob.save(tree, tmp_path / f"{name}.nc") for name, tree in runs.items()]


def test_chains_stand_in_the_order_of_the_files(files):
    tree = ob.open_posterior(files)
    mu = [ob.open_posterior(path).posterior["mu"].values for path in files]
    np.testing.assert_array_equal(tree.posterior["mu"], np.concatenate(mu))
    assert list(tree.posterior["chain"]) == [0, 1, 2, 3]
    sizes = {"chain": 4, "draw": 20}
    held = {"sample_stats": sizes, "log_prior": sizes, "observed_data": {"obs": 3}}
    assert {name: dict(tree[name].sizes) for name in held} == held


def test_attributes_say_what_all_share_and_what_each_had(files):
    attrs = ob.open_posterior(files).attrs
    assert (attrs["method"], attrs["engine"], attrs["gradient_evaluations"]) == ("nuts", "stan", 60)
    assert json.loads(attrs["settings"]) == {"chains": 4, "draws": 20}
    assert json.loads(attrs["sampling_seconds"]) == [1.0, 2.0, 2.0, 3.0]
    assert Evidence.from_json(attrs["symmetry_evidence"]) == Evidence(points=15, draws=9)
    assert "seed" not in attrs and "fingerprint" not in attrs
    joined = [(one["file"], one["seed"], one["chains"]) for one in json.loads(attrs["joined"])]
    assert joined == [("one.nc", 1, 1), ("two.nc", 2, 2), ("three.nc", 3, 1)]


def test_new_random_streams_are_those_of_each_run(files):
    with xr.open_datatree(files[1], engine="h5netcdf") as tree:
        tree.load()
    tree.attrs["restarts"] = json.dumps([[], [5]])
    tree.to_netcdf(files[1], engine="h5netcdf")
    attrs = ob.open_posterior(files).attrs
    assert json.loads(attrs["restarts"]) == [[], [], [5], []]


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (run(1), "has the same chain as .*one.nc: give every run its own seed"),
        (run(2, data_sha256="other"), "differs from .*one.nc in its data"),
        (run(2, program="other"), "in its program"),
        (run(2, engine="numpyro"), "in its engine"),
        (run(2, method="advi-meanfield"), "of the method advi-meanfield, so it cannot be joined"),
        (
            run(2, settings=json.dumps({"chains": 1, "draws": 20, "target_accept": 0.9})),
            "target_accept=0.9, whereas",
        ),
        (
            run(2, draws=30, settings=json.dumps({"chains": 1, "draws": 20})),
            r"shapes of mu: \(30, 2\) and \(20, 2\)",
        ),
        (run(2, part=3), r"shapes of mu: \(20, 3\) and \(20, 2\)"),
    ],
)
def test_what_is_not_of_one_posterior_is_refused(other, says, tmp_path):
    paths = [ob.save(run(1), tmp_path / "one.nc"), ob.save(other, tmp_path / "two.nc")]
    with pytest.raises(PosteriorFileError, match=says):
        ob.open_posterior(paths)


def test_a_group_of_other_draws_is_left_out(tmp_path):
    thinned = run(2)
    some = thinned["log_prior"].to_dataset().isel(draw=slice(None, None, 2))
    thinned["log_prior"] = xr.DataTree(some)
    paths = [ob.save(run(1), tmp_path / "one.nc"), ob.save(thinned, tmp_path / "two.nc")]
    tree = ob.open_posterior(paths)
    assert "log_prior" not in tree.children and tree.posterior.sizes["chain"] == 2
