"""Figures as objects: axes, labels, number of artists, room for texts; and that drawing changes nothing else."""

import html
import io

import matplotlib
import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from scipy.stats import norm

from onebasin.analysis.plots import style
from onebasin.analysis.plots.bands import predictive_band
from onebasin.analysis.plots.chains import Pair, draw_pairs, draw_traces, envelope, rank_shares
from onebasin.analysis.plots.convergence import autocorrelation
from onebasin.analysis.plots.marginals import density, draw_forest
from onebasin.analysis.plots.results import draw_elbo, elbo_range
from onebasin.analysis.report.chains import tree_depths
from onebasin.base.text import shown

from .conftest import legend


def _visible(figure):
    return [axes for axes in figure.axes if axes.get_visible()]


def test_plot_trace_rank_draws_a_row_per_quantity_and_a_line_per_chain(rng):
    figure = draw_traces({name: rng.normal(size=(3, 50)) for name in ("lp", "mu")})
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 4
    traces = [axes for axes in figure.axes if axes.get_ylabel() in ("lp", "mu")]
    assert [len(axes.lines) for axes in traces] == [3, 3]
    np.testing.assert_array_equal(traces[0].lines[0].get_xdata(), np.arange(1, 51))
    assert traces[-1].get_xlabel() == "draw"
    assert figure.axes[-1].get_xlabel() == "rank among all draws"
    assert len(figure.axes[-1].patches) == 3
    assert legend(figure) == ["chain 0", "chain 1", "chain 2"]


def test_trace_rank_is_flat_for_one_chain_and_split_for_chains_apart(rng):
    draws = rng.normal(size=(2, 100))
    np.testing.assert_allclose(rank_shares(draws[:1]), 1.0)
    apart = rank_shares(draws + np.asarray([[-50.0], [50.0]]), bins=2)
    np.testing.assert_allclose(apart, [[2.0, 0.0], [0.0, 2.0]])


def test_envelope_keeps_the_extremes_and_the_order(rng):
    values = rng.normal(size=3001)
    values[1234], values[77] = 40.0, -40.0
    places = envelope(values, points=200)
    assert len(places) <= 200
    assert (np.diff(places) > 0).all()
    assert {1234, 77} <= set(places.tolist())
    assert envelope(values, points=4000).tolist() == list(range(3001))


def test_plot_weight_scatter_draws_a_panel_per_posterior_on_shared_axes(rng):
    pairs = {
        name: Pair(rng.normal(size=(2, 40)), scale * rng.normal(size=(2, 40)))
        for name, scale in (("free", 5.0), ("givens", 1.0), ("ordered", 1.0), ("both", 1.0))
    }
    figure = draw_pairs(pairs, x_label="W1[0,0]", y_label="W2[0,0]", columns=3)
    panels = _visible(figure)
    assert [axes.get_title(loc="left") for axes in panels] == list(pairs)
    assert all(len(axes.collections) == 2 for axes in panels)
    assert len({axes.get_ylim() for axes in panels}) == 1
    assert panels[0].get_ylabel() == panels[3].get_ylabel() == "W2[0,0]"
    assert panels[3].get_xlabel() == "W1[0,0]"
    own = draw_pairs(pairs, share_axes=False)
    assert len({axes.get_ylim() for axes in _visible(own)}) == 4
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in _visible(own))


def test_predictive_band_is_sorted_and_nested(rng):
    x = np.asarray([2.0, 0.0, 1.0])
    draws = x + rng.normal(size=(2, 4000, 3))
    band = predictive_band(x, draws)
    assert band.coordinate.tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_allclose(band.mean, band.coordinate, atol=0.06)  # 5 standard errors
    np.testing.assert_allclose(band.outer[1] - band.mean, 1.96, atol=0.15)
    np.testing.assert_allclose(band.inner[1] - band.mean, 0.674, atol=0.1)
    assert (band.outer[0] < band.inner[0]).all()


def test_draw_elbo_shows_the_late_values_and_says_what_is_hidden():
    elbo = np.concatenate([np.full(5, -1e6), np.linspace(-20.0, -10.0, 25)])
    trace = (np.arange(30.0), elbo)
    figure = draw_elbo({"mean-field": trace, "full-rank": trace})
    axes = figure.axes[0]
    assert axes.get_ylabel() == "ELBO (nats)"
    assert len(axes.lines) == 2
    assert axes.get_ylim()[0] > -30
    assert axes.get_title(loc="right") == "18 early values lie below the axis"
    assert legend(figure) == ["mean-field", "full-rank"]


