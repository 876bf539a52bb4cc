"""Verdicts, options, cells: what all studies share; and what a study may import."""

import numpy as np
import pytest
import xarray as xr

from onebasin.base.errors import StudyError
from onebasin.inference import Nuts
from onebasin.models import Parametrisation
from onebasin.studies.lab import Cell, Options, Outcomes
from onebasin.studies.lab.claims import Claim, Holds, Statement, Trial, count_verdicts, judge, tried
from onebasin.studies.lab.page import CLAIMS, STATEMENTS, TRIALS, VERDICTS
from onebasin.studies.lab.study import find

from ...command_fixtures import InMemory
from ...each import each


@each(
    ("holds", "verdict"),
    [
        ([True, True], "reproduces"),
        ([False, False], "does not reproduce"),
        ([True, False], "unclear"),
        ([True, None], "reproduces in part"),
        ([True, True, "open"], "reproduces in part"),
        ([False, None], "contradicted in part"),
        ([False, "open", None], "contradicted in part"),
        ([True, False, None], "unclear"),
        (["open"], "unclear"),
        (["open", None], "unclear"),
        ([None], "unclear"),
        ([], "unclear"),
    ],
)
def test_verdict_follows_from_the_comparisons(holds, verdict):
    assert judge(holds) == verdict


def claim(*holds: Holds) -> Claim:
    trials = tuple(Trial("a to b", "1 to 2", each) for each in holds)
    return Claim("lower", "It is lower.", "ratio below 1", lambda frames: trials)


def statement(*holds: Holds) -> Statement:
    return claim(*holds).on({})


@each(
    ("holds", "outcome"),
    [
        ([True, False, None], "holds in 1 of 2 that could be judged; 1 could not"),
        ([True] * 6 + [None] * 2, "holds in 6 of 6 that could be judged; 2 could not"),
        ([True] * 6 + ["open"] * 2, "holds in 6 of 8, 2 open"),
        ([False, "open", None], "holds in 0 of 2 that could be judged, 1 open; 1 could not"),
        ([True], "holds in 1 of 1"),
        ([None, None], "none could be judged, of 2"),
        ([], "not measured in this run"),
    ],
)
def test_outcome_counts_the_comparisons(holds, outcome):
    assert statement(*holds).outcome == outcome


def test_verdicts_are_counted_in_a_sentence():
    _, frames = tried([claim(True), claim(False), claim(False), claim(None)], {})
    assert count_verdicts(frames) == (
        "Of 4 statements of the paper, 1 reproduces, 2 do not, 1 is unclear."
    )
    _, frames = tried([claim(True, None), claim(True, "open"), claim(False, None)], {})
    assert count_verdicts(frames, of="claims", hold=("holds", "hold")) == (
        "Of 3 claims, 0 hold, 2 do in part, 0 do not, 1 is contradicted in part, 0 are unclear."
    )


def test_tables_hold_every_statement_and_comparison():
    said, frames = tried([claim(True), claim(False, None, "open")], {})
    assert [row[-1].flag for row in STATEMENTS(frames).rows] == ["good", "warn"]
    assert [row[-1].value for row in CLAIMS(frames).rows] == ["holds", "contradicted in part"]
    assert [row[-1].value for row in TRIALS(frames).rows] == ["yes", "no", "void", "open"]
    assert [row[1].value for row in VERDICTS(frames).rows] == [s.outcome for s in said]


def test_options_replace_defaults_where_given():
    default = Nuts(chains=2, warmup=10, draws=20, max_tree_depth=8)
    assert Options().sampler(default) == default
    changed = Options(chains=3, warmup=11, draws=21).sampler(default)
    assert changed == Nuts(chains=3, warmup=11, draws=21, max_tree_depth=8)
    with pytest.raises(ValueError, match="`chains` must be a whole number of at least 1; got 0"):
        Options(chains=0).sampler(default)


