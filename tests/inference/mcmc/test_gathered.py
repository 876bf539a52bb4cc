"""Draws of all chains put together: in memory, or on disk from a size on, to the same posterior."""

import gc
import tracemalloc

import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist

import onebasin as ob
from onebasin.inference.mcmc.chains import Gathered
from onebasin.inference.runs.posterior import build
from onebasin.posteriors import scratch


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "LARGE", 10)


def regression() -> None:
    """Normal data with a mean that is a sum."""
    with numpyro.plate("item", 3):
        x = numpyro.sample("x", dist.Normal(0, 1))
    numpyro.deterministic("total", x.sum())
    numpyro.sample("y", dist.Normal(x.sum(), 1).expand([2]), obs=np.array([0.3, 0.1]))


@pytest.fixture(scope="module")
def in_memory() -> xr.DataTree:
    return ob.infer(ob.Target("sum", numpyro_model=regression), method=SETTINGS)


SETTINGS = ob.Nuts(chains=2, warmup=40, draws=60)


@pytest.mark.usefixtures("everything_is_large")
def test_a_posterior_on_disk_is_that_in_memory(in_memory, tmp_path):
    target = ob.Target("sum", numpyro_model=regression)
    tree = ob.infer(target, method=SETTINGS, checkpoint=tmp_path / "chains")
    assert not tree["posterior"]["x"].variable._in_memory
    assert set(tree.children) >= {"log_likelihood", "posterior_predictive", "sample_stats"}
    for name, group in in_memory.children.items():
        assert tree[name].to_dataset().identical(group.to_dataset()), name
    ob.save(tree, tmp_path / "run.nc")
    assert ob.open_posterior(tmp_path / "run.nc")["posterior"].identical(in_memory["posterior"])
    tree.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chains", "run.nc"]
    (tmp_path / "run.nc").unlink()
    again = ob.infer(target, method=SETTINGS, checkpoint=tmp_path / "chains")
    assert len(list(tmp_path.iterdir())) == 3  # draws, and what is beside them
    del again, tree  # what nobody has any more is removed
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["chains"]


def test_laying_down_many_draws_and_saving_them_takes_little_memory(tmp_path):
    blocks, rows, width = 45, 1000, 100  # 36 MB, and statistics beside them
    tracemalloc.start()
    there = Gathered(1, blocks * rows, tmp_path)
    for number in range(blocks):
        draws = {"x": np.full((rows, width), float(number))}
        there.put(0, number * rows, draws, {"lp": np.zeros(rows)})
    tree = build(ob.Target("many"), there.draws, there.stats, {"engine": "stan"})
    ob.save(tree, tmp_path / "run.nc")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
    with ob.open_posterior(tmp_path / "run.nc", lazy=True) as saved:
        assert saved["posterior"]["x"][0, ::rows, 0].values.tolist() == list(range(blocks))


def test_thinned_draws_are_the_last_of_each_and_count_what_is_between():
    """Put in pieces that cut through, against the same put at once."""
    rng = np.random.default_rng(0)
    draws = {"x": rng.normal(size=(14, 2))}
    stats = {"n_steps": rng.integers(1, 8, 14), "tree_depth": rng.integers(1, 4, 14)}
    stats |= {"diverging": rng.uniform(size=14) < 0.1, "acceptance_rate": rng.uniform(size=14)}
    stats |= {"energy": rng.normal(size=14)}
    out = Gathered(1, 4, thin=3)
    for first, last in ((0, 1), (1, 2), (2, 8), (8, 14)):
        out.put(0, first, *({n: v[first:last] for n, v in each.items()} for each in (draws, stats)))
    np.testing.assert_array_equal(out.draws["x"][0], draws["x"][2:12:3])
    by_draw = {name: values[:12].reshape(4, 3) for name, values in stats.items()}
    summaries = {"n_steps": np.sum, "tree_depth": np.max, "diverging": np.any}
    summaries["acceptance_rate"] = np.mean
    for name, summary in summaries.items():
        np.testing.assert_allclose(out.stats[name][0], summary(by_draw[name], axis=1), err_msg=name)
    np.testing.assert_array_equal(out.stats["energy"][0], stats["energy"][2:12:3])
