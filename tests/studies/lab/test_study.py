"""Verdicts of claims, from their comparisons."""

import pytest

from onebasin.studies.lab.claims import judge


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        ([True, True], "reproduces"),
        ([False, False], "does not reproduce"),
        ([True, False], "unclear"),
        ([True, None], "reproduces in part"),
        ([True, True, "open"], "reproduces in part"),
        ([False, None], "contradicted in part"),
        ([False, "open", None], "contradicted in part"),
        ([True, False, None], "unclear"),
        (["open"], "unclear"),
        (["open", None], "unclear"),
        ([None], "unclear"),
        ([], "unclear"),
    ],
)
def test_verdict_follows_from_the_comparisons(holds, verdict):
    assert judge(holds) == verdict
