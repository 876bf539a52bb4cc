"""Optima, folding, bridge sampling, and modes sampled one by one."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import onebasin as ob
from onebasin.analysis.diagnostics.measure import measure
from onebasin.base.errors import InferenceError
from onebasin.inference.fits.weighting import resampled
from onebasin.inference.modes import optima as module
from onebasin.inference.modes.basins import LogIntegral, log_integral
from onebasin.inference.modes.by_mode import weigh
from onebasin.inference.modes.edge import running_off
from onebasin.inference.modes.optima import Folding
from onebasin.models import Exchangeable, Target
from onebasin.stan import stan_program

from ..known import COVARIANCE, MEAN, RATE, SHAPE, assert_mean, known_target, linear_target

ENGINES = ["numpyro", "stanli", pytest.param("cmdstan", marks=pytest.mark.stan)]
GAUSS = Path(__file__).parents[2] / "stan" / "programs" / "gauss.stan"
WIDE = np.array([[2.0, 1.2, 0.0], [1.2, 1.0, 0.3], [0.0, 0.3, 0.5]])


def gaussian(engine: str) -> ob.Target:
    """A Gaussian with mean 3, -1, 0 and covariance `WIDE`."""
    mu = np.array([3.0, -1.0, 0.0])
    if engine != "numpyro":
        return stan_program(GAUSS, {"D": 3, "mu": mu, "Sigma": WIDE})

    def model() -> None:
        numpyro.sample("x", dist.MultivariateNormal(jnp.asarray(mu), jnp.asarray(WIDE)))

    return ob.Target("gauss", numpyro_model=model)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("jacobian", "tau"), [(False, (SHAPE - 1) / RATE), (True, SHAPE / RATE)])
def test_optimum_is_the_mode_of_the_space_that_is_asked_for(engine, jacobian, tau):
    settings = ob.Optimize(jacobian=jacobian)
    found = ob.infer(known_target(engine), engine=engine, method=settings, seed=2)
    np.testing.assert_allclose(found.posterior["x"], [[MEAN]], atol=1e-5)
    np.testing.assert_allclose(found.posterior["tau"], [[tau]], rtol=1e-5)
    assert found.attrs["converged"] == 1
    assert found.attrs["method"] == "optimize"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_gaussian_is_its_own_laplace_approximation(engine):
    settings = ob.Laplace(draws=2000, weights=False)
    fit = ob.infer(gaussian(engine), engine=engine, method=settings, seed=1)
    x = fit.posterior["x"].to_numpy()
    for place, mean in enumerate([3.0, -1.0, 0.0]):
        assert_mean(x[..., place], mean)
        assert_mean((x[..., place] - mean) ** 2, WIDE[place, place])
    assert_mean((x[..., 0] - 3) * (x[..., 1] + 1), WIDE[0, 1])
    ratio = (fit.sample_stats["lp"] - fit.sample_stats["log_q"]).to_numpy()
    # CmdStan's optimum is one to seven digits (measured: 1.2e-5 nats), ours to the last.
    assert np.ptp(ratio) < (1e-8 if engine == "numpyro" else 1e-4)
    judged = measure(fit).variational
    assert judged is not None and judged.converged and judged.khat < 0.5
    assert fit.attrs["converged"] == 1


def test_laplace_of_a_skewed_variable_is_a_gaussian_of_its_logarithm():
    """log tau has its mode at log(SHAPE / RATE), and the second derivative -SHAPE there."""
    fit = ob.laplace(known_target("numpyro"), draws=10, weights=False, seed=1)
    scale = fit["variational"]["scale_tril"].to_numpy()
    place = 0  # names are in order: tau, x
    np.testing.assert_allclose(fit["variational"]["loc"][place], np.log(SHAPE / RATE), rtol=1e-9)
    np.testing.assert_allclose(scale[place, place], SHAPE**-0.5, rtol=1e-9)
    np.testing.assert_allclose((scale @ scale.T)[1:, 1:], COVARIANCE, rtol=1e-9)


def test_laplace_of_a_network_is_exact_where_it_is_linear():
    """One summed identity unit is linear regression, whose posterior is a Gaussian."""
    target = linear_target()
    fit = ob.laplace(target, draws=50, seed=3)
    covariance = np.linalg.inv(np.eye(2) + target.x.T @ target.x / 0.7**2)
    scale = fit["variational"]["scale_tril"].to_numpy()
    np.testing.assert_allclose(scale @ scale.T, covariance, rtol=1e-8)
    assert fit.posterior["W1"].shape == (1, 50, 2, 1)
    assert "observed_data" in fit.children


def test_no_peak_no_gaussian():
    def flat() -> None:
        x = numpyro.sample("x", dist.ImproperUniform(dist.constraints.real, (), (2,)))
        numpyro.factor("height", -(x[0] ** 2))

    with pytest.raises(InferenceError, match=r"no maximum .* as `x\[1\]` approaches"):
        ob.laplace(ob.Target("flat", numpyro_model=flat))


SCHOOLS = """data{int J;vector[J] y;vector[J] s;} parameters{real mu;real<lower=0> tau;vector[J] theta;}
model{mu~normal(0,5);tau~cauchy(0,5);theta~normal(mu,tau);y~normal(theta,s);}"""
EIGHT = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "s": [15, 10, 16, 11, 9, 11, 10, 18]}


@pytest.mark.stan
def test_an_optimiser_at_the_edge_has_not_converged():
    """The density of effects around their mean has no maximum: it rises without bound as their scale falls."""
    target = stan_program(SCHOOLS, EIGHT)
    found = ob.optimize(target, seed=1)
    assert found.attrs["converged"] == 0
    assert "no maximum" in found.attrs["optimum_note"] and "`tau`" in found.attrs["optimum_note"]
    with pytest.raises(InferenceError, match=r"no maximum .* as `tau` approaches"):
        ob.laplace(target, seed=1)


@pytest.mark.parametrize(
    ("height", "start", "variable"),
    [
        (lambda x: -0.5 * np.sum((x * [1e3, 1e-3]) ** 2), [0.0, 0.0], None),
        (lambda x: -2 * np.sum(np.log1p(x**2 / 3)), [1e-6, 0.0], None),
        (lambda x: -0.5 * np.sum((x * [1e3, 1e-3]) ** 2), [0.0, 50.0], None),  # it stopped early
        (lambda x: -np.logaddexp(0, -x[1]) - x[0] ** 2, [0.0, 25.0], "x[1]"),
        (lambda x: -8 * x[1] - 0.5 * x[0] ** 2 * np.exp(-2 * x[1]), [0.0, -15.0], "x[1]"),
    ],
)
def test_the_end_of_a_climb_is_a_maximum_or_names_what_runs_off(height, start, variable):
    def climb(x):
        steps = 1e-6 * np.maximum(1, np.abs(x))
        rows = [(height(x + d) - height(x - d)) / (2 * d.max()) for d in np.diag(steps)]
        return height(x), np.array(rows)

    assert running_off(climb, lambda x: {"x": x}, np.array(start)) == variable


@pytest.mark.stan
def test_pathfinder_finds_a_gaussian():
    fit = ob.pathfinder(gaussian("stan"), weights=False, seed=1)
    assert fit.posterior["x"].shape == (1, 1000, 3)
    assert set(fit.sample_stats["path"].to_numpy().ravel()) == {1, 2, 3, 4}
    judged = measure(fit).variational
    assert judged is not None and judged.khat < judged.khat_limit
    x = fit.posterior["x"].to_numpy()[0]
    np.testing.assert_allclose(x.mean(0), [3, -1, 0], atol=0.3)
    np.testing.assert_allclose(np.cov(x.T), WIDE, atol=0.3)


@pytest.mark.stan
def test_khat_of_pathfinder_is_that_of_the_draws_before_they_were_resampled():
    """Draws that importance weights have picked are none of the approximation's."""
    settings = ob.Pathfinder(paths=2, draws=100, path_draws=300, weights=False)
    fit = ob.infer(known_target("stan"), seed=5, method=settings)
    assert fit["variational"]["log_ratio"].shape == (600,)
    kept = (fit.sample_stats["lp"] - fit.sample_stats["log_q"]).to_numpy().ravel()
    own = fit["variational"]["log_ratio"].to_numpy()
    assert all(np.min(np.abs(own - ratio)) < 1e-9 for ratio in kept)
    single = ob.Pathfinder(paths=1, draws=70, weights=False)
    alone = ob.infer(known_target("stan"), seed=5, method=single)
    assert alone.posterior.sizes["draw"] == 70
    assert "variational" not in alone.children


