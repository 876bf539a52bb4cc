"""Slow parameters of which a combination is known: it is named, and nothing else is called one."""

import re

import numpy as np
import pytest

from onebasin.analysis.diagnostics.diagnose import diagnose

from ..conftest import autoregression

SHAPE = (4, 500)


def slow(rng):
    """A chain that goes along its range far too slowly."""
    return autoregression(rng, 0.99, SHAPE)


def case(name, rng):
    """Draws of a case, by variable."""
    s, t, small = slow(rng), slow(rng), 0.02 * rng.normal(size=(*SHAPE, 4))
    match name:
        case "skills":
            return {"skill": s[..., None] + small}
        case "effects":
            return {"mu": s + small[..., 0], "a": -s[..., None] + small[..., 1:]}
        case "product":
            return {"a": np.exp(s), "b": -np.exp(small[..., 0] - s)}
        case "three":
            return {"mu": s + small[..., 0], "a": t, "b": -s - t}
        case "slope":
            return {"alpha": s + small[..., 0], "beta": -0.3 * s}
        case "factor":
            theta = np.array([2.0, -1.0, 3.0]) * np.exp(small[..., 1:] - s[..., None])
            return {"a": np.exp(s), "theta": theta}
        case "simplex":
            share = 1 / (1 + np.exp(-s))
            return {"w": np.stack([share, 1 - share], axis=-1)}
        case "copies":
            return {"u": s, "v": 2 * s}
        case "slow sum":
            return {"u": s, "v": s + 0.05 * t}
        case "modes":
            mode = np.repeat(rng.random((4, 20)) < 0.5, 25, axis=1) * 10.0
            return {"u": mode + small[..., 0], "v": 5.0 - mode + small[..., 1]}
        case "correlated":
            return {"u": s, "v": s + 0.3 * rng.normal(size=SHAPE)}
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("name", "sign", "variables"),
    [
        ("skills", " - ", {"skill"}),
        ("effects", " + ", {"mu", "a"}),
        ("product", " * ", {"a", "b"}),
        ("three", " + ", {"mu", "a", "b"}),
        ("slope", "", {"alpha", "beta"}),
        ("factor", " * ", {"a", "theta"}),
    ],
)
def test_what_a_ridge_identifies_is_named(make_mcmc, rng, name, sign, variables):
    found = diagnose(make_mcmc(case(name, rng)))
    (cause,) = found.judgement.causes
    assert (found.verdict, cause.name) == ("unusable", "short")
    text, known, narrower = re.search(
        r"identifies (.*) \((.*) effective draws, sd (.*) times", cause.fact
    ).groups()
    terms = re.findall(r"`(.*?)`", cause.fact.partition("hardly ")[2])
    assert {term.partition("[")[0] for term in terms} == variables
    shown = f"`{sign.join(terms)}`"
    assert text == (shown if sign else f"a weighted sum of `{terms[0]}` and `{terms[1]}`")
    assert text in cause.remedy
    assert float(known.replace(",", "")) > 1000 and float(narrower) > 10


@pytest.mark.parametrize("name", ["simplex", "copies", "slow sum", "modes", "correlated"])
def test_slow_parameters_without_a_combination_that_is_known_have_no_ridge(make_mcmc, rng, name):
    """Their sum is constant, as slow as they are or not much narrower, or chains go between two modes."""
    found = diagnose(make_mcmc(case(name, rng)), align=False)
    (cause,) = found.judgement.causes
    assert cause.name == "short" and "identifies" not in cause.fact
