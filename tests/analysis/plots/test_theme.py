"""ArviZ's plots as figures of ours: labels, greys, and nothing left behind in Matplotlib's state."""

import matplotlib
import numpy as np
from matplotlib import pyplot

from onebasin.analysis.plots.labellings import draw_labellings
from onebasin.analysis.plots.theme import drawn, few, labels


def test_labels_are_short_and_unlike_each_other():
    names = {f"a_name_of_more_than_{'sixty' * 8}_characters[{k},0]": None for k in range(3)}
    given = labels(
        names | {"same_start" * 5: 0, "same_start" * 4 + "other": 0, "$x^2$": 0, "a/b": 0}
    )
    assert len(set(given.values())) == len(given)
    assert all(len(label) <= 28 for label in given.values())
    assert given["$x^2$"] == r"\$x^2\$"
    assert "/" not in given["a/b"]


def test_drawing_leaves_neither_figures_nor_settings_behind(rng):
    from arviz_plots import plot_forest

    pyplot.get_backend()  # asking for it settles it
    before = dict(matplotlib.rcParams)
    quantities = {"<b>mu</b>": rng.normal(size=(2, 50)), "tau [x/y]": rng.normal(size=(2, 50))}
    figure = drawn(plot_forest, few(quantities), height=1.5)
    assert pyplot.get_fignums() == []
    assert dict(matplotlib.rcParams) == before
    assert figure.patch.get_alpha() == 0
    shown = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert any("<b>mu" in text for text in shown)


def test_labellings_of_long_chains_are_one_strip_a_chain(rng):
    numbers = np.zeros((3, 5000), np.int64)
    numbers[1], numbers[2, 2500:] = 1, 9
    figure = draw_labellings(numbers)
    strips = figure.axes[0].images[0].get_array()
    assert strips.shape == (3, 700)
    assert (strips[0] == 0).all()
    assert (strips[1] == 1).all()
    assert (strips[2, -300:] == 6).all()  # what is rare has one colour
