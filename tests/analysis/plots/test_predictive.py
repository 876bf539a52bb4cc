"""Predictions against data: what is drawn for which kind of posterior."""

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.plots.bands import Curve, UncertaintyBand, draw_uncertainty
from onebasin.analysis.plots.predictive import in_bins
from onebasin.models import BayesianNetwork, Gaussian, Network
from onebasin.posteriors.view import as_view

from .conftest import legend, network_tree


def _titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]


def test_one_input_gives_bands_over_the_data(regression):
    figure = ob.plot.predictive({"a": regression, "b": regression}, truth=lambda x: np.sin(x[:, 0]))
    assert _titles(figure) == ["a", "b"]
    said = ["95 %", "50 %", "predictive mean", "true function", "data"]
    assert legend(figure) == said
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    x = lines["true function"].get_xdata()
    np.testing.assert_allclose(lines["true function"].get_ydata(), np.sin(x))
    model = BayesianNetwork.from_description(regression.attrs["model"])
    posterior = {n: v.values for n, v in regression["posterior"].to_dataset().items()}
    function = np.asarray(ob.networks.predict(model, posterior, x[:, None]))[..., 0]
    mean = lines["predictive mean"].get_ydata()
    np.testing.assert_allclose(mean, function.mean(axis=(0, 1)), rtol=1e-6)
    (data,) = [c for c in figure.axes[0].collections if c.get_label() == "data"]
    np.testing.assert_allclose(data.get_offsets()[:, 0], np.linspace(-2, 2, 30))


def test_one_posterior_has_no_title_and_others_data_may_be_given(regression):
    figure = ob.plot.predictive(regression, x=[[-4.0], [4.0]], y=[1.0, 2.0])
    assert _titles(figure) == [""]
    (data,) = [c for c in figure.axes[0].collections if c.get_label() == "data"]
    np.testing.assert_allclose(data.get_offsets(), [[-4, 1], [4, 2]])


def test_new_inputs_keep_the_data_that_lie_among_them(regression):
    """The swatch of the inner band has the colour of both, one over the other."""
    figure = ob.plot.predictive(regression, x=[[0.0], [4.0]])
    (data,) = [c for c in figure.axes[0].collections if c.get_label() == "data"]
    fitted = np.linspace(-2, 2, 30)
    np.testing.assert_allclose(data.get_offsets()[:, 0], fitted[fitted >= 0])
    outer, inner = figure.legends[0].get_patches()
    assert outer.get_alpha() == pytest.approx(0.18)
    assert inner.get_alpha() == pytest.approx(0.18 + 0.82 * 0.34)


def test_several_inputs_give_intervals_against_what_was_observed(several_inputs):
    figure = ob.plot.predictive(several_inputs)
    (means,) = [line for line in figure.axes[0].lines if line.get_label() == "mean"]
    observed = several_inputs["observed_data"]["y"].values[:, 0]
    np.testing.assert_allclose(means.get_xdata(), observed)
    assert "of 40 observations lie in their 95 % intervals" in figure.alt


def test_a_classifier_gives_its_reliability(classifier):
    figure = ob.plot.predictive(classifier)
    assert "probability of the most probable class" in figure.axes[0].get_xlabel()
    assert "of 60 cases" in figure.alt


def test_reliability_of_bins_is_the_share_that_is_right():
    most, right = np.array([0.6, 0.9, 0.7, 0.8]), np.array([False, True, True, True])
    confidence, accuracy, count = in_bins(most, right, 2)
    np.testing.assert_allclose(confidence, [0.65, 0.85])
    np.testing.assert_allclose(accuracy, [0.5, 1.0])
    assert count.tolist() == [2, 2]


def test_other_models_show_predicted_data_sets_among_the_observed(mixture):
    figure = ob.plot.predictive({"one": mixture, "two": mixture})
    assert _titles(figure) == ["one", "two"]
    assert figure.axes[0].get_xlabel() == "y"
    assert legend(figure) == ["50 predicted data sets", "observed"]
    assert len(figure.axes[0].lines) == 51


def test_whole_numbers_are_drawn_as_cumulative_shares(mixture):
    whole = mixture.copy(deep=True)
    for group in ("posterior_predictive", "observed_data"):
        whole[group]["y"] = whole[group]["y"].round()
    (axes,) = ob.plot.predictive(whole).axes
    assert axes.get_ylabel() == "cumulative share"
    observed = axes.lines[-1].get_ydata()
    assert observed[0] == 0
    assert observed[-1] == 1
    assert (np.diff(observed) >= 0).all()


def test_a_second_output_is_chosen_by_its_number():
    x = np.linspace(-1, 1, 10)[:, None]
    model = BayesianNetwork(Network(1, (2,), 2), likelihood=Gaussian(noise_sd=0.1))
    tree = network_tree(model, x, np.hstack([x, 5 + x]))
    (data,) = [
        c for c in ob.plot.predictive(tree, output=1).axes[0].collections if c.get_label() == "data"
    ]
    np.testing.assert_allclose(data.get_offsets()[:, 1], 5 + x[:, 0])
    with pytest.raises(ValueError, match="`output` is 2, but the network has 2"):
        ob.plot.predictive(tree, output=2)


def test_a_truth_of_another_shape_is_refused(regression):
    with pytest.raises(ValueError, match=r"`truth` must return one value.*shape \(\)"):
        ob.plot.predictive(regression, truth=np.sum)


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
    with pytest.raises(ValueError, match=r"contains no inputs\. Give an array"):
        ob.plot.uncertainty(bare)
    figure = ob.plot.uncertainty(bare, x=[[0.0], [1.0]])
    assert "over all" in figure.alt


def test_refusals_say_what_can_be_drawn(regression, classifier):
    with pytest.raises(ValueError, match=r"posteriors\['b'\]` is the posterior of a classifier"):
        ob.plot.uncertainty({"a": regression, "b": classifier})
    with pytest.raises(ValueError, match="`output` is 1, but the network has 1"):
        ob.plot.uncertainty(regression, output=1)