@pytest.mark.stan
@pytest.mark.cmdstan
def test_pathfinder_and_laplace_are_cmdstans_own(tmp_path, monkeypatch):
    """The same seed by cmdstanpy gives the same draws: nothing is lost on the way."""
    import cmdstanpy

    monkeypatch.chdir(tmp_path)  # CmdStan drops a profile.csv where it runs

    from onebasin.stan.run import make_ready

    target = gaussian("stan")
    ready = make_ready(target, tmp_path, engine="cmdstan")
    model = cmdstanpy.CmdStanModel(exe_file=ready.command[0])
    how = {"data": str(ready.data), "seed": 7, "sig_figs": 12}
    theirs = model.pathfinder(**how, draws=50, num_single_draws=60, num_paths=2)
    settings = ob.Pathfinder(paths=2, draws=50, path_draws=60, weights=False)
    ours = ob.infer(target, engine="cmdstan", seed=7, method=settings)
    np.testing.assert_allclose(ours.posterior["x"][0], theirs.stan_variable("x"), rtol=1e-10)
    mode = model.optimize(**how, jacobian=True)
    drawn = model.laplace_sample(data=str(ready.data), seed=7, mode=mode, draws=20)
    settings = ob.Laplace(draws=20, starts=1, weights=False)
    ours = ob.infer(target, engine="cmdstan", seed=7, method=settings)
    np.testing.assert_allclose(ours.posterior["x"][0], drawn.stan_variable("x"), atol=1e-4)


