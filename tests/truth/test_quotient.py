"""One copy of a posterior drawn as another's: the same density, in order, and refused where it is another model."""

import json
from dataclasses import replace

import h5py
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import onebasin as ob
from onebasin.analysis.summaries.quantiles import describe
from onebasin.base.errors import StudyError
from onebasin.base.precision import precision
from onebasin.inference.density.numpyro import NumpyroDensity, NumpyroValues
from onebasin.inference.runs.posterior import build
from onebasin.models import Exchangeable
from onebasin.models.transforms.distributions import OrderedNormal
from onebasin.posteriors.view import as_view
from onebasin.truth import checker
from onebasin.truth.making import Order
from onebasin.truth.problems import PROBLEMS, Problem
from onebasin.truth.produce import produce
from onebasin.truth.quotient import one_copy

from ..each import each

Y = np.array([-1.4, -0.6, 0.3, 0.9, 1.2])


def seen(mu, scale=1.0):
    """Two normals in equal shares, so that labels do not matter."""
    both = dist.Normal(mu, scale).log_prob(Y[:, None])
    numpyro.factor("y", jax.scipy.special.logsumexp(both, axis=1).sum())


def free():
    seen(numpyro.sample("mu", dist.Normal(0.0, 1.0).expand([2]).to_event(1)))


def in_order():
    seen(numpyro.sample("mu", OrderedNormal(1.0, 2)))


def of_another_prior():
    seen(numpyro.sample("mu", OrderedNormal(1.1, 2)))


def of_another_likelihood():
    seen(numpyro.sample("mu", OrderedNormal(1.0, 2)), 1.01)


def without_normalisation():
    mu = numpyro.sample("mu", dist.ImproperUniform(dist.constraints.ordered_vector, (), (2,)))
    numpyro.factor("prior", dist.Normal(0.0, 1.0).log_prob(mu).sum())
    seen(mu)


FREE = ob.Target("free", numpyro_model=free, symmetry=(Exchangeable({"mu": 0}),))
ORDERED = ob.Target("ordered", numpyro_model=in_order)
SETTINGS = ob.Nuts(chains=4, warmup=300, draws=1000)


@pytest.fixture(scope="module")
def run():
    with jax.numpy_rank_promotion("allow"):
        return ob.infer(FREE, method=SETTINGS, seed=1)


def test_draws_in_order_are_those_of_a_chain_that_never_leaves_the_order(run):
    tree, quotient = one_copy(run, FREE, ORDERED)
    mu = tree["posterior"]["mu"].values
    assert (mu[..., 0] < mu[..., 1]).all()
    assert np.array_equal(np.sort(run["posterior"]["mu"].values, axis=-1), mu)
    assert quotient.increasing == ("mu",)
    assert quotient.log_copies == pytest.approx(np.log(2))
    assert 0.4 < quotient.share_moved < 0.6
    direct = ob.infer(ORDERED, method=SETTINGS, seed=2)
    names = ["mu[0]", "mu[1]"]
    ours, theirs = (describe(as_view(each).draws(["mu"])).loc[names] for each in (tree, direct))
    error = np.hypot(ours["mcse_mean"], theirs["mcse_mean"])
    assert (np.abs(ours["mean"] - theirs["mean"]) < 4 * error).all()
    # A standard deviation of 1 and some 1,000 effective draws of each: 0.15 is three of the difference's errors.
    lp = [each["sample_stats"]["lp"].values.ravel() for each in (tree, direct)]
    assert np.mean(lp[0]) == pytest.approx(np.mean(lp[1]), abs=0.15)


def test_log_density_of_a_draw_is_the_ordered_models(run):
    tree, _ = one_copy(run, FREE, ORDERED)
    with precision("float64"):
        density = NumpyroDensity.of(ORDERED)
        vector = density.unconstrain({"mu": tree["posterior"]["mu"].values[2, 7]})
        assert tree["sample_stats"]["lp"].values[2, 7] == pytest.approx(density.log_density(vector))
    assert tree.attrs["target"] == "ordered"
    assert json.loads(tree.attrs["symmetry"]) == []


@each("model", [of_another_prior, of_another_likelihood, without_normalisation])
def test_another_model_is_refused(run, model):
    with pytest.raises(StudyError, match=r"instead of 0\.693147"):
        one_copy(run, FREE, ob.Target("another", numpyro_model=model))


QUOTIENTS = [problem for problem in PROBLEMS.values() if problem.quotient_of]


@pytest.mark.parametrize(
    "problem",
    [pytest.param(each, marks=[pytest.mark.slow] * (i > 0)) for i, each in enumerate(QUOTIENTS)],
    ids=lambda problem: problem.name,
)
def test_problem_is_one_copy_of_the_one_that_it_names(problem):
    sampled, target = problem.quotient_of.target(), problem.target()
    with precision("float64"):
        points = NumpyroValues(sampled).points(200, 0)
    run = build(sampled, {n: v[None] for n, v in points.items()}, {"lp": np.zeros((1, 200))}, {})
    tree, quotient = one_copy(run, sampled, target)
    assert quotient.log_copies == pytest.approx(np.log(2))
    assert quotient.increasing == ("b1",)
    assert (np.diff(tree["posterior"]["b1"].values) >= 0).all()
    order = Order.of(problem)
    assert order.sampled.name == problem.quotient_of.name
    assert order.settings == Order.of(problem.quotient_of).settings


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A reference of the ordered model, from short chains of the free one."""
    folder = tmp_path_factory.mktemp("quotient")
    cover = Problem("free", "two normals", lambda: FREE)
    order = Order.of(Problem("", "in order", lambda: ORDERED, quotient_of=cover), "ordered")
    order = replace(order, settings=replace(SETTINGS, draws=250))
    with jax.numpy_rank_promotion("allow"):
        produce(replace(order, thin=2, max_thin=2), folder)
    return folder


def test_reference_says_what_was_sampled_and_is_checked_for_its_order(made):
    info = json.loads((made / "ordered.info.json").read_text())
    assert info["quotient"]["of"] == "free"
    assert "copies in which mu increases" in info["quotient"]["rule"]
    assert info["labelling"] is None
    assert info["symmetry"] == []
    holds = {each.name: each.holds for each in checker.check(made, "ordered").criteria}
    assert holds["order of mu"]
    with h5py.File(made / "ordered.full.nc", "r+") as file:
        mu = file["posterior"]["mu"][()]
        mu[1, 3] = mu[1, 3, ::-1]
        file["posterior"]["mu"][...] = mu
    info["sha256"]["full.nc"] = checker.files.digest(made / "ordered.full.nc")
    (made / "ordered.info.json").write_text(json.dumps(info))
    failed = {each.name: each.found for each in checker.check(made, "ordered").failed}
    assert failed["order of mu"] == "mu increases in 99.90% of the draws."
