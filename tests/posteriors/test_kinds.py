"""Tests that all kinds of draws from all sources are read correctly, or rejected with a reason, without warnings."""

import types
import warnings

import arviz_base
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import onebasin as ob
from onebasin.cli.main import main
from onebasin.posteriors.view import as_view

CHAINS, DRAWS = 4, 60


def draws(*shape):
    return np.random.default_rng(len(shape)).normal(size=(CHAINS, DRAWS, *shape))


RNG = np.random.default_rng(1)


def fresh(*shape):
    return RNG.normal(size=(CHAINS, DRAWS, *shape))


def dataset(arrays):
    dims = {
        n: ("chain", "draw", *(f"axis{i}_{v.shape[i]}" for i in range(2, v.ndim)))
        for n, v in arrays.items()
    }
    return xr.Dataset({name: (dims[name], values) for name, values in arrays.items()})


def columns(arrays, chain=slice(None)):
    """Return scalar columns by name."""
    whole = {n: v.astype(float) if v.dtype.kind == "f" else v for n, v in arrays.items()}
    flat = {n: v[chain].reshape(-1, *v.shape[2:]) for n, v in whole.items()}
    found = {}
    for name, values in flat.items():
        found |= zip(
            bracketed(name, values.shape[1:]), values.reshape(len(values), -1).T, strict=True
        )
    return found


def bracketed(name, shape):
    """Yield names of entries as R's `posterior` writes them."""
    for index in np.ndindex(*shape):
        yield f"{name}[{','.join(str(place + 1) for place in index)}]" if shape else name


def table(arrays):
    numbers = {"chain__": np.repeat(np.arange(CHAINS), DRAWS), "draw__": np.arange(CHAINS * DRAWS)}
    return pd.DataFrame(numbers | columns(arrays)).sample(frac=1, random_state=1)


def as_csv(arrays, path, **how):
    table(arrays).to_csv(path, index=False, **how)
    return path


def as_netcdf(arrays, path):
    xr.DataTree.from_dict({"posterior": dataset(arrays)}).to_netcdf(path, engine="h5netcdf")
    return path


WAYS = {
    "mapping": lambda arrays, folder: arrays,
    "groups": lambda arrays, folder: {"posterior": arrays},
    "lists": lambda arrays, folder: {name: values.tolist() for name, values in arrays.items()},
    "dataset": lambda arrays, folder: dataset(arrays),
    "transposed": lambda arrays, folder: dataset(arrays).transpose(..., "draw", "chain"),
    "table": lambda arrays, folder: table(arrays),
    "csv": lambda arrays, folder: as_csv(arrays, folder / "a.csv"),
    "tsv": lambda arrays, folder: as_csv(arrays, folder / "a.tsv", sep="\t"),
    "csv.gz": lambda arrays, folder: as_csv(arrays, folder / "a.csv.gz"),
    "nc": lambda arrays, folder: as_netcdf(arrays, folder / "a.nc"),
    "zarr": lambda arrays, folder: ob.save(as_view(arrays).tree, folder / "a.zarr"),
}
"""Sources of arrays (chain, draw, ...)."""

HALF = np.broadcast_to([True, True, False, False], (DRAWS, CHAINS)).T
GOOD = {
    **{name: fresh() for name in ("..c", "lp", "b_dim_0")},
    **{name: fresh(2) for name in ("a" * 5000, "posterior", "b")},
    **{"my name": fresh(3), "a$b": fresh(3), "a.b": fresh(2, 2)},
    "single": fresh(2).astype(np.float32),
    "half": fresh(2).astype(np.float16),
    "truth": fresh(2) > 0,
    "whole": np.round(10 * fresh(2)).astype(np.int16),
    "constant": np.ones((CHAINS, DRAWS, 2)),
    "apart": np.where(HALF, 0.37, 1.9),
    "large": 1e300 * fresh(2),
    "small": 1e-300 * fresh(2),
}
BROKEN = GOOD | {
    "nan": np.where(HALF, np.nan, fresh()),
    "infinite": np.where(fresh(2) > 2, np.inf, fresh(2)),
}
SLASH = {"encoder/w": draws(2), "encoder/b": draws()}


@pytest.mark.parametrize("way", WAYS)
def test_draws_are_read_in_whatever_way_they_come(tmp_path, way):
    # A store has files of these names.
    arrays = {n: v for n, v in BROKEN.items() if len(n) < 100 or way != "zarr"}
    view = as_view(WAYS[way](arrays, tmp_path))
    assert set(view.variables) == set(arrays)
    for name, values in arrays.items():
        found = view.posterior[name].transpose("chain", "draw", ...).values
        np.testing.assert_allclose(found, values, rtol=1e-14, err_msg=name)


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("nc", "zarr", "groups")])
def test_a_slash_becomes_a_dot(tmp_path, way):
    view = as_view(WAYS[way](SLASH, tmp_path))
    assert set(view.variables) == {"encoder.w", "encoder.b"}
    np.testing.assert_allclose(view.values("encoder.w"), SLASH["encoder/w"], rtol=1e-14)