def test_a_point_estimate_is_not_diagnosed():
    found = ob.optimize(linear_target())
    with pytest.raises(ValueError, match="is a point estimate"):
        measure(found)


def target(parts: int, *, flips: bool = False) -> Target:
    def model() -> None:
        numpyro.sample("a", dist.Normal(0, 1).expand([parts]).to_event(1))
        numpyro.sample("b", dist.Normal(0, 1).expand([2, parts]).to_event(2))
        numpyro.sample("c", dist.Normal(0, 1))

    return Target(
        "parts", numpyro_model=model, symmetry=(Exchangeable({"a": 0, "b": 1}, flips=flips),)
    )


@pytest.fixture(params=[False, True], ids=["orders", "signs"])
def folding(request) -> Folding:
    with jax.enable_x64(True):
        return Folding.of(target(3, flips=request.param))


def points(num: int, folding: Folding) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((num, folding.density.size))


def test_assignment_and_trying_all_elements_agree(folding, monkeypatch):
    some, size = points(200, folding), folding.density.size
    reference, weight = points(1, folding)[0] + 0.3, np.linspace(0.5, 2, size)
    every, home = folding.fold(some, reference, weight)
    monkeypatch.setattr(module, "ENUMERATED", 1)
    assigned, also = folding.fold(some, reference, weight)
    np.testing.assert_allclose(assigned, every)
    np.testing.assert_array_equal(home, also)
    assert 0 < home.sum() < 200


def test_all_copies_of_a_point_fold_to_one_of_them(folding):
    some, size = points(20, folding), folding.density.size
    reference, weight = points(21, folding)[-1], np.ones(size)
    element = folding.layout.random(jax.random.key(1))
    moved = np.asarray(jax.vmap(folding.layout.act, (None, 0))(element, some))
    assert not np.allclose(moved, some)
    np.testing.assert_allclose(
        folding.fold(moved, reference, weight)[0], folding.fold(some, reference, weight)[0]
    )


