"""Comparisons, ELBOs, traces and pairs: what stands where, and what is rejected."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import onebasin as ob
from onebasin.analysis.compare.comparison import Comparison
from onebasin.base.errors import ArgumentError
from onebasin.posteriors.view import as_view


def _table() -> pd.DataFrame:
    columns = {"mean_distance": [np.nan, 10.0, 0.2, 0.05], "coverage_95": [0.94, 1.0, 0.95, 0.94]}
    columns |= {"log_score": [-0.5, -2.0, -0.6, -0.5], "energy": [np.nan, 50.0, 1.0, 0.1]}
    methods = ["NUTS", "ADVI", "symmetrised", "baseline"]
    return pd.DataFrame(columns | {"rmse": [np.nan] * 4}, index=methods)


@pytest.fixture
def comparison():
    return Comparison("regression", "NUTS", _table(), (), ())


def _dots(axes):
    return {int(line.get_ydata()[0]): line for line in axes.lines if line.get_marker() == "o"}


def test_plot_comparison_draws_the_table(comparison):
    figure = ob.plot.comparison(comparison)
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels[0] == "distance of mean predictions (sds)"
    dots = _dots(figure.axes[0])
    assert [dots[row].get_xdata()[0] for row in range(3)] == [0.05, 10.0, 0.2]
    assert dots[0].get_markerfacecolor() == "none"  # the baseline, in the truth's row
    score = _dots(figure.axes[labels.index("log score (nats)")])
    assert [score[row].get_xdata()[0] for row in range(3)] == [-0.5, -2.0, -0.6]
    rows = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert rows == ["NUTS (truth)", "ADVI", "symmetrised"]


def test_plot_comparison_draws_the_measures_that_are_asked_for(comparison):
    figure = ob.plot.comparison(comparison, measures=["coverage_95"])
    (axes,) = figure.axes
    assert axes.get_xlabel() == "coverage of 95 % intervals"
    assert [line.get_xdata()[0] for line in axes.lines if line.get_marker() != "o"] == [0.95]
    with pytest.raises(
        ValueError, match=r"`measures` contains 'rmse', but the comparison has only mean_distance"
    ):
        ob.plot.comparison(comparison, measures=["rmse"])


def test_plot_elbo_draws_a_line_a_fit(rng, make_variational):
    values = {"mu": rng.normal(size=(1, 100))}
    lp = rng.normal(size=(1, 100))
    fits = {name: make_variational(values, lp=lp, log_q=lp) for name in ("mean-field", "full rank")}
    figure = ob.plot.elbo(fits)
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["mean-field", "full rank"]
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [-90, -12, -10.5, -10.25])
    alone = ob.plot.elbo(fits["mean-field"])
    assert not alone.legends
    assert len(ob.plot.elbo(ob.approximations.elbo(fits["mean-field"])).axes[0].lines) == 1


def test_plot_traces_begins_with_lp_and_the_worst(mixture):
    figure = ob.plot.traces(mixture, rows=3)
    names = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel() != "density"]
    assert names[0] == "lp"
    assert len(names) == 3
    assert names[1].startswith(("mu", "theta"))
    own = ob.plot.traces(mixture, var_names="theta")
    assert [a.get_ylabel() for a in own.axes if a.get_ylabel() != "density"] == ["theta"]


def test_plot_pair_takes_scalar_entries(mixture):
    figure = ob.plot.pair({"one": mixture, "two": mixture}, "mu[0]", "theta")
    offsets = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(offsets[:, 0], mixture["posterior"]["mu"].values[0, :, 0])
    assert figure.axes[0].get_xlabel() == "mu[0]"
    for wrong in ("mu", "nu"):
        with pytest.raises(ValueError, match=f"`posterior` has no scalar parameter '{wrong}'"):
            ob.plot.pair(mixture, wrong, "theta")


def test_marginal_plots_show_parameters_in_the_models_order(mixture):
    """Each has a panel or one row per parameter, and says in its text where the draws or the ranks lie."""
    forest = ob.plot.forest(mixture, rows=3)
    shown = [text.get_text() for text in forest.axes[0].get_yticklabels()]
    first = as_view(mixture).draws("mu").names
    assert shown == [*first, "theta"][:3]
    for plot in (ob.plot.densities, ob.plot.ranks):
        figure = plot(mixture, var_names="mu")
        titles = [axes.get_title(loc="left") for axes in figure.axes]
        assert [title.partition(", R-hat")[0] for title in titles] == list(first)
        assert len(figure.axes[0].lines) >= 4  # one a chain
    apart = ob.plot.ranks(mixture, var_names="mu").alt
    assert "lies high" in apart or "lies low" in apart


def test_every_plot_is_found():
    assert dir(ob.plot) == sorted(ob.plot.__all__)
    assert all(callable(getattr(ob.plot, name)) for name in ob.plot.__all__)
    with pytest.raises(AttributeError, match="plot has no `nothing`"):
        _ = ob.plot.nothing


EXTREME = {
    "large": lambda z: 1e15 + z,
    "huge": lambda z: 1e200 * z,
    "small": lambda z: 1e-310 * z,
    "infinite": lambda z: np.where(z > 2, np.inf, z),
    "constant": np.ones_like,
    "one chain": lambda z: z[:1],
}


@pytest.mark.parametrize("name", EXTREME)
def test_extreme_numbers_and_one_chain_have_a_picture_or_a_named_error(rng, name):
    draws = {"x": EXTREME[name](rng.normal(size=(4, 100)))}
    drawn = set()
    for plot in ("densities", "ranks", "forest", "traces"):
        try:
            getattr(ob.plot, plot)(draws)
            drawn.add(plot)
        except ob.OnebasinError as error:
            assert "`posterior`" in str(error)
    assert drawn >= ({"traces", "forest", "densities"} if name != "infinite" else set())


def test_a_program_without_log_lik_is_told_to_compute_it(rng):
    draws = xr.Dataset({"x": (("chain", "draw"), rng.normal(size=(2, 50)))})
    tree = xr.DataTree.from_dict({"posterior": draws})
    tree.attrs["program"] = "parameters { real x; } model { x ~ std_normal(); }"
    tree.attrs["program_name"] = "normal.stan"
    with pytest.raises(ArgumentError, match="does not compute `log_lik`"):
        ob.plot.khat(tree)
    tree.attrs |= {"program": "def model(y):  # three parameters", "program_name": "model"}
    with pytest.raises(ArgumentError, match="`log_likelihood`: give the"):
        ob.plot.khat(tree)
