"""Declared symmetries are checked on log densities and derived quantities, and the evidence is recorded."""

import dataclasses
import logging
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import onebasin as ob
from onebasin import Complement, Exchangeable, Flip, Target, stan
from onebasin.inference.contracts.method import density_by
from onebasin.inference.density.numpyro import NumpyroValues
from onebasin.inference.density.symmetry import SymmetryError, check_symmetry
from onebasin.inference.runs.posterior import build
from onebasin.inference.symmetries.find import SymmetryTrial, begin_trial, with_derived
from onebasin.models.symmetry.blocks import read, spell
from onebasin.models.symmetry.evidence import Evidence, changes
from onebasin.networks import BayesianNetwork, Network, Parametrisation, Rescalable
from onebasin.posteriors.view import as_view

from ..variational.problems import binary_weight, item_response, mixture


def network_target(activation: str, *parts: str, hidden=(3, 4)):
    rng = np.random.default_rng(1)
    model = BayesianNetwork(
        Network(2, hidden, 1, activation), parametrisation=Parametrisation(*parts or ("free",))
    )
    return model.condition(rng.normal(size=(9, 2)), rng.normal(size=9))


def steep() -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 10).expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(jnp.tanh(mu).sum(), 1e-3), obs=jnp.linspace(-3, 3, 12))


def test_single_precision_of_the_process_hides_nothing():
    target = Target("steep", numpyro_model=steep, symmetry=(Exchangeable({"mu": 0}),))
    with jax.enable_x64(False):
        assert check_symmetry(target).differences[0] < 1e-6


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (mixture, Exchangeable({"mu": 0, "sigma": 0})),
        (binary_weight, Exchangeable({"mu": 0})),  # without the complement of the weight
        (item_response, Flip("theta")),  # of variables of unlike lengths that change sign together
    ],
)
def test_the_whole_symmetry_holds_and_no_part_of_it(make, part):
    found = check_symmetry(make(), points=8)
    assert (found.points, found.differences[0] < 1e-12) == (8, True)
    names = ", ".join(part.variables)
    words = f"of '{make().name}' does not hold: moving {names} as declared changes the log"
    with pytest.raises(SymmetryError, match=words) as caught:
        check_symmetry(dataclasses.replace(make(), symmetry=(part,)), points=8)
    assert caught.value.difference > 1e-3
    assert f"{caught.value.difference:.3g}" in str(caught.value)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_networks_have_the_symmetry_that_they_declare(activation):
    target = network_target(activation)
    found = check_symmetry(target)
    assert len(found.differences) == len(target.symmetry)
    assert max(found.differences) < 1e-10
    assert any(isinstance(block, Rescalable) for block in target.symmetry) is (activation == "relu")


UNITS = {"W1": 1, "b1": 0, "W2": 0}


@pytest.mark.parametrize(
    ("target", "block"),
    [
        (network_target("tanh", "free", "ordered", hidden=(3,)), Exchangeable(UNITS)),
        (network_target("softplus", hidden=(3,)), Exchangeable(UNITS, flips=True)),
        (network_target("tanh", hidden=(3,)), Rescalable({"W1": 1, "b1": 0}, {"W2": 0})),
    ],
)
def test_networks_do_not_have_what_was_broken(target, block):
    with pytest.raises(SymmetryError, match="does not hold"):
        check_symmetry(dataclasses.replace(target, symmetry=(block,)))


def test_stan_networks_are_checked_on_their_own_density():
    target = network_target("relu", "givens", hidden=(3,))
    found = check_symmetry(target, engine="stanli", points=3)
    assert found.differences[0] < 1e-10
    assert all(np.isnan(found.differences[1:]))  # the scales move the likelihood alone
    with pytest.raises(SymmetryError):
        wrong = dataclasses.replace(target, symmetry=(Exchangeable({"W1": 1}),))
        check_symmetry(wrong, engine="stanli")


def test_target_without_a_symmetry_passes():
    assert check_symmetry(dataclasses.replace(mixture(), symmetry=())).differences == ()


FREE_MIXTURE = Path(__file__).parents[2] / "stan" / "programs" / "known" / "free_mixture.stan"
BLOCK = Exchangeable({"mu": 0})


def model(constant=0.0, scale=1.0, unlike=lambda mu: 0.0, derived=None):
    """Three exchangeable means, with whatever breaks it."""

    def run() -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 1).expand([3]).to_event(1))
        numpyro.factor("more", constant + scale * jnp.square(mu).sum() + unlike(mu))
        if derived is not None:
            for name, quantity in derived(mu).items():
                numpyro.deterministic(name, quantity)

    return run


def target(block=BLOCK, **how):
    return Target("three", numpyro_model=model(**how), symmetry=(block,))


def tree_of(draws, **more):
    stats = {"lp": np.zeros(draws.shape[:2])}
    return build(target(), {"mu": draws, **more}, stats, {"engine": "numpyro", "method": "nuts"})


def at_draws(what, draws, found):
    return SymmetryTrial(what, NumpyroValues(what), 0, found).at_draws(tree_of(draws))


