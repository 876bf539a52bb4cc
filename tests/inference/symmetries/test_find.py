"""What the search says of itself: sentences, JSON, what was cut off, what cannot be searched."""

import json
import re

import numpy as np
import pytest

from onebasin.base.errors import InferenceError
from onebasin.inference.symmetries.find import find
from onebasin.models.symmetry.elements import echelon, least_basis, orthogonal, reduce, span

from ...cards import check_page
from .functions import FunctionDensity, parameters
from .known import MODELS


@pytest.fixture(scope="module")
def mixture():
    return find(MODELS["mixture of three"].density(), seconds=np.inf)


def test_a_live_block_says_where_and_by_how_much_in_json_too(mixture):
    (block,) = mixture.blocks
    assert block.status == "live"
    assert block.parts == 3
    assert block.word == "mu,sigma,theta"
    first, alone, status = block.evidence
    assert first.startswith("mu:0, sigma:0 and theta:0 move together: every order of the 3 parts")
    assert "6 random, 6 near the posterior" in first
    assert alone.startswith("Moving only one of them changes it by ")
    assert status == "Swapping the components gives distinct modes of equal height."
    assert "proof" in repr(mixture)
    check_page(mixture._repr_html_())
    check_page(block._repr_html_())
    kept = json.loads(mixture.to_json())
    assert (kept["exchangeable"], kept["open"]) == (["mu,sigma,theta"], [])
    assert kept["blocks"][0]["status"] == "live"
    assert kept["blocks"][0]["evidence"] == list(block.evidence)


def test_a_change_is_held_against_the_rounding_of_its_own_point(mixture):
    """Wide points have log densities of many millions, and rounding to match: they do not decide."""
    change, slack = re.findall(
        r"changes by (\S+) nats; rounding alone could change it by (\S+)\.", repr(mixture)
    )[0]
    assert float(change) < float(slack) < 1e-8


def test_what_changes_near_the_posterior_alone_is_not_called_unchanged():
    def broken(p):  # within a hundredth of one point
        return 1e-3 * np.exp(-0.5 * ((p["mu"] - [3.0, 1.0]) ** 2).sum() / 1e-4)

    density = MODELS["mixture of two, means alone"].density(broken)
    draws = {"mu": np.array([[3.0, 1.0]]), "w": np.array([0.4])}
    (block,) = find(density, draws=draws, seconds=np.inf).blocks
    assert block.status == "undecided"
    told = "unchanged at 6 random points, but not near the posterior: it changes by 0.001"
    assert told in block.evidence[0]


def test_what_the_budget_does_not_reach_and_what_no_word_says_is_said():
    *_, second = find(MODELS["three factors of a tensor"].density(), seconds=np.inf).blocks
    assert "can have only one set of signs, and this is a second one" in second.evidence[1]
    assert "Bounding one number of each such part of C to be" in second.evidence[1]
    found = find(MODELS["mixture of three"].density(), seconds=np.inf, evaluations=60)
    assert found.symmetry == ()
    assert "axes of length 3" in found.open
    assert found.evaluations <= 60
    assert "Not searched" in repr(found)


def test_draws_of_the_posterior_are_tried_too():
    density = MODELS["mixture of two, means alone"].density()
    draws = density.constrain(np.random.default_rng(0).normal(size=(5, 3)))
    (block,) = find(density, draws=draws, seconds=np.inf).blocks
    assert "5 near the posterior" in block.evidence[0]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda p: np.random.default_rng().normal(), "differs between two evaluations"),
        (lambda p: -np.inf, "No point with a finite log density"),
    ],
)
def test_a_log_density_that_is_none_is_refused(function, words):
    with pytest.raises(InferenceError, match=words):
        find(FunctionDensity(parameters("mu 2"), function))


def test_a_solvers_noise_is_allowed_for_where_it_is_known():
    model = MODELS["mixture of three"]
    noise = np.random.default_rng(0).normal(size=10_000)

    def solved(p):  # its error depends on the values
        value = model.function(p)
        return value * (1 + 1e-9 * noise[hash(p["mu"].tobytes()) % 10_000])

    exact = FunctionDensity(model.parameters, solved)
    assert find(exact, seconds=np.inf, noise=1e-7).words == model.live


def test_a_product_of_many_differences_needs_the_search_in_halves():
    names = [f"v{k}" for k in range(7)]

    def product(p):
        rest = sum((p[name] ** 2).sum() for name in names)
        return float(np.prod([p[name][0] - p[name][1] for name in names])) - rest

    density = FunctionDensity(parameters(", ".join(f"{name} 2" for name in names)), product)
    found = find(density, seconds=np.inf)
    pairs = [block for block in found.blocks if block.status in ("live", "incomplete")]
    assert len([block for block in pairs if block.parts == 2]) >= 6  # the even sets of seven swaps


def test_orthogonal_and_least_bases_are_those_of_gf2():
    space = orthogonal([0b0110, 0b0011], 4)
    assert sorted(span(space)) == [0b0000, 0b0111, 0b1000, 0b1111]
    assert least_basis([0b1111, 0b0111], int.bit_count) == [0b1000, 0b0111]
    assert reduce(0b1111, echelon([0b1000, 0b0111])) == 0
