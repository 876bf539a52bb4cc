"""Entries of equal shapes correspond whatever a file calls its axes and labels."""

import numpy as np
import pytest

from onebasin.analysis.compare.comparable import labelled_as
from onebasin.analysis.compare.compare import compare
from onebasin.analysis.compare.distances import compare_moments
from onebasin.posteriors.view import as_view


@pytest.fixture
def labelled(make_mcmc, rng):
    """The same draws of `mu`, with an axis and labels of one's own where they are given."""
    values = rng.normal(size=(4, 300, 2)) * [0.1, 3.0] + [0.0, 5.0]

    def make(labels=(), dim="group"):
        tree = make_mcmc({"mu": values, "tau": values[..., 0]})
        if labels:
            (own,) = (str(d) for d in tree["posterior"]["mu"].dims if d not in ("chain", "draw"))
            renamed = tree["posterior"].to_dataset().rename({own: dim})
            tree["posterior"] = type(tree)(renamed.assign_coords({dim: list(labels)}))
        return tree

    return make


def moments(first, second):
    own = labelled_as(as_view(second), as_view(first), ("mu", "tau"))
    return compare_moments(first, own).table


@pytest.mark.parametrize("other", [{}, {"labels": (1, 2), "dim": "mu_dim_0"}])
def test_labels_of_another_file_are_no_difference(labelled, other):
    found = compare({"a": labelled(("a", "b")), "b": labelled(**other)}, truth="a", permutations=19)
    assert found.table.loc["b", "verdict"] in ("agree", "undecided")
    assert found.table.loc["b", "max_abs_d"] < 0.1
    table = moments(labelled(("a", "b")), labelled(**other))
    assert list(table.index) == ["mu[a]", "mu[b]", "tau"]
    assert (table["difference"] == 0).all()


def test_a_posterior_with_these_names_stays_what_it_is(labelled):
    view = as_view(labelled())
    assert labelled_as(view, as_view(labelled()), ("mu", "tau")) is view


def test_other_shapes_are_left_to_the_comparison(make_mcmc, labelled):
    wide = make_mcmc({"mu": np.zeros((2, 9, 3))})
    assert labelled_as(as_view(wide), as_view(labelled()), ("mu",)).tree is wide


def test_three_labels_in_turn_are_found_by_name(make_mcmc):
    values = np.broadcast_to(np.array([1.0, 2.0, 3.0]), (2, 50, 3))

    def make(labels):
        tree = make_mcmc({"mu": values})
        held = tree["posterior"].to_dataset().assign_coords(mu_dim_0=list(labels))
        tree["posterior"] = type(tree)(held)
        return as_view(tree)

    moved = labelled_as(make("cab"), make("abc"), ("mu",))
    np.testing.assert_array_equal(moved.values("mu")[0, 0], [2.0, 3.0, 1.0])


def test_chains_in_two_modes_agree_with_no_posterior_in_one():
    """The half that is compared lies in one mode, and the half that gave labels and scales in the other."""
    rng = np.random.default_rng(5)
    one = {"x": rng.normal(size=(4, 500)), "y": rng.normal(size=(4, 500))}
    two = {"x": rng.normal([[9.0], [9.0], [0.0], [0.0]], size=(4, 500)), "y": one["y"][::-1]}
    comparison = compare({"two": two, "one": one}, permutations=99)
    assert comparison.moments["one"].unmixed == ("x",)
    (answer,) = comparison.sentences
    assert "1 of 2 could not be judged, because effective draws are too few or chains" in answer
    assert "draws are not judged, for the truth's own chains differ" in answer
    assert "The chains of `two` disagree about `x` (R-hat)" in " ".join(comparison.warnings)