@pytest.mark.parametrize("constant", [0.0, 1e9, -1e9, 1e18])
def test_constants_hide_no_difference_that_rounding_does_not(constant):
    evidence = check_symmetry(target(constant=constant)).evidence
    if constant == 1e18:  # which is said and not refused
        assert evidence.unresolved == ("mu",)
        assert "rounding would hide" in evidence.sentence
        return
    assert evidence.unresolved == ()
    with pytest.raises(SymmetryError, match=r"changes the log density by .* nats") as caught:
        check_symmetry(target(constant=constant, unlike=lambda mu: 0.1 * mu[0]))
    assert 0.01 < caught.value.difference < 1


def test_steep_densities_are_not_refused_for_rounding():
    offset = jnp.asarray([1e4, 2e4, 3e4])

    def steep(mu):  # equal in exact arithmetic, but summed in the order of the parts
        return -1e4 * jnp.sum(mu[:, None] * offset[None]) + 1e-3 * jnp.sum(jnp.exp(5 * mu))

    assert check_symmetry(target(unlike=steep)).evidence.holds


REAL = [(-3.0, -2.9), (-3.0, np.nan), (-3.0, -np.inf), (-np.inf, -3.0)]
SILENT = [(-np.inf, -np.inf), (np.nan, -3.0), (np.inf, np.inf), (1e18, 1e18)]
TOLD = [(*pair, True, True) for pair in REAL] + [(*pair, False, False) for pair in SILENT]


@pytest.mark.parametrize(("before", "after", "real", "telling"), [(-3.0, -3.0, False, True), *TOLD])
def test_points_tell_something_where_a_density_is_finite(before, after, real, telling):
    before, after = np.array([before]), np.array([after])
    found = changes(lambda values: before, {"mu": np.zeros((1, 3))}, before, after, 1e-8)
    assert (found.real[0], found.telling[0]) == (real, telling)
    assert np.isnan(found.largest) == (not telling)


def test_density_that_is_finite_for_some_labels_alone_is_refused():
    def ordered(mu):
        return jnp.where((mu[0] < mu[1]) & (mu[1] < mu[2]), 0.0, -jnp.inf)

    with pytest.raises(SymmetryError, match="moves points out of the support"):
        check_symmetry(target(unlike=ordered), points=60)


def test_two_parts_are_exchanged_at_every_point():
    def two() -> None:
        numpyro.sample("mu", dist.Normal(jnp.array([0.0, 1.0]), 1).to_event(1))

    for seed in range(4):
        with pytest.raises(SymmetryError):
            check_symmetry(Target("two", numpyro_model=two, symmetry=(BLOCK,)), points=1, seed=seed)


def far(mu):
    """Unlike parts, but only beyond 3, where no start is."""
    return -jnp.maximum(mu[0] - 3, 0.0)


def test_draws_see_what_starts_do_not():
    unlike = target(unlike=far)
    found = check_symmetry(unlike)
    assert (found.evidence.points, found.evidence.draws) == (5, 0)
    assert "tried at random points, not at draws" in found.evidence.sentence
    draws = np.random.default_rng(0).normal(size=(4, 100, 3)).clip(-2.9, 2.9)
    assert at_draws(unlike, draws, found.evidence).holds  # none beyond 3
    draws[2, 17, 0] = 4.5  # one of 400
    with pytest.raises(SymmetryError, match="nats at draws") as caught:
        check_symmetry(unlike, draws=tree_of(draws))
    assert caught.value.difference == pytest.approx(1.5)
    refuted = at_draws(unlike, draws, found.evidence)
    assert not refuted.holds
    assert "does not hold at this posterior's draws (moving mu" in refuted.sentence


def test_symmetry_that_holds_everywhere_leaves_nothing_to_say():
    whole, draws = target(), np.random.default_rng(0).normal(size=(4, 100, 3))
    found = at_draws(whole, draws, check_symmetry(whole).evidence)
    assert (found.points, found.draws, found.sentence) == (5, 10, "")
    tree = tree_of(draws)  # a check that breaks off loses no draws
    tree["posterior"] = tree["posterior"].to_dataset().rename({"mu": "nu"})
    found = SymmetryTrial(whole, NumpyroValues(whole), 0, Evidence(points=5)).at_draws(tree)
    assert found.holds
    assert (
        "not at draws; the check at draws failed (The target's density needs mu" in found.sentence
    )


def derived(mu):
    return {"squares": mu**2, "total": mu.sum(), "first": mu[0], "weighed": mu * jnp.arange(3.0)}


def test_derived_quantities_that_are_declared_have_to_move_along():
    good = Exchangeable({"mu": 0, "squares": 0})
    found = check_symmetry(target(good, derived=derived)).evidence
    assert found.derived == ("squares",)
    assert found.left_behind == ("first", "weighed")
    assert (
        "does not move `first`, `weighed`, which would change with the components" in found.sentence
    )
    bad = Exchangeable({"mu": 0, "weighed": 0})
    with pytest.raises(SymmetryError, match="weighed does not move with mu as declared"):
        check_symmetry(target(bad, derived=derived))
    with pytest.raises(ValueError, match=r"computed from parameters \(squares\)"):
        check_symmetry(target(Exchangeable({"squares": 0}), derived=derived))


