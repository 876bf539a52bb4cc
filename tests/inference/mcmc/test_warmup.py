"""Warmups that are kept: every iteration, in order, beside draws that are the same without."""

import json
from typing import Any

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.base.errors import ArgumentError

from ..known import known_target

WARMUP, DRAWS = 6, 4


def nuts(engine: str, definition: str, **settings: Any) -> xr.DataTree:
    return ob.nuts(
        known_target(definition),
        engine=engine,
        chains=2,
        seed=1,
        check_symmetry=False,
        **{"warmup": WARMUP, "draws": DRAWS, **settings},
    )


@pytest.mark.parametrize(
    ("engine", "definition"),
    [
        ("stanli", "stan"),
        ("numpyro", "numpyro"),
        pytest.param("cmdstan", "stan", marks=(pytest.mark.stan, pytest.mark.cmdstan)),
    ],
)
def test_warmup_and_draws_are_the_iterations_of_one_chain(engine, definition):
    """Without adaptation, a chain does not know which of its iterations are called warmup."""
    fixed = {"adapt": False, "adapt_from": {"step_size": 0.5, "inverse_metric": [1.0, 0.5, 0.7]}}
    thinned = nuts(engine, definition, save_warmup=True, thin=2, **fixed)
    whole = nuts(engine, definition, warmup=0, draws=WARMUP + 2 * DRAWS, **fixed)
    for name in ("posterior", "sample_stats"):
        every, kept = whole[name].to_dataset(), thinned[name].to_dataset()
        warm = thinned[f"warmup_{name}"].to_dataset()
        assert set(warm) == set(kept) == set(every)
        for variable in ("x", "tau") if name == "posterior" else ("lp", "energy"):
            values = every[variable].values
            np.testing.assert_array_equal(warm[variable].values, values[:, :WARMUP])
            np.testing.assert_array_equal(kept[variable].values, values[:, WARMUP + 1 :: 2])
    assert thinned["warmup_posterior"]["x"].dims == thinned.posterior["x"].dims
    assert json.loads(thinned.attrs["settings"])["save_warmup"] is True
    assert "warmup_posterior" not in whole.children
    if engine == "stanli":
        bare = thinned.drop_nodes(["warmup_posterior", "warmup_sample_stats"])
        assert str(ob.diagnose(thinned)) == str(ob.diagnose(bare))


def test_nutpie_keeps_its_warmup_and_its_draws():
    kept, bare = (nuts("nutpie", "numpyro", save_warmup=save) for save in (True, False))
    for name in ("posterior", "sample_stats"):
        xr.testing.assert_equal(kept[name].to_dataset(), bare[name].to_dataset())
        assert dict(kept[f"warmup_{name}"].sizes) == {**kept[name].sizes, "draw": WARMUP}
    assert not np.isin(kept["warmup_posterior"]["tau"], kept.posterior["tau"]).all()


def test_a_start_of_a_stan_program_is_taken_by_nutpie():
    """Also where the density is flat along a coordinate, as it is along this `tau`."""
    far = {"x": [100.0, -200.0], "tau": 1.5}
    found = nuts("nutpie", "stan", init=far, max_tree_depth=1, save_warmup=True)
    np.testing.assert_array_equal(found["starts"]["x"], [far["x"]] * 2)
    assert (abs(found["warmup_posterior"]["x"].values[:, 0]) > 50).all()
    best = nuts("nutpie", "stan", init="optimum")
    np.testing.assert_allclose(best["starts"]["x"], [[1, -2]] * 2, atol=2e-3)


def test_a_run_that_keeps_its_warmup_cannot_be_resumed(tmp_path):
    with pytest.raises(ArgumentError, match="nuts with `save_warmup` keeps nothing before it ends"):
        nuts("stanli", "stan", save_warmup=True, checkpoint=tmp_path / "kept")
