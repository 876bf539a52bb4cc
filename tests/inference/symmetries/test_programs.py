"""Symmetries of Stan programs, the large ones of the kind that is public among them, with the time that they take."""

from pathlib import Path

import numpy as np
import pytest

import onebasin as ob

pytestmark = [pytest.mark.stan, pytest.mark.slow]

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 10.0


def topics(documents, words, tokens, topics_, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "K": topics_,
        "V": words,
        "M": documents,
        "N": tokens,
        "w": rng.integers(1, words + 1, size=tokens),
        "doc": rng.integers(1, documents + 1, size=tokens),
        "alpha": np.full(topics_, 0.7),
        "beta": np.full(words, 0.1),
    }


def states():
    rng = np.random.default_rng(1)
    return {
        "T": 60,
        "K": 3,
        "M": 4,
        "y": np.repeat([-4.0, 0.0, 5.0], 20) + rng.normal(size=60),
        "u": np.concatenate([np.ones((60, 1)), rng.normal(size=(60, 3))], axis=1),
    }


def units(rows, inputs, hidden, classes=10):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(rows, inputs))
    return {
        "N": rows,
        "D": inputs,
        "J": hidden,
        "K": classes,
        "x": x,
        "y": rng.integers(1, classes + 1, size=rows),
    }


def decays():
    time = np.linspace(0.1, 4, 25)
    noise = np.random.default_rng(3).normal(scale=0.1, size=25)
    return {"N": 25, "time": time, "y": 2 * np.exp(-0.3 * time) + np.exp(-3 * time) + noise}


CASES = {
    "topics": ("topics", topics(4, 30, 300, 2), ("theta:1,phi",)),
    "topics of 7,700 parameters": ("topics", topics(61, 1500, 32_000, 5), ("theta:1,phi",)),
    "states": ("states", states(), ("start,A:0:1,b,sigma",)),
    "units": ("units", units(30, 5, 4), ("+-alpha:1,+-alpha1,+-beta",)),
    "units of 7,900 parameters": ("units", units(100, 784, 10), ("+-alpha:1,+-alpha1,+-beta",)),
    "decays by an ODE solver": ("exponentials", decays(), ("amount,rate",)),
    "every constraint": ("constrained", {"N": 3, "y": np.array([0.3, -0.7, 1.9])}, ()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_programs_symmetry_is_found_in_seconds(name):
    program, data, words = CASES[name]
    found = ob.find_symmetry(ob.stan_program(PROGRAMS / f"{program}.stan", data))
    assert found.words == words
    assert found.seconds < SECONDS


def test_two_ascents_to_one_saddle_are_no_proof_of_one_mode():
    """The density of two breaks has a saddle where both are at one time; seed 2 climbs there twice."""
    rng = np.random.default_rng(19)
    t = np.arange(100.0)
    y = 1 + 3 * (t > 30) - 2 * (t > 70) + 0.5 * rng.normal(size=100)
    target = ob.stan_program(PROGRAMS / "breaks.stan", {"N": 100, "t": t, "y": y})
    for seed in (0, 2, 4):
        assert ob.find_symmetry(target, seed=seed).words == ("when,jump",), seed