def test_one_copy_in_so_many_is_at_home(folding):
    some = points(20000, folding)
    reference = points(1, folding)[0]
    share = folding.fold(some, reference, np.ones(len(reference)))[1].mean()
    order = np.exp(folding.log_order)
    assert share == pytest.approx(1 / order, abs=5 * np.sqrt(1 / order / 20000))


def test_a_symmetric_point_has_fewer_copies(folding):
    assert folding.log_copies(points(1, folding)[0]) == pytest.approx(folding.log_order)
    flips = folding.layout.blocks[0].has_flips
    assert folding.log_copies(np.zeros(folding.density.size)) == pytest.approx(0)
    halves = folding.density.ravel({"a": np.array([1.0, 1, 2]), "b": np.ones((2, 3)), "c": 0.0})
    assert np.exp(folding.log_order - folding.log_copies(np.asarray(halves))) == pytest.approx(2), (
        flips
    )


CHAINS, DRAWS = 4, 400


def chains(rng: np.random.Generator, size: int, stickiness: float = 0.6) -> np.ndarray:
    """Standard normal chains (chain, draw, param), each draw correlated with the one before."""
    noise = rng.standard_normal((CHAINS, DRAWS, size))
    out = np.empty_like(noise)
    out[:, 0] = noise[:, 0]
    for draw in range(1, DRAWS):
        out[:, draw] = stickiness * out[:, draw - 1] + math.sqrt(1 - stickiness**2) * noise[:, draw]
    return out


def skewed(
    size: int,
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray], float]:
    """Logs of gamma variables, whose density is skewed: from normal draws, the density, and its log integral."""
    shape = 3.0

    def of_normal(draws: np.ndarray) -> np.ndarray:
        return np.log(stats.gamma.ppf(stats.norm.cdf(draws), shape))

    def density(points: np.ndarray) -> np.ndarray:
        return (shape * points - np.exp(points)).sum(axis=1)

    return of_normal, density, size * math.lgamma(shape)


