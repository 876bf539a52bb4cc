"""Predictions against data: what is drawn for which kind of posterior."""

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.plots.predictive import in_bins
from onebasin.models import BayesianNetwork, Gaussian, Network

from .conftest import network_tree


def _titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]


def test_one_input_gives_bands_over_the_data(regression):
    figure = ob.plot.predictive({"a": regression, "b": regression}, truth=lambda x: np.sin(x[:, 0]))
    assert _titles(figure) == ["a", "b"]
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
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["50 predicted data sets", "observed"]
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
    with pytest.raises(ValueError, match=r"`truth` returned an array of shape \(\)"):
        ob.plot.predictive(regression, truth=np.sum)
