"""What scores show of themselves: intervals held against chance, then numbers."""

import numpy as np

from onebasin.analysis.predictive.regression import score_predictions

from ...cards import check_page
from ...each import each


@each(
    ("width", "said"),
    [
        (1.0, "as many as there should be"),
        (0.3, "too few, so that the predictions are too sure of themselves"),
        (3.0, "too many, so that the predictions are not sure enough"),
    ],
)
def test_coverage_is_held_against_chance(rng, width, said):
    scores = score_predictions(width * rng.normal(size=(2, 200, 300, 1)), rng.normal(size=(300, 1)))
    text = " ".join(repr(scores).split())
    assert said in text
    assert "91.7 to 98 % would be within chance" in text  # of 300, binomial, 99 %
    assert "No log score" in text
    check_page(scores._repr_html_())


def test_what_is_no_number_is_not_judged(rng):
    y = np.full((5, 1), np.nan)
    scores = score_predictions(
        rng.normal(size=(1, 20, 5, 1)), y, log_likelihood=np.zeros((1, 20, 5))
    )
    assert "whether that is enough cannot be judged" in " ".join(repr(scores).split())
    assert "log score    0 nats a point" in repr(scores)
