"""The search for symmetries before a run: the same for every method, recorded, and no reason for a run to fail."""

import json

import numpy as np
import pytest

import onebasin as ob
from onebasin.inference.runs import run as run_module
from onebasin.posteriors.view import as_view

pytestmark = pytest.mark.finds_symmetry

MIXTURE = """
data { int N; vector[N] y; }
parameters { vector[2] mu; simplex[2] w; }
model {
  mu ~ normal(0, 5);
  for (n in 1 : N) target += log_mix(w[1], normal_lpdf(y[n] | mu[1], 1), normal_lpdf(y[n] | mu[2], 1));
}
generated quantities { vector[2] twice = 2 * mu; }
"""
Y = [*np.linspace(-4, -2, 12), *np.linspace(2, 4, 8)]
SHORT = {"seed": 1, "chains": 2, "warmup": 100, "draws": 50, "progress": False}


@pytest.fixture(scope="module")
def mixture():
    return ob.stan_program(MIXTURE, {"N": len(Y), "y": Y}, name="mixture")


def test_the_symmetry_is_found_tried_at_draws_and_changes_none_of_them(mixture, caplog):
    found = ob.nuts(mixture, **SHORT)
    view = as_view(found)
    assert [set(block.variables) for block in view.declared_symmetry] == [{"mu", "w", "twice"}]
    assert view.symmetry_evidence.draws > 0
    assert view.symmetry_evidence.holds
    assert json.loads(found.attrs["symmetry_found"])["exchangeable"] == ["mu,w"]
    assert [line for line in caplog.messages if "mu,w" in line] == ["Found: mu,w."]
    without = ob.nuts(mixture, symmetry=False, **SHORT)
    assert as_view(without).declared_symmetry == ()
    assert "symmetry_found" not in without.attrs
    for name in ("mu", "w"):
        np.testing.assert_array_equal(found["posterior"][name], without["posterior"][name])


def test_draws_of_a_fit_at_several_optima_are_aligned(mixture):
    for how in ({}, {"symmetry": False}):  # where nothing is recorded, the draws show it
        fit = ob.pathfinder(mixture, seed=3, progress=False, **how)
        means = fit["posterior"]["mu"].mean(("chain", "draw"))
        assert abs(float(means[0] - means[1])) < 5
        assert ob.diagnose(fit).verdict == "aligned"
        aligned = ob.align(fit).posterior["posterior"]["mu"].mean(("chain", "draw"))
        np.testing.assert_allclose(np.sort(aligned), (-3, 3), atol=0.2)


def test_what_is_declared_and_what_is_no_posterior_is_not_searched(mixture, monkeypatch):
    def unwanted(*_, **__):
        raise AssertionError("searched")

    monkeypatch.setattr(run_module, "found_in", unwanted)
    ob.nuts(ob.stan_program(MIXTURE, {"N": len(Y), "y": Y}, symmetry="mu,w"), **SHORT)
    ob.optimize(mixture, seed=1, progress=False)


def test_a_search_that_fails_breaks_no_run(mixture, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("the library is\nbroken")

    monkeypatch.setattr(run_module, "_searched", broken)
    assert ob.nuts(mixture, **SHORT).attrs["symmetry"] == "[]"
    assert "symmetries were not searched: the library is" in caplog.messages