@each("given", [{"splits": 0}, {"splits": 2}, {"full": True}])
def test_options_that_a_study_does_not_have_are_refused(given):
    (name,) = given
    Options().refuse("toy", "splits", "full")
    Options(**given).refuse("toy", *({"splits", "full"} - {name}))
    with pytest.raises(StudyError, match=f"`--{name}` does not apply to the study toy: leave it"):
        Options(**given).refuse("toy", "splits", "full")


def test_engines_and_parametrisations_are_chosen_by_name():
    assert Options().engines("numpyro") == ("numpyro",)
    assert Options(engine="stan").engines("both") == ("stan",)
    assert Options(engine="both").engines("stan") == ("numpyro", "stan")
    with pytest.raises(ValueError, match="choose one of numpyro, stan, both"):
        Options(engine="jags")
    known = {"free": Parametrisation(), "givens": Parametrisation("givens")}
    assert Options().labels("parametrisations", known, ("free",)) == ("free",)
    twice = Options(parametrisations=("givens", "free", "givens"))
    assert twice.labels("parametrisations", known, ("free",)) == ("givens", "free")
    with pytest.raises(ValueError, match=r"choose one of free, givens\. Did you mean 'givens'"):
        Options(parametrisations=("given",)).labels("parametrisations", known, ())


def test_cell_names_its_file_and_itself():
    cell = Cell("givens+ordered", "meanfield", "stan", Nuts(), 0, split=3)
    assert cell.key == "split03.givens+ordered.meanfield.stan"
    assert cell.label == "split 3, givens+ordered, mean-field ADVI, Stan"
    assert Cell("free", "nuts", "numpyro", Nuts(), 0).key == "free.nuts.numpyro"
    cell = Cell("net", "rebasin", "numpy", None, 0, inputs=("net.nuts.stan",))
    assert cell.key == "net.rebasin.numpy"  # what it is made from is no part of its name
    assert cell.label == "net, rebasin, numpy"


def test_outcomes_without_a_posterior_say_which_there_are(tmp_path):
    cell = Cell("free", "nuts", "stan", Nuts(), 0)
    with pytest.raises(StudyError, match=r"`key` is 'a', .* there are: free\.nuts\.stan\."):
        Outcomes({cell: tmp_path}, {}).by_key("a")
    with pytest.raises(StudyError, match="there are: none"):
        Outcomes({}, {cell: "no"}).by_key(cell.key)
    other, trees = Cell("free", "hmc", "stan", Nuts(), 0), (xr.DataTree(), xr.DataTree())
    there = InMemory(dict(zip((cell, other), trees, strict=True)), {})
    assert there.find("free", "hmc") is there.by_key(other.key) is trees[1]
    assert there.find("net", "hmc") is None


@each(("room", "reads"), [(2**28, "ab"), (1, "aba")])
def test_a_posterior_is_read_again_only_where_there_is_no_room_to_hold_it(
    tmp_path, monkeypatch, room, reads
):
    read = []

    def opened(path):
        read.append(path.name)
        return xr.DataTree.from_dict({"posterior": xr.Dataset({"x": ("draw", np.zeros(3))})})

    monkeypatch.setattr("onebasin.inference.runs.posterior.open_posterior", opened)
    monkeypatch.setattr("onebasin.studies.lab.cells._HELD", room)
    cells = [Cell(name, "nuts", "stan", Nuts(), 0) for name in "ab"]
    outcomes = Outcomes({cell: tmp_path / cell.problem for cell in cells}, {})
    for cell in (*cells, cells[0]):
        tree = outcomes.tree(cell)
        assert tree.attrs == {} and list(tree["posterior"].data_vars) == ["x"]
        tree.attrs["changed"] = tree["posterior/y"] = 1  # by a caller: of no matter to the next
    assert "".join(read) == reads


def test_unknown_study_lists_what_there_is():
    with pytest.raises(ValueError, match="choose one of relu-teacher, boston"):
        find("iris")
