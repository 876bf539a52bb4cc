"""The figure of pruning curves as an object."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from onebasin.analysis.figures.pruning_curve import plot_pruning_curve
from onebasin.studies.compact_representation.pruning import PruningCurve


def curve(measure="accuracy"):
    keep = np.asarray([1.0, 0.0, 0.1])
    return PruningCurve("sd", measure, keep, np.asarray([50, 0, 5]), np.asarray([0.9, 0.1, 0.7]))


def test_plot_draws_a_line_per_curve_in_order_of_the_share():
    figure = plot_pruning_curve({"sd": curve(), "random": curve()}, reference=0.95)
    assert isinstance(figure, Figure)
    axes = figure.axes[0]
    assert len(axes.lines) == 3
    np.testing.assert_allclose(axes.lines[0].get_xdata(), [10.0, 100.0])  # 0 has no logarithm
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.7, 0.9])
    np.testing.assert_allclose(axes.lines[2].get_ydata(), [0.95, 0.95])
    assert axes.get_xscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("weights kept (%)", "accuracy")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["sd", "random", "posterior"]
    figure.draw_without_rendering()


def test_plot_of_errors_names_them():
    assert plot_pruning_curve({"sd": curve("rmse")}).axes[0].get_ylabel() == "RMSE (units of y)"


def test_plot_refuses_nothing_and_unlike_measures():
    with pytest.raises(ValueError, match=r"`curves` holds the measures of nothing; give at least"):
        plot_pruning_curve({})
    with pytest.raises(ValueError, match=r"measures accuracy, rmse; .* one measure"):
        plot_pruning_curve({"a": curve(), "b": curve("rmse")})