def test_elbo_range_survives_values_that_are_not_finite():
    bad = (np.arange(3.0), np.asarray([-5.0, np.nan, -np.inf]))
    assert elbo_range({"bad": bad}) == (0.0, 1.0)
    flat = (np.arange(3.0), np.asarray([-5.0, -5.0, -5.0]))
    assert elbo_range({"flat": flat}) == (-6.0, -4.0)


def test_plot_tree_depth_draws_shares_and_marks_the_limit():
    depth = np.asarray([[1.0, 2.0, 2.0, 3.0], [3.0, 3.0, 3.0, 3.0]])
    item = tree_depths("nuts", depth, 3)
    figure = item.figure
    bars = figure.axes[0].patches
    assert [bar.get_height() for bar in bars] == pytest.approx([1 / 8, 2 / 8, 5 / 8])
    assert bars[2].get_facecolor() != bars[1].get_facecolor() == bars[0].get_facecolor()
    assert figure.axes[0].get_xlabel() == "tree depth"
    assert item.alt == "nuts: 12 % at depth 1, 25 % at depth 2, 62 % at depth 3."


def test_a_figure_refuses_to_draw_nothing():
    with pytest.raises(ValueError, match="`quantities` is empty"):
        draw_traces({})


@pytest.mark.parametrize("name", ["$x$", "$\\bad{$", "a $ b", "a\x1b[1m\u202eb", "x_1^2 \\alpha"])
def test_a_name_is_drawn_as_it_is_written(name):
    figure = style.new_figure(3, 2)
    axes = style.style_axes(figure.subplots(), title=name, x_label=name, y_label=name)
    axes.plot([0, 1], [0, 1])
    style.add_legend(figure, axes.lines, [name])
    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    drawn = html.unescape(file.getvalue())
    assert drawn.count(shown(name)) >= 4


def test_drawing_leaves_neither_figures_nor_settings_behind(rng):
    pyplot.get_backend()  # asking for it settles it
    before = dict(matplotlib.rcParams)
    drawn = {name: rng.normal(size=(2, 50)) for name in ("<b>mu</b>", "tau")}
    figure = draw_forest({"": drawn})
    assert pyplot.get_fignums() == []
    assert dict(matplotlib.rcParams) == before
    assert figure.get_facecolor()[3] == 0
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["<b>mu</b>", "tau"]


def test_texts_of_all_sides_have_room():
    """What the layout leaves by the number of characters is enough for what is drawn."""
    figure = style.new_figure(7.0, 3.0)
    for place, axes in enumerate(figure.subplots(2, 2).ravel()):
        style.style_axes(axes, title="two\nlines", x_label="a place", y_label="a number")
        axes.plot([0, 1e-5], [-123456.0, 10.0**place])
    style.add_legend(figure, axes.lines, ["one"])
    figure.draw_without_rendering()
    whole = figure.bbox
    boxes = [axes.get_tightbbox() for axes in figure.axes] + [figure.legends[0].get_window_extent()]
    for box in boxes:
        assert box.x0 >= whole.x0 and box.x1 <= whole.x1
        assert box.y0 >= whole.y0 and box.y1 <= whole.y1
    for place, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[place + 1 :])


def test_densities_are_those_of_normals_apart_at_any_size(rng):
    normals = rng.normal(size=(2, 4000)) + np.array([[-8.0], [8.0]])
    for scale in (1.0, 1e200, 1e-280):
        x, y = density(scale * normals)
        wanted = (norm.pdf(x / scale, -8) + norm.pdf(x / scale, 8)) / 2
        assert np.abs(scale * y - wanted).max() < 0.025
    assert density(np.ones(5))[1].tolist() == [0.0, 1.0]


def test_autocorrelation_is_that_of_lagged_draws(rng):
    values = rng.normal(size=(2, 300)).cumsum(axis=1)
    found = autocorrelation(values, 5)
    centred = values - values.mean(axis=1, keepdims=True)
    wanted = (centred[:, 3:] * centred[:, :-3]).sum(axis=1) / (centred**2).sum(axis=1)
    np.testing.assert_allclose(found[:, 3], wanted)
    np.testing.assert_allclose(found[:, 0], 1.0)


def test_a_legend_of_hundreds_of_chains_leaves_room_for_the_panels():
    figure = style.new_figure(6.0, 2.0)
    axes = figure.subplots()
    style.add_chain_legend(figure, 256)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert (names[0], names[-1]) == ("chain 0", "chain 15 to 255")
    figure.draw_without_rendering()
    assert axes.get_window_extent().height > 0.3 * figure.bbox.height
