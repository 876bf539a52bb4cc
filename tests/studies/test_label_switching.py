"""Label switching: densities of the programs, measures on planted posteriors, verdicts, and toy runs."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.special import logsumexp

import inference
from inference import check_symmetry
from inference.posterior import build, load
from inference.settings import NutsSettings
from inference.stan_density import StanDensity
from inference.symmetry_check import SymmetryCheck, SymmetryError
from models import Exchangeable
from models.group import Group
from models.target import Target
from stan import program
from studies.errors import StudyError
from studies.label_switching import STUDY, data, design
from studies.label_switching.design import Config, configure
from studies.label_switching.measures import Results, compare, measure_all, worst
from studies.label_switching.pictures import plot_recovery
from studies.label_switching.problems import PROBLEMS, PROGRAMS, condition, simulate
from studies.label_switching.recovery import recover
from studies.label_switching.statements import statements
from studies.study import Cell, Context, Options, Outcomes

NUTS = NutsSettings(chains=4, warmup=10, draws=400)


def planted(target: Target, truth: Mapping[str, np.ndarray], how: dict[str, Any]) -> xr.DataTree:
    """Independent draws around the truth, each chain in a labelling of its own unless told otherwise."""
    settings, seed = how["settings"], how["seed"]
    shape = (settings.chains, settings.draws)
    rng = np.random.default_rng([seed, *target.name.encode(), *how["engine"].encode()])
    draws = {
        name: value + how.get("spread", 0.02) * rng.normal(size=(*shape, *value.shape))
        for name, value in truth.items()
    }
    names = {name for block in target.symmetry for name in block.variables}
    group = Group(target.symmetry, {name: truth[name].shape for name in names})
    first = how.get("first", 0)
    orders = list(itertools.islice(group.elements(), first, first + settings.chains))
    for chain, element in enumerate(orders[:1] * len(orders) if how.get("alike") else orders):
        every = tuple(
            type(part)(*(a if a is None else np.tile(a, (shape[1], *[1] * a.ndim)) for a in part))
            for part in element
        )
        moved = group.act(every, {name: draws[name][chain] for name in names})
        for name, value in moved.items():
            draws[name][chain] = value
    sampled = {
        "lp": rng.normal(size=shape),
        "diverging": np.zeros(shape, bool),
        "tree_depth": np.full(shape, 3),
        "n_steps": np.full(shape, 7),
        "acceptance_rate": np.full(shape, 0.8),
        "energy": rng.normal(size=shape),
        "step_size": np.full(shape, 0.25),
    }
    attributes = {"engine": how["engine"], "method": "nuts", "seed": seed, "wall_time": 1.5}
    attributes |= {"gradient_evaluations": 7, "max_tree_depth": 10, "sampling_seconds": [1.0]}
    return build(target, draws, sampled, {**attributes, "settings": "{}"})


class InMemory(Outcomes):
    """Outcomes that were never written."""

    def tree(self, cell: Cell) -> xr.DataTree:
        return self.paths[cell]


def outcomes_of(config: Config, **how: Any) -> InMemory:
    trees = {}
    for cell in STUDY.cells(config):
        told = {"engine": cell.engine, "settings": cell.settings, "seed": cell.seed, **how}
        truth = simulate(cell.problem, config.seed).truth
        trees[cell] = planted(STUDY.target(config, cell), truth, told)
        trees[cell].attrs["symmetry_check"] = json.dumps([1e-15])
    return InMemory(trees, {})


CONFIG = Config(0, ("numpyro", "stan"), ("mixture", "factors", "network"), NUTS)


@pytest.fixture(scope="module")
def results() -> Results:
    return measure_all(CONFIG, outcomes_of(CONFIG))


def find(results: Results, problem: str, engine: str = "stan") -> Cell:
    (cell,) = (c for c in results.measured if (c.problem, c.engine) == (problem, engine))
    return cell


def test_design_has_every_problem_in_every_engine_that_has_it():
    config = configure(Options())
    cells = STUDY.cells(config)
    assert [cell.key for cell in cells] == [
        "mixture.nuts.stan",
        "mixture-overlap.nuts.stan",
        "topics.nuts.stan",
        "factors.nuts.stan",
        "hidden-markov.nuts.stan",
        "network.nuts.numpyro",
        "network.nuts.stan",
    ]
    assert {cell.settings for cell in cells} == {NutsSettings()}
    assert configure(Options(quick=True)).nuts == NutsSettings(warmup=500, draws=500)
    assert configure(Options(seed=3, draws=7)).nuts.draws == 7
    some = configure(Options(parametrisations=("network", "topics"), engine="numpyro"))
    assert [cell.key for cell in STUDY.cells(some)] == ["network.nuts.numpyro"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chains": 1}, r"`--chains` is 1, and the study label-switching compares chains: give 2"),
        ({"full": True}, "`--full` does not apply to the study label-switching"),
        ({"splits": 2}, "`--splits` does not apply"),
        (
            {"engine": "numpyro", "parametrisations": ("mixture",)},
            "`--engine` is numpyro, and mixture is a Stan program: give --engine stan",
        ),
        ({"parametrisations": ("topic",)}, "`problems` is 'topic'; choose one of mixture, "),
    ],
)
def test_settings_without_a_study_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        configure(Options(**options))
    assert issubclass(StudyError, ValueError)


@pytest.mark.parametrize("label", PROBLEMS)
def test_data_follow_the_seed_and_truth_has_the_symmetrys_shape(label):
    made, again, other = simulate(label, 0), PROBLEMS[label].simulate, simulate(label, 1)
    target = condition(label, 0)
    names = {name for block in target.symmetry for name in block.variables}
    Group(target.symmetry, {name: made.truth[name].shape for name in names})
    assert all(len(dims) == made.truth[name].ndim for name, dims in target.dims.items())
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


@pytest.mark.stan
@pytest.mark.parametrize(
    "label",
    ["mixture", *(pytest.param(n, marks=pytest.mark.slow) for n in [*DENSITIES][1:])],
)
def test_programs_have_their_density_and_their_symmetry(label):
    problem, (density, sizes) = PROBLEMS[label], DENSITIES[label]
    made = problem.simulate(np.random.default_rng(5), **sizes)
    path = PROGRAMS / f"{problem.program}.stan"
    target = program(path, made.data, symmetry=problem.symmetry)
    evaluated = StanDensity(target)
    points = evaluated.points(4, seed=1)
    found = evaluated.log_density(points)
    at = [{name: value[i] for name, value in points.items()} for i in range(4)]
    expected = np.array([density(made.data, point) for point in at])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-8, atol=1e-8)
    assert max(check_symmetry(target, engine="stan").differences) < 1e-10
    # Without one of the variables that belong along it is no symmetry.
    (block,) = problem.symmetry
    if len(block.axes) > 1:
        less = Exchangeable(dict(list(block.axes.items())[1:]))
        with pytest.raises(SymmetryError, match="does not hold"):
            check_symmetry(replace(target, symmetry=(less,)), engine="stan")


def test_truth_is_matched_by_the_group(rng):
    symmetry = (Exchangeable({"L": 1, "scale": 0}, flips=("L",)),)
    truth = {"L": rng.normal(size=(4, 3)), "scale": np.array([1.0, 2.0, 3.0]), "psi": np.array(0.7)}
    moved = {
        "L": truth["L"][:, [2, 0, 1]] * [1.0, -1.0, -1.0],
        "scale": truth["scale"][[2, 0, 1]],
        "psi": truth["psi"],
    }
    noise = {name: rng.normal(size=(2, 5000, *value.shape)) for name, value in truth.items()}
    off = {"L": 0.0, "scale": 0.3, "psi": 0.0}
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {
                    name: (
                        ("chain", "draw", *(f"{name}{k}" for k in range(value.ndim))),
                        moved[name] + off[name] + 0.1 * noise[name],
                    )
                    for name, value in truth.items()
                }
            )
        }
    )
    found = recover(tree, truth, symmetry)
    assert found.names[:2] == ("L[0,0]", "L[0,1]")
    assert found.names[-1] == "psi"
    np.testing.assert_allclose(found.truth, np.concatenate([np.ravel(v) for v in moved.values()]))
    np.testing.assert_allclose(found.sd, 0.1, rtol=0.05)
    # Means off by three standard deviations in 3 of 16 entries, and by Monte Carlo error elsewhere.
    assert found.largest == pytest.approx(3.0, rel=0.05)
    assert found.where.startswith("scale[")
    assert found.rms == pytest.approx(np.sqrt(3 * 9 / 16), rel=0.05)
    assert found.inside == pytest.approx(13 / 16)
    half = np.quantile(0.1 * noise["psi"], [0.025, 0.975])
    assert found.low[-1] == pytest.approx(0.7 + half[0])
    assert found.high[-1] == pytest.approx(0.7 + half[1])
    assert recover(tree, truth, ()).largest > 10  # nothing may move: the labels are wrong
    assert {"rms_sds", "largest_sds", "inside_95", "where", "entries"} == set(found.to_dict())


@pytest.mark.parametrize(
    ("problem", "engine"), [("mixture", "stan"), ("factors", "stan"), ("network", "numpyro")]
)
def test_planted_labels_are_mended(results, problem, engine):
    found = results.measured[find(results, problem, engine)]
    assert worst(found.raw)["rhat"] > 1.5
    assert worst(found.aligned)["rhat"] < 1.01
    assert found.modulo.basins == ((0, 1, 2, 3),)
    assert found.modulo.switching.labellings == found.gaussian_labellings == (1, 1, 1, 1)
    assert found.symmetry_check == 1e-15
    # Draws are the truth plus noise of sd 0.02 with no other error.
    assert found.recovery.largest < 5 / np.sqrt(1600)
    np.testing.assert_allclose(found.recovery.sd, 0.02, rtol=0.1)
    first, second = found.traces
    assert first.name.endswith(", raw")
    assert first.draws.std() > 5 * second.draws.std()


def test_runs_are_compared_in_one_labelling():
    config = replace(CONFIG, problems=("network",))
    (one, _), (_, two) = (outcomes_of(config, first=k).paths.values() for k in (0, 7))
    found = compare(one, two)
    assert found.raw > 50
    assert found.aligned < 5
    assert found.aligned_sds < 0.5
    shifted = two.copy()
    posterior = two["posterior"].to_dataset()
    shifted["posterior"] = xr.DataTree(posterior.assign(b1=posterior["b1"] * 1.05))
    assert compare(one, shifted).aligned > 5


def test_claims_hold_where_they_were_planted(results):
    claims = {claim.label: claim for claim in statements(results)}
    assert claims.pop("overlap is warned of").outcome == "not measured in this run"
    assert {name: c.verdict for name, c in claims.items() if c.verdict != "reproduces"} == {}
    assert len(claims["aligned draws pass"].trials) == 4
    assert claims["two runs can be compared"].trials[0].where == "network, NumPyro and Stan"


def test_claims_fail_where_chains_stay_apart():
    config = replace(CONFIG, problems=("factors",))
    outcomes = outcomes_of(config)
    (cell,) = outcomes
    tree = outcomes.paths[cell]
    posterior = tree["posterior"].to_dataset()
    apart = posterior["L"] * xr.DataArray([1.0, 1.3, 1.0, 1.3], dims="chain")
    tree["posterior"] = xr.DataTree(posterior.assign(L=apart.transpose(*posterior["L"].dims)))
    claims = {c.label: c.verdict for c in statements(measure_all(config, outcomes))}
    failing = {name for name, verdict in claims.items() if verdict == "does not reproduce"}
    assert failing == {
        "aligned draws pass",
        "chains held out agree",
        "what nothing moves needs no alignment",
    }
    findings = STUDY.conclude(config, outcomes)
    assert "aligned at most 1.01 in 0 of 1 posteriors" in findings.headline[0]
    assert "Not in factors, Stan (" in findings.headline[0]


def test_chains_in_one_labelling_are_not_called_hopeless():
    config = replace(CONFIG, problems=("mixture",), nuts=replace(NUTS, chains=2))
    found = measure_all(config, outcomes_of(config, alike=True))
    claims = {c.label: c for c in statements(found)}
    assert claims["raw draws look hopeless"].verdict == "does not reproduce"
    held_out = claims["chains held out agree"]  # with two chains there are none to hold out
    assert (held_out.verdict, held_out.outcome) == ("unclear", "nothing can be said, 1 void")


def test_overlap_is_told_from_modes():
    config = replace(CONFIG, problems=("mixture-overlap",))
    wide = statements(measure_all(config, outcomes_of(config, spread=2.0)))
    assert {c.label: c.verdict for c in wide}["overlap is warned of"] == "reproduces"
    narrow = statements(measure_all(config, outcomes_of(config, spread=0.01)))
    assert {c.label: c.verdict for c in narrow}["overlap is warned of"] == "does not reproduce"


def test_recovery_without_posteriors_is_refused(results):
    with pytest.raises(ValueError, match="`found` is empty: give the recovery of at least one"):
        plot_recovery({})
    found = {str(c): m.recovery for c, m in results.measured.items()}
    shown = [axes for axes in plot_recovery(found).axes if axes.get_visible()]
    assert len(shown) == 4


def test_command_checks_samples_and_keeps_the_truth(onebasin, here, monkeypatch):
    checked = []

    def check(target: Target, **how: Any) -> SymmetryCheck:
        checked.append((target.name, how["engine"]))
        return SymmetryCheck((2e-16,), 5)

    def nuts(target: Target, **how: Any) -> xr.DataTree:
        label = target.name.removeprefix("label-switching-")
        return planted(target, simulate(label, 0).truth, how)

    monkeypatch.setattr(inference, "check_symmetry", check)
    monkeypatch.setattr(inference, "nuts", nuts)
    words = ("study", "label-switching", "--out", "run", "--draws", "100", "--json")
    answer = onebasin(*words, "--problems", "mixture,network", "--engine", "stan")
    assert answer.code == 0, answer.err
    names = [f"label-switching-{name}" for name in ("mixture", "network")]
    assert checked == [(name, "stan") for name in names]
    assert list(answer.json["cells"]) == ["mixture.nuts.stan", "network.nuts.stan"]
    assert answer.json["cells"]["mixture.nuts.stan"]["labellings_in_all"] == 6
    assert answer.json["cells"]["network.nuts.stan"]["labellings_in_all"] == 48
    tree = load("run/posteriors/mixture.nuts.stan.nc")
    np.testing.assert_array_equal(tree["truth"]["mu"], simulate("mixture", 0).truth["mu"])
    assert tree["truth"]["mu"].dims == ("component",)
    np.testing.assert_array_equal(tree["observed_data"]["y"], simulate("mixture", 0).data["y"])
    assert json.loads(tree.attrs["symmetry_check"]) == [2e-16]
    page = Path("run/report.html").read_text()
    for text in ("Raw and aligned", "Mixture, Stan", "Labels never changed within a chain"):
        assert text in page
    # The truth and the check are in the file: nothing is made again.
    checked.clear()
    assert onebasin(*words, "--problems", "mixture,network", "--engine", "stan").code == 0
    assert checked == []


def test_symmetry_that_does_not_hold_stops_the_study(monkeypatch, tmp_path):
    config = Config(0, ("numpyro",), ("network",), NUTS)
    (cell,) = STUDY.cells(config)
    wrong = replace(condition("network", 0), symmetry=(Exchangeable({"W1": 1}),))
    monkeypatch.setattr(design, "condition", lambda label, seed: wrong)
    with pytest.raises(SymmetryError, match="does not hold: moving W1"):
        design.make(config, cell, Outcomes({}, {}), Context(wrong, tmp_path, False, print))


@pytest.mark.slow
@pytest.mark.stan
def test_quick_run_mends_every_posterior_and_finds_the_truth(onebasin, here):
    answer = onebasin("study", "label-switching", "--quick", "--out", "run", "--json")
    assert answer.code == 0, answer.err
    cells = answer.json["cells"]
    assert len(cells) == 7
    for key, found in cells.items():
        assert found["aligned"]["rhat"] < 1.02, key  # 2000 draws; measured at most 1.012
        assert found["recovery_gaussian"]["rms_sds"] < 1.5, key
        assert len(found["basins"]) == 1, key
        assert found["symmetry_check"] < 1e-8, key
    assert cells["mixture-overlap.nuts.stan"]["labellings"] == [6, 6, 6, 6]