def test_stan_computes_derived_quantities_at_moved_points():
    data = {"K": 3, "N": 12, "y": np.linspace(-2, 2, 12)}
    whole = Exchangeable({"weight": 0, "mu": 0, "sigma": 0})
    plain = stan.stan_program(FREE_MIXTURE, data, symmetry=(whole,))
    assert check_symmetry(plain, engine="stanli").evidence.left_behind == ("precision",)
    block = Exchangeable({**whole.axes, "precision": 0})
    moved = dataclasses.replace(plain, symmetry=(block,))
    assert check_symmetry(moved, engine="stanli").evidence.derived == ("precision",)
    blocks = (Exchangeable(dict(whole.axes), complements=()), Exchangeable({"precision": 0}))
    signs = dataclasses.replace(plain, symmetry=blocks)
    with pytest.raises(ValueError, match=r"computed from parameters \(precision\)"):
        check_symmetry(signs, engine="stanli")


def test_random_quantities_of_a_stan_program_are_not_compared():
    counts = FREE_MIXTURE.with_name("counts.stan")
    fair = stan.stan_program(
        counts, {"N": 10, "successes": 5}, symmetry=(Complement("theta"),)
    )  # binomial, half successes: theta and 1 - theta are alike
    found = check_symmetry(fair, engine="stanli").evidence
    assert set(found.random) == {"again", "dice"}
    assert "again" not in found.sentence


def test_evidence_is_kept_as_json_and_joined():
    """A block that either check resolves is resolved; what one of two runs refutes is refuted."""
    found = Evidence(points=5, draws=8, random=("z",), left_behind=("first",))
    assert Evidence.from_json(found.to_json()) == found
    assert Evidence.from_json("[1e-15]") is None
    assert Evidence.from_json("no JSON") is None
    start = Evidence(points=5, unresolved=("mu", "nu"))
    draws = Evidence(draws=8, unresolved=("nu",))
    assert start.joined(draws).unresolved == ("nu",)
    sound, refuted = Evidence(draws=8), Evidence(draws=8, refuted="it changes by 3 nats")
    for joined in (sound.joined(refuted), refuted.joined(sound)):
        assert not joined.holds
        assert (joined.refuted, joined.draws) == ("it changes by 3 nats", 16)


ALONG = """
data { int N; vector[N] y; }
parameters { simplex[3] w; vector[3] mu; real a; real b; real eta; real tau; }
transformed parameters { real half_a = a / 2; real half_b = b / 2; real share = inv_logit(eta); }
model { mu ~ normal(0, 3); a ~ normal(0, 1); b ~ normal(0, 1); eta ~ normal(0, 1); tau ~ normal(0, 1); }
generated quantities {
  matrix[N, 3] resp;
  real total = sum(mu) + tau;
  vector[3] noisy;
  for (n in 1:N) for (k in 1:3) resp[n, k] = w[k] * exp(normal_lpdf(y[n] | mu[k], 1));
  for (k in 1:3) noisy[k] = normal_rng(mu[k], 1);
}
"""


@pytest.fixture(scope="module")
def density():
    target = stan.stan_program(ALONG, {"N": 3, "y": [-1.0, 0.5, 2.0]})
    return density_by("stanli", target)


@pytest.mark.parametrize(
    "word, found",
    [
        ("w,mu", "w,mu,resp:1"),
        ("a~b,+-eta:", "a~b,half_a~half_b,+-eta:,1-share"),
        ("+-tau:", "+-tau:"),
    ],
)
def test_what_follows_is_moved_and_nothing_else(density, word, found):
    (block,) = with_derived((read(word),), density, seed=1)
    assert sorted(spell(block).split(",")) == sorted(found.split(","))


SETTINGS = ob.Nuts(chains=2, warmup=30, draws=30)


def test_nothing_is_checked_where_it_is_not_asked_for_and_draws_are_the_same():
    what = target(scale=0.0)
    left_out, checked = (ob.infer(what, SETTINGS, check_symmetry=on) for on in (False, True))
    assert as_view(left_out).symmetry_evidence is None
    np.testing.assert_array_equal(left_out["posterior"]["mu"], checked["posterior"]["mu"])


def test_a_networks_symmetry_is_its_architectures(monkeypatch):
    monkeypatch.setattr(
        "onebasin.inference.symmetries.find.hold", lambda *_, **__: pytest.fail("it is checked")
    )
    x = np.zeros((3, 1))
    network = BayesianNetwork(Network(1, (2,))).condition(x, x, name="net")
    for unchecked in (network, dataclasses.replace(target(), symmetry=())):
        assert begin_trial(unchecked, engine="numpyro", seed=0, progress=False) is None


def test_what_draws_refute_is_kept_and_said(caplog):
    """The draws are valid, and are handed back."""
    with caplog.at_level(logging.WARNING, "onebasin"):
        tree = ob.infer(target(scale=0.44, unlike=far), SETTINGS)
    found = as_view(tree).symmetry_evidence
    assert not found.holds
    assert found.refuted.endswith("nats at draws")
    assert [r.getMessage() for r in caplog.records] == [found.sentence]