@pytest.mark.parametrize("size", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_log_integral_of_a_skewed_density_is_found_within_its_error(size):
    of_normal, density, truth = skewed(size)
    errors, found = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        estimate = log_integral(density, of_normal(chains(rng, size)), rng)
        found.append(estimate.value - truth)
        errors.append(estimate.error)
    held = np.mean(np.abs(found) < 1.96 * np.array(errors))
    assert held >= 0.9
    assert np.std(found) > 0.4 * np.mean(errors)  # the error is no boast of caution either
    assert np.mean(errors) < 0.1


@pytest.mark.slow
def test_weights_of_two_far_gaussians_hold_their_intervals():
    """0.9 and 0.1 in 20 dimensions: chains that never cross, 50 seeds."""
    size, truth = 20, np.array([0.9, 0.1])
    means, sds = (np.zeros(size), np.full(size, 6.0)), (1.0, 0.4)
    held = 0
    for seed in range(50):
        rng = np.random.default_rng(100 + seed)
        estimates = []
        for mean, sd, share in zip(means, sds, truth, strict=True):

            def density(points, mean=mean, sd=sd, share=share):
                return math.log(share) + stats.norm.logpdf(points, mean, sd).sum(axis=1)

            estimates.append(log_integral(density, mean + sd * chains(rng, size), rng))
        weights = weigh(estimates)
        held += bool(weights.low[1] <= 0.1 <= weights.high[1])
        assert weights.known
        assert np.exp(weights.log).sum() == pytest.approx(1)
    assert held >= 45


def test_chains_that_disagree_have_a_larger_error():
    rng = np.random.default_rng(1)
    together = chains(rng, 3)
    apart = together + np.arange(CHAINS)[:, None, None]

    def density(points):
        return stats.norm.logpdf(points).sum(axis=1)

    assert log_integral(density, apart, rng).error > 3 * log_integral(density, together, rng).error


@pytest.mark.parametrize(
    ("gap", "error", "known"),
    [(1.0, 0.1, True), (1.0, 0.8, False), (100.0, 3.0, True), (3.0, 2.0, False)],
)
def test_weights_are_known_where_what_is_not_known_does_not_matter(gap, error, known):
    weights = weigh([LogIntegral(0.0, 0.01), LogIntegral(-gap, error)])
    assert weights.known is known
    assert (weights.low <= np.exp(weights.log)).all() and (
        np.exp(weights.log) <= weights.high
    ).all()


def test_draws_are_shared_out_as_weights_say():
    rng = np.random.default_rng(0)
    labels = resampled(np.array([0.7, 0.3, 1e-30]), 1000, rng)
    assert np.abs(np.bincount(labels, minlength=3) - [700, 300, 0]).max() <= 1
    assert len(set(labels[:20])) == 2  # in no order


@pytest.fixture(autouse=True, scope="module")
def _numpyros_own() -> Iterator[None]:
    """NumPyro's chart of rows of simplexes promotes ranks."""
    with jax.numpy_rank_promotion("allow"):
        yield


SHORT = {"starts": 12, "warmup": 300, "draws": 300}


def two_gaussians(size: int, shares: tuple[float, float], *, parts: bool = False) -> Target:
    """Gaussians of unlike spread, 19 sds of the wider one apart; `parts` puts an exchange of three parts beside."""
    means, sds = (jnp.zeros(size), jnp.full(size, 6.0)), (1.0, 0.4)

    def model() -> None:
        x = numpyro.sample("x", dist.Uniform(-50, 50).expand([size]).to_event(1))
        terms = [
            jnp.log(w) + dist.Normal(m, s).log_prob(x).sum()
            for w, m, s in zip(shares, means, sds, strict=True)
        ]
        numpyro.factor("density", jnp.logaddexp(*terms))
        if parts:
            mu = numpyro.sample("mu", dist.Normal(0, 20).expand([3]).to_event(1))
            spread = dist.MixtureSameFamily(dist.Categorical(jnp.ones(3) / 3), dist.Normal(mu, 1.0))
            numpyro.sample("y", spread, obs=jnp.repeat(jnp.array([-9.0, 0.0, 9.0]), 5))

    symmetry = (Exchangeable({"mu": 0}),) if parts else ()
    return Target("two", numpyro_model=model, symmetry=symmetry)


def topics(counts: np.ndarray) -> Target:
    """Documents over two topics, summed over the topic of each word: each document in turn may have one to itself."""
    documents, words = counts.shape

    def model() -> None:
        theta = numpyro.sample("theta", dist.Dirichlet(jnp.ones((documents, 2))).to_event(1))
        phi = numpyro.sample("phi", dist.Dirichlet(jnp.ones((2, words))).to_event(1))
        numpyro.factor("words", jnp.sum(counts * jnp.log(theta @ phi)))

    return Target("topics", numpyro_model=model, symmetry=(Exchangeable({"theta": 1, "phi": 0}),))


TOPICS = topics(np.array([[100.0, 10, 10], [10, 101, 9], [9, 10, 103]]))


@pytest.mark.slow
def test_weights_are_those_of_the_density_and_copies_count_once():
    """Two unlike modes of 0.8 and 0.2, each with six copies; draws are of them as often as weights say."""
    target = two_gaussians(4, (0.8, 0.2), parts=True)
    found = ob.sample_modes(target, **{**SHORT, "starts": 20, "init_radius": 1.0}, seed=1)
    modes = found["modes"].to_dataset()
    assert (modes.attrs["known"], modes.sizes["mode"]) == (1, 2)
    assert modes.attrs["log_group_order"] == pytest.approx(np.log(6))
    assert modes["weight_low"][0] <= 0.8 <= modes["weight_high"][0]
    assert modes["weight_high"][0] - modes["weight_low"][0] < 0.1
    near = found["posterior"]["x"].mean(axis=-1) < 3
    assert float(near.mean()) == pytest.approx(float(modes["weight"][0]), abs=0.01)
    np.testing.assert_array_equal(found["sample_stats"]["mode"] == 0, near)
    judged = ob.diagnose(found)
    assert judged.verdict in ("usable", "aligned")
    assert "Chains settled in 2 different modes; their weights are 0." in judged.judgement.sentence
    assert "the draws are weighted by them" in judged.judgement.sentence


def mixture(y: np.ndarray, parts: int) -> Target:
    def model() -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 3).expand([parts]).to_event(1))
        theta = numpyro.sample("theta", dist.Dirichlet(jnp.full(parts, 2.0)))
        numpyro.sample(
            "y", dist.MixtureSameFamily(dist.Categorical(theta), dist.Normal(mu, 1.0)), obs=y
        )

    return Target("mixture", numpyro_model=model, symmetry=(Exchangeable({"mu": 0, "theta": 0}),))


