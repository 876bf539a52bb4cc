"""Both uncertainties along one input: what is drawn where."""

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.plots.bands import Curve, UncertaintyBand, draw_uncertainty
from onebasin.posteriors.view import as_view


def _edges(axes, label):
    """Lower and upper edge of a band, by its places."""
    (band,) = [c for c in axes.collections if c.get_label() == label]
    corners = band.get_paths()[0].vertices
    places = np.unique(corners[:, 0])
    ends = [corners[corners[:, 0] == place, 1] for place in places]
    return places, np.array([e.min() for e in ends]), np.array([e.max() for e in ends])


def test_bands_are_the_two_standard_deviations(regression):
    figure = ob.plot.uncertainty({"a": regression, "b": regression})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a", "b"]
    axes = figure.axes[0]
    (mean,) = [line for line in axes.lines if line.get_label() == "predictive mean"]
    places = mean.get_xdata()
    assert (places[0], places[-1]) == (-4, 4)  # the data go from -2 to 2
    view = as_view(regression)
    draws = {name: view.values(name) for name in view.variables}
    both = ob.networks.predict_with_noise(view.network, draws, places[:, None])
    function, noise = (part[..., 0] for part in both)
    np.testing.assert_allclose(mean.get_ydata(), function.mean((0, 1)))
    epistemic = function.std((0, 1))
    total = np.sqrt(epistemic**2 + np.square(noise).mean((0, 1)))
    for label, sd in (("epistemic: ± 1 sd", epistemic), ("total: ± 1 sd", total)):
        _, low, high = _edges(axes, label)
        np.testing.assert_allclose(low, function.mean((0, 1)) - sd, rtol=1e-6)
        np.testing.assert_allclose(high, function.mean((0, 1)) + sd, rtol=1e-6)
    (data,) = [c for c in axes.collections if c.get_label() == "data"]
    np.testing.assert_allclose(data.get_offsets()[:, 0], np.linspace(-2, 2, 30))


def test_what_lies_outside_the_data_is_shaded_and_told(regression):
    figure = ob.plot.uncertainty(regression, x=[[-3.0], [2.5]], truth=lambda x: np.sin(x[:, 0]))
    (axes,) = figure.axes
    spans = sorted(patch.get_extents().transformed(axes.transData.inverted()) .intervalx.tolist()
                   for patch in axes.patches)  # fmt: skip
    np.testing.assert_allclose(spans, [[-3, -2], [2, 2.5]], atol=1e-9)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels.count("outside the data") == 1
    assert "true function" in labels
    assert axes.get_xlim() == (-3, 2.5)


def test_nothing_is_shaded_within_the_data(regression):
    figure = ob.plot.uncertainty(regression, x=[[-1.0], [1.0]])
    assert not figure.axes[0].patches
    assert "outside" not in figure.alt


def test_what_is_far_from_the_data_does_not_flatten_them():
    x = np.linspace(-2, 2, 5)
    wide = UncertaintyBand(x, np.zeros(5), np.full(5, 1e6), np.full(5, 1e6))
    data = Curve(np.array([-1.0, 1.0]), np.array([-1.0, 1.0]))
    low, high = draw_uncertainty({"": wide}, data=data).axes[0].get_ylim()
    assert (low, high) == pytest.approx((-5, 5), rel=0.1)
    low, high = draw_uncertainty({"": wide}).axes[0].get_ylim()
    assert high > 1e6 > -1e6 > low


def test_a_posterior_without_data_needs_places(regression):
    bare = regression.copy()
    del bare["constant_data"]
    with pytest.raises(ValueError, match="contains no inputs; give an array"):
        ob.plot.uncertainty(bare)
    figure = ob.plot.uncertainty(bare, x=[[0.0], [1.0]])
    assert "over all" in figure.alt


def test_refusals_say_what_can_be_drawn(regression, classifier):
    with pytest.raises(ValueError, match=r"posteriors\['b'\]` is the posterior of a classifier"):
        ob.plot.uncertainty({"a": regression, "b": classifier})
    with pytest.raises(ValueError, match="`output` is 1, but the network has 1"):
        ob.plot.uncertainty(regression, output=1)
