"""References are opened as posteriors by their names, and runs are judged against them."""

from functools import cache

import jax
import pytest

import onebasin as ob
from onebasin.truth.problems import PROBLEMS

NUTS = ob.Nuts(chains=4, warmup=500, draws=1500)


@cache
def run_of(name):
    with jax.numpy_rank_promotion("allow"):
        return ob.infer(PROBLEMS[name].target(), NUTS, engine="numpyro", seed=5)


def test_all_references_are_listed_and_opened():
    table = ob.truth.references()
    assert len(table) == 17
    assert table.loc["mixture-2", "symmetry"] == "mu,sigma,1-theta"
    for name in ("mixture-2", "tanh-teacher", "relu-teacher-givens+ordered"):
        draws = ob.truth.open_reference(name)["posterior"]
        sizes = (v.isel(chain=0, draw=0).size for v in draws.data_vars.values())
        assert draws.sizes["chain"] * draws.sizes["draw"] == 1000
        assert sum(sizes) == table.loc[name, "parameters"]
    with pytest.raises(ValueError, match=r"'mixture-9'; the references are .*, mixture-2, mix"):
        ob.truth.open_reference("mixture-9")


@pytest.mark.parametrize(
    "name",
    [
        "mixture-2",
        *(pytest.param(n, marks=pytest.mark.full) for n in ("eight-schools", "mixture-3")),
    ],
)
def test_a_good_run_agrees_and_one_that_is_short_or_shifted_does_not(name):
    def judged(run):
        return ob.compare({"run": run}, truth=name, permutations=99).table.loc["run", "verdict"]

    run = run_of(name)
    assert judged(run) == "agree"
    assert judged(run.isel(draw=slice(0, 30))) == "undecided"
    shifted = run.copy()
    mu = run["posterior"]["mu"]
    spread = mu.std(dim=("chain", "draw")).min()
    shifted["posterior"] = run["posterior"].to_dataset().assign(mu=mu + 0.3 * spread)
    assert judged(shifted) == "differ"