def test_stans_columns_in_a_mapping_are_statistics():
    view = as_view({"mu": draws(), "lp__": draws(), "divergent__": HALF})
    assert view.variables == ("mu",)
    np.testing.assert_array_equal(view.stat("lp"), draws())
    np.testing.assert_array_equal(view.stat("diverging"), HALF)


def test_masked_draws_are_nan_and_numbers_of_pythons_are_read():
    masked = np.ma.masked_array(draws(2), mask=draws(2) > 1)
    view = as_view({"masked": masked, "object": draws().astype(object)})
    np.testing.assert_array_equal(view.values("masked"), masked.filled(np.nan))
    np.testing.assert_array_equal(view.values("object"), draws())
    held = dataset({"object": draws().astype(object), "none": draws(0)})
    assert as_view(held).variables == ("object",)


def test_labels_that_repeat_are_replaced_by_places():
    labels = ["a", "a", "b"]
    view = as_view(dataset({"mu": draws(3)}).assign_coords(axis0_3=labels, axis2_3=labels))
    assert view.draws().names == ("mu[0]", "mu[1]", "mu[2]")


def result(maker, name, **own):
    """Make an object that looks like the result of another package."""
    return type(name, (), {"__module__": maker, **own})()


def mcmc(samples, parameter, **own):
    """Make an `MCMC` of NumPyro with these samples."""
    state = types.SimpleNamespace(z={parameter: 0.0})
    own |= {"get_samples": lambda self, group_by_chain: samples, "last_state": state}
    return result("numpyro.infer.mcmc", "MCMC", sampler=None, **own)


def test_many_short_chains_are_read_without_a_warning(monkeypatch):
    short = {"mu": np.arange(48.0).reshape(12, 4)}
    with pytest.warns(UserWarning, match="Found chain dimension"):
        arviz_base.from_dict({"posterior": short})
    monkeypatch.setattr(
        "arviz_base.from_numpyro",
        lambda mcmc: arviz_base.from_dict({"posterior": mcmc.get_samples(group_by_chain=True)}),
    )
    np.testing.assert_array_equal(as_view(mcmc(short, "mu")).values("mu"), short["mu"])


def test_results_of_samplers_are_known_by_their_makers():
    walkers = {"get_chain": draws(2).swapaxes(0, 1), "get_log_prob": draws().T}
    methods = {name: lambda self, held=held: held for name, held in walkers.items()}
    view = as_view(result("emcee.ensemble", "EnsembleSampler", **methods))
    np.testing.assert_array_equal(view.values("x"), draws(2))
    np.testing.assert_array_equal(view.stat("lp"), draws())
    energies = {"potential_energy": draws()}
    view = as_view(mcmc(SLASH, "encoder/w", get_extra_fields=lambda self, group_by_chain: energies))
    assert view.kinds.of == {"encoder.w": "parameter", "encoder.b": "transformed"}
    np.testing.assert_array_equal(view.stat("lp"), -draws())


def test_sums_of_a_simplex_in_single_precision_are_constants():
    w = np.exp(draws(5)).astype(np.float32)
    w /= w.sum(axis=-1, keepdims=True)
    kinds = {"w": w, "total": w.sum(axis=-1), "mean": w.mean(axis=-1)}
    assert np.ptp(kinds["total"]) > 0
    found = ob.diagnose(kinds)
    assert found.constants == ("total", "mean")
    assert found.parameters.loc[["total", "mean"], "rhat"].isna().all()
    other = {name: values[::-1, ::-1] for name, values in kinds.items()}
    assert "means differ" not in str(ob.compare({"a": kinds, "b": other}, truth="b"))


def test_no_warning_and_no_senseless_number_is_seen(tmp_path, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for arrays in (GOOD, BROKEN):
            rhat = ob.diagnose(arrays).parameters["rhat"]
            assert rhat[rhat < np.inf].max() < 2
            assert rhat["apart"] == np.inf
        few = {name: GOOD[name] for name in ("large", "small", "apart", "constant", "posterior")}
        ob.report({"run": few | {"nan": BROKEN["nan"]}}, tmp_path / "run.html")
        ob.compare({"a": few, "b": few}, truth="b")
        ob.align(few, "posterior")
        assert main(["diagnose", str(as_csv(BROKEN, tmp_path / "run.csv"))]) == 0
    assert "✗ Not usable" in capsys.readouterr().out
