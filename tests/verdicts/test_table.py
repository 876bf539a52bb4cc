"""What is said of posteriors whose answer is known: some quickly, all in `make slow`.

docs/benchmarks.md holds the whole table, of more seeds.
"""

import pytest

import onebasin as ob
from benchmarks.verdicts.families import FAMILIES
from benchmarks.verdicts.truth import USABLE, aligned, unusable, wrong

BY_NAME = {family.name: family for family in FAMILIES}
QUICK = (
    "mixtures: overlapping, labels switch at every draw",
    "mixtures: weight theta, every draw",
    "mixtures: one component lost in one chain, one labelling",
    "hidden Markov: chains apart",
    "2PL: sign by chain",
    "short: 60 draws a chain",
)


@pytest.mark.parametrize("name", QUICK)
def test_what_is_said_is_true(name):
    family = BY_NAME[name]
    assert wrong(family.truth, ob.diagnose(family.draw(7).tree()).to_dict()) == []


@pytest.mark.slow
def test_at_most_two_in_a_hundred_verdicts_are_wrong():
    answers = {
        (name, seed): wrong(family.truth, ob.diagnose(family.draw(seed).tree()).to_dict())
        for name, family in BY_NAME.items()
        for seed in (20, 21)
    }
    faults = {asked: found for asked, found in answers.items() if "verdict" in found}
    assert len(answers) >= 200
    assert len(faults) <= 0.02 * len(answers), faults


def test_a_truth_is_held_against_every_part_of_an_answer():
    said = {"verdict": "aligned", "causes": ["labels"], "exchangeable": ["sigma,mu:0"]}
    assert wrong(aligned("mu,sigma"), said) == []
    assert wrong(aligned("mu,sigma,theta"), said) == ["words"]
    assert wrong(aligned("mu,sigma,theta", silent=["theta"]), said) == []
    assert wrong(aligned("mu", silent=["sigma"]), said) == ["words"]
    assert wrong(USABLE, said) == ["verdict", "cause", "words"]
    assert wrong(unusable("modes"), said) == ["verdict", "cause"]
