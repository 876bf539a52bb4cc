"""Labels as sampled and aligned: which lines are drawn, in which colours, and what is said of them."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import onebasin as ob
from onebasin.analysis.plots import labels as module
from onebasin.analysis.plots.style import chain_colour

from .conftest import SWITCHED, legend, many


def _traces(axes, colour):
    return [line for line in axes.lines if to_hex(line.get_color()) == colour]


def _levels(axes, component):
    """Median of each chain's trace of one component."""
    traces = _traces(axes, chain_colour(component))
    return np.array([np.median(line.get_ydata()) for line in traces])


def test_a_component_keeps_its_colour_while_its_place_changes(mixture):
    figure = ob.plot.labels(mixture)
    mu, theta = figure.axes
    assert (mu.get_ylabel(), theta.get_ylabel()) == ("mu", "theta")
    places = np.sign(_levels(mu, 0))
    assert [chain for chain in range(3) if places[chain] > 0] == list(SWITCHED)
    np.testing.assert_array_equal(np.sign(_levels(mu, 1))[:3], -places[:3])
    assert legend(figure) == ["component 0", "component 1"]
    assert theta.get_xlabel() == "draws of each chain, in order"


def test_aligned_components_have_one_place(mixture):
    figure = ob.plot.aligned(mixture)
    before, after = figure.axes[:2]
    assert np.ptp(_levels(before, 0)) > 3
    assert np.ptp(_levels(after, 0)) < 0.1
    aligned = ob.align(mixture).posterior["posterior"]["mu"].values
    assert _levels(after, 0)[0] == pytest.approx(np.median(aligned[0, :, 0]), abs=0.05)


def test_what_was_aligned_or_diagnosed_is_not_aligned_again(mixture, monkeypatch):
    alignment, diagnosis = ob.align(mixture), ob.diagnose(mixture)
    monkeypatch.setattr(module, "align", None)
    for given in (alignment, diagnosis, diagnosis.aligned):
        assert len(ob.plot.aligned(given).axes) == 4


def test_signs_of_whole_variables_are_drawn_for_their_clearest_entries(signs):
    figure = ob.plot.aligned(signs, (ob.Flip(("theta", "a")),))
    legends = [axes.get_legend() for axes in figure.axes]
    theta, a = [[text.get_text() for text in legend.get_texts()] for legend in legends if legend]
    assert set(theta) < {f"theta[{k}]" for k in (0, 1, 4, 5)}
    assert (len(theta), a) == (3, ["a[0]", "a[1]", "a[2]"])
    before, after = figure.axes[:2]
    assert np.ptp(np.sign(_levels(before, 0))) == 2
    assert np.ptp(np.sign(_levels(after, 0))) == 0


def test_of_many_components_a_few_are_drawn_and_counted():
    figure = ob.plot.labels(many(20))
    assert len(legend(figure)) == 9
    assert legend(figure)[0] == "8 of 20:"
    own = ob.plot.labels(many(20), components=3)
    assert len(legend(own)) == 4


def test_a_network_shows_three_variables_and_its_units(regression):
    figure = ob.plot.aligned(regression)
    rows = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert rows == ["W1[0, ·]", "b1", "W2[·, 0]"]
    after = figure.axes[1]
    assert np.ptp(_levels(after, 0)) < 0.1


def test_independent_draws_are_points_and_no_trace(regression):
    members = regression.isel(chain=[0])
    members.attrs = regression.attrs | {"method": "ensemble"}
    axes = ob.plot.labels(members).axes[-1]
    assert {line.get_linestyle() for line in axes.lines} == {"None"}
    assert axes.get_xlabel() == "member"


def test_a_picture_shows_itself_small_opaque_and_with_its_words(mixture):
    figure = ob.plot.labels(mixture)
    data, about = figure._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert len(data["image/png"]) < 120_000
    assert about["image/png"]["alt"] == figure.alt
    assert about["image/png"]["width"] == round(96 * figure.get_figwidth())
    assert figure.alt in data["text/plain"]
    assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)


def test_labels_of_a_coordinate_name_the_components(mixture):
    dataset = mixture["posterior"].to_dataset().assign_coords(k=["low", "high"])
    tree = xr.DataTree.from_dict({"posterior": dataset})
    assert legend(ob.plot.labels(tree)) == ["component low", "component high"]
