"""Label switching: the synthetic data against their moments, the programs against SciPy and their symmetry."""

import itertools
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from onebasin.inference import check_symmetry
from onebasin.inference.density.stan import StanDensity
from onebasin.inference.density.symmetry import SymmetryError
from onebasin.models import Exchangeable
from onebasin.models.symmetry.group import Group
from onebasin.stan import stan_program
from onebasin.truth.problems import label_switching_data as data
from onebasin.truth.problems.label_switching import PROBLEMS, condition, simulate

from ...each import each


@each("label", PROBLEMS)
def test_data_follow_the_seed_and_truth_has_the_symmetrys_shape(label):
    made, again, other = simulate(label, 0), PROBLEMS[label].simulate, simulate(label, 1)
    target = condition(label, 0)
    names = {name for block in target.symmetry for name in block.variables}
    if PROBLEMS[label].kind == "modes":
        assert made.truth == {}
    else:
        Group(target.symmetry, {name: made.truth[name].shape for name in names})
    assert all(
        name not in made.truth or len(dims) == made.truth[name].ndim
        for name, dims in target.dims.items()
    )
    same = again(np.random.default_rng([0, *label.encode()]))
    for name, value in made.data.items():
        np.testing.assert_array_equal(value, same.data[name])
    assert any(not np.array_equal(value, other.data[name]) for name, value in made.data.items())


def test_simulated_data_have_the_moments_of_their_truth(rng):
    mixture = data.mixture(rng, num_obs=40_000, weight=(0.3, 0.7), mu=(-2.0, 1.0), sigma=(1.0, 2.0))
    y = mixture.data["y"]
    mean = 0.3 * -2.0 + 0.7 * 1.0
    variance = 0.3 * (1.0 + 4.0) + 0.7 * (4.0 + 1.0) - mean**2
    assert y.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / y.size))
    assert y.var() == pytest.approx(variance, rel=0.05)
    topics = data.topics(rng, num_docs=4000)
    expected = 60 * (topics.truth["theta"] @ topics.truth["phi"]).sum(axis=0)
    observed = topics.data["counts"].sum(axis=0)
    assert topics.data["counts"].sum(axis=1) == pytest.approx(60)
    np.testing.assert_allclose(observed, expected, atol=5 * np.sqrt(expected.max()))
    factors = data.factors(rng, num_obs=40_000)
    loadings, psi = factors.truth["L"], factors.truth["psi"]
    covariance = loadings @ loadings.T + np.diag(psi**2)
    np.testing.assert_allclose(factors.data["scatter"] / 40_000, covariance, atol=0.1)
    chain = data.hidden_markov(rng, num_obs=20_000)
    values, vectors = np.linalg.eig(chain.truth["A"].T)
    stationary = np.real(vectors[:, np.argmax(np.real(values))])
    stationary = stationary / stationary.sum()
    assert chain.data["y"].mean() == pytest.approx(stationary @ chain.truth["mu"], abs=0.2)
    net = data.teacher(rng, num_obs=20_000)
    model = condition("network", 0).model
    weights = {name: jnp.asarray(value) for name, value in net.truth.items()}
    mean = model.network.apply(weights, jnp.asarray(net.data["x"]))
    assert np.std(net.data["y"] - np.asarray(mean)) == pytest.approx(0.1, rel=0.05)


def mixture_density(d, p) -> float:
    parts = np.log(p["weight"]) + stats.norm.logpdf(d["y"][:, None], p["mu"], p["sigma"])
    prior = stats.dirichlet.logpdf(p["weight"], [2.0] * 3) + stats.norm.logpdf(p["mu"], 0, 5).sum()
    return prior + stats.lognorm.logpdf(p["sigma"], 0.5).sum() + logsumexp(parts, axis=1).sum()


def topics_density(d, p) -> float:
    prior = sum(stats.dirichlet.logpdf(row, [0.5, 0.5]) for row in p["theta"])
    prior += sum(stats.dirichlet.logpdf(row, [1.0] * d["num_words"]) for row in p["phi"])
    return prior + (d["counts"] * np.log(p["theta"] @ p["phi"])).sum()


def factors_density(d, p) -> float:
    covariance = p["L"] @ p["L"].T + np.diag(p["psi"] ** 2)
    rows = np.linalg.cholesky(d["scatter"]).T  # any rows with this scatter: the same likelihood
    likelihood = stats.multivariate_normal.logpdf(rows, cov=covariance).sum()
    missing = d["num_obs"] - len(rows)
    likelihood += missing * -0.5 * np.linalg.slogdet(covariance)[1]
    prior = stats.laplace.logpdf(p["L"], scale=d["loading_scale"]).sum()
    return prior + stats.lognorm.logpdf(p["psi"], 0.5, scale=np.exp(-0.5)).sum() + likelihood


def hidden_markov_density(d, p) -> float:
    emission = stats.norm.logpdf(d["y"][:, None], p["mu"], p["sigma"])
    paths = []
    for path in itertools.product(range(3), repeat=d["num_obs"]):
        steps = sum(np.log(p["A"][i, j]) for i, j in itertools.pairwise(path))
        said = sum(emission[n, state] for n, state in enumerate(path))
        paths.append(np.log(p["start"][path[0]]) + steps + said)
    prior = stats.norm.logpdf(p["mu"], 0, 5).sum() + stats.lognorm.logpdf(p["sigma"], 0.5).sum()
    return prior + logsumexp(paths)  # the flat priors of simplexes are constants


DENSITIES = {
    "mixture": (mixture_density, {}),
    "topics": (topics_density, {"num_docs": 5, "num_words": 6}),
    "factors": (factors_density, {"num_obs": 30}),
    "hidden-markov": (hidden_markov_density, {"num_obs": 6}),
}


@pytest.mark.parametrize(
    "label", ["mixture", *(pytest.param(n, marks=pytest.mark.slow) for n in [*DENSITIES][1:])]
)
def test_programs_have_their_density_and_their_symmetry(label):
    problem, (density, sizes) = PROBLEMS[label], DENSITIES[label]
    made = problem.simulate(np.random.default_rng(5), **sizes)
    stated = problem.stated
    target = stan_program(stated.program, made.data, symmetry=stated.symmetry)
    evaluated = StanDensity(target)
    points = evaluated.points(4, seed=1)
    found = evaluated.log_density(points)
    at = [{name: value[i] for name, value in points.items()} for i in range(4)]
    expected = np.array([density(made.data, point) for point in at])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-8, atol=1e-8)
    assert max(check_symmetry(target, engine="stanli").differences) < 1e-10
    # Without one of the variables that belong along it is no symmetry.
    (block,) = target.symmetry
    if len(block.axes) > 1:
        less = Exchangeable(dict(list(block.axes.items())[1:]))
        with pytest.raises(SymmetryError, match="does not hold"):
            check_symmetry(replace(target, symmetry=(less,)), engine="stanli")