@pytest.mark.slow
def test_parts_that_overlap_are_one_mode():
    y = np.random.default_rng(3).normal([-2.0, 0.0, 2.0], 1.0, size=(30, 3)).ravel()
    found = ob.sample_modes(mixture(y, 5), **SHORT, seed=2)
    assert found["modes"].sizes["mode"] == 1
    assert found["modes"]["weight"].item() == 1
    assert found["modes"].attrs["unseen"] == 0
    assert "All of 12 starts led to one mode." in ob.diagnose(found).judgement.sentence


@pytest.mark.slow
def test_evidence_of_one_dimension_is_that_of_quadrature():
    """A skewed variable with two modes: of each, and of both together, whether they are told apart or not."""

    def model() -> None:
        x = numpyro.sample("x", dist.Uniform(0, 100))
        parts = dist.Gamma(3, 1).log_prob(x), dist.Gamma(400, 10).log_prob(x)
        numpyro.factor("density", jnp.logaddexp(jnp.log(0.3) + parts[0], jnp.log(0.7) + parts[1]))

    how = {**SHORT, "init_radius": 4.0}
    found = ob.sample_modes(Target("line", numpyro_model=model), **how, seed=1)["modes"]
    grid = np.linspace(1e-6, 100, 400_001)
    heights = 0.3 * stats.gamma.pdf(grid, 3) + 0.7 * stats.gamma.pdf(grid, 400, scale=0.1)
    sides = [np.where(side, heights, 0) for side in (grid >= 25, grid < 25)]
    truth = np.log([np.trapezoid(side, grid) / 100 for side in sides])
    evidence, error = found["log_evidence"].values, found["log_evidence_error"].values
    assert (np.abs(evidence - truth) < 4 * error).all()
    assert (error < 0.1).all()
    gap = np.logaddexp.reduce(evidence) - np.logaddexp.reduce(truth)
    assert abs(gap) < 4 * error.max() < 0.4


@pytest.mark.slow
def test_modes_beyond_the_most_are_told_of_and_forbid_the_weights():
    found = ob.sample_modes(TOPICS, **SHORT, most=1, seed=1)
    assert found["modes"].attrs["not_sampled"] == 2
    judged = ob.diagnose(found)
    assert judged.verdict == "unusable"
    assert judged.causes == ("weights",)
    assert "2 more were met than sampled" in judged.judgement.sentence


def test_find_modes_counts_copies_as_one_optimum():
    y = np.repeat([-9.0, 0.0, 9.0], 5)
    found = ob.find_modes(mixture(y, 3), starts=15, seed=1)
    assert found.starts == 15
    assert sum(o.starts for o in found.optima) + found.failed == 15
    np.testing.assert_allclose(np.sort(found.optima[0].values["mu"]), [-9, 0, 9], atol=0.2)
    heights = [o.height for o in found.optima]
    assert heights == sorted(heights, reverse=True)
    assert "starts led to" in repr(found)
