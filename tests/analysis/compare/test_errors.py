"""How often `compare` calls equal distributions different, and how often it sees a shift: the rates that it states."""

import json

import numpy as np
import pytest

from onebasin.analysis.compare.compare import compare
from onebasin.analysis.compare.distances import SHIFT, compare_moments
from onebasin.models.symmetry.blocks import to_json
from onebasin.models.symmetry.evidence import Evidence
from onebasin.models.symmetry.exchangeable import Exchangeable
from onebasin.posteriors import schema

from ..conftest import autoregression, mcmc_tree


@pytest.mark.parametrize(("chains", "draws", "size", "rho"), [(4, 60, 2, 0.0), (4, 250, 10, 0.5)])
def test_equal_distributions_are_called_different_in_at_most_five_percent(chains, draws, size, rho):
    rng, repeats = np.random.default_rng(31), 60
    pairs = (
        [{"x": autoregression(rng, rho, (chains, draws, size))} for _ in range(2)]
        for _ in range(repeats)
    )
    found = [compare_moments(*pair).verdict for pair in pairs]
    # Of 60 comparisons with a rate of 0.03, more than 6 differ once in 300 runs.
    assert found.count("differ") <= 6, found.count("differ")


def test_a_shift_is_seen_as_often_as_the_stated_power():
    rng, repeats = np.random.default_rng(32), 80
    found = []
    for _ in range(repeats):
        a, b = (rng.normal(size=(4, 250, 10)) for _ in range(2))
        b[..., 3] += SHIFT
        found.append(compare_moments({"x": a}, {"x": b}))
    power = np.mean([each.power for each in found])
    seen = np.mean([each.verdict == "differ" for each in found])
    assert 0.6 < power < 0.95
    # The stated power is that of the least precise mean: a little less than this one's.
    assert -0.08 < seen - power < 0.1, (seen, power)


def test_two_models_are_compared_on_what_they_share(make_mcmc, rng):
    draws = {"mu": rng.normal(size=(4, 300, 2)), "wide": rng.normal(size=(4, 300, 3))}
    one = make_mcmc(draws | {"tau": rng.normal(size=(4, 300))})
    two = make_mcmc({"mu": rng.normal(size=(4, 300, 2)), "wide": draws["wide"][..., :2]})
    found = compare({"one": one, "two": two}, truth="one", permutations=99)
    assert list(found.means.index) == ["mu[0]", "mu[1]"]
    assert any("`one` has `wide`, `tau`" in note for note in found.notes), found.notes
    with pytest.raises(ValueError, match="share no variable of the same shape"):
        compare({"one": one, "two": make_mcmc({"wide": draws["wide"][..., :2]})}, truth="one")


@pytest.mark.parametrize(
    ("evidence", "left_out"),
    [
        (None, ("total", "counts")),
        (Evidence(points=5, left_behind=("counts",)), ("counts",)),
        (Evidence(points=5, skipped=("nothing derived was computed",)), ("total", "counts")),
    ],
)
def test_computed_quantities_that_may_carry_labels_are_left_out_and_named(evidence, left_out):
    rng = np.random.default_rng(34)
    kinds = {"mu": "parameter", "tau": "parameter", "total": "transformed", "counts": "generated"}
    attrs = {
        schema.SYMMETRY: to_json((Exchangeable({"mu": 0}),)),
        schema.KINDS: json.dumps(kinds),
        **({} if evidence is None else {schema.SYMMETRY_EVIDENCE: evidence.to_json()}),
    }
    trees = {}
    for name in "ab":
        mu = rng.normal(size=(4, 500, 2)) * 0.1 + [-1.0, 1.0]
        if name == "b":
            mu = mu[..., ::-1]
        draws = {"mu": mu, "tau": rng.normal(size=(4, 500)), "total": mu.sum(axis=-1)}
        # Counts follow the labels, which differ between the two posteriors.
        counts = rng.poisson(np.exp(mu + 2.0))
        trees[name] = mcmc_tree(draws | {"counts": counts}, attrs=attrs)
    found = compare(trees, truth="a", permutations=99)
    named = " ".join(found.warnings)
    assert f"Left out: {', '.join(f'`{name}`' for name in left_out)}." in named
    assert not {*left_out} & {name.split("[")[0] for name in found.means.index}
    assert "means agree" in found.sentences[0], found.sentences
