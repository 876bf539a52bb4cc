"""Verdicts, options, cells: what all studies share."""

import pytest

from inference.settings import NutsSettings
from models import Parametrisation
from studies.errors import StudyError
from studies.registry import STUDIES, find
from studies.study import Cell, Options, Statement, Study, judge, statement_table


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        ([True, True], "reproduces"),
        ([False, False], "does not reproduce"),
        ([True, False], "unclear"),
        ([True, None], "unclear"),
        ([False, None], "unclear"),
        ([None], "unclear"),
        ([], "unclear"),
    ],
)
def test_verdict_follows_from_the_comparisons(holds, verdict):
    assert judge(holds) == verdict


def test_statements_are_tabulated_with_and_without_rules():
    said = (Statement("quote", "aspect", "1 to 2", "reproduces", "is lower"),)
    assert len(statement_table(said).columns) == 5
    assert len(statement_table(said, with_rules=False).columns) == 4
    assert statement_table(said).rows[0][3].flag == "good"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": -1}, StudyError, "`--seed` is -1"),
        ({"engine": "jags"}, ValueError, "choose one of numpyro, stan, both"),
    ],
)
def test_options_refuse_what_no_study_takes(options, error, message):
    with pytest.raises(error, match=message):
        Options(**options)


def test_options_replace_defaults_where_given():
    default = NutsSettings(chains=2, warmup=10, draws=20, max_tree_depth=8)
    assert Options().nuts(default) == default
    changed = Options(chains=3, warmup=11, draws=21).nuts(default)
    assert changed == NutsSettings(chains=3, warmup=11, draws=21, max_tree_depth=8)
    with pytest.raises(ValueError, match="`chains` must be a whole number of at least 1; got 0"):
        Options(chains=0).nuts(default)


def test_engines_and_parametrisations_are_chosen_by_name():
    assert Options().engines("numpyro") == ("numpyro",)
    assert Options(engine="stan").engines("both") == ("stan",)
    assert Options(engine="both").engines("stan") == ("numpyro", "stan")
    known = {"free": Parametrisation(), "givens": Parametrisation("givens")}
    assert Options().choose_parametrisations(known, ("free",)) == ("free",)
    twice = Options(parametrisations=("givens", "free", "givens"))
    assert twice.choose_parametrisations(known, ("free",)) == ("givens", "free")
    with pytest.raises(ValueError, match=r"choose one of free, givens\. Did you mean 'givens'"):
        Options(parametrisations=("given",)).choose_parametrisations(known, ())


def test_cell_names_its_file_and_itself():
    cell = Cell("givens+ordered", "meanfield", "stan", NutsSettings(), 0, split=3)
    assert cell.key == "split03.givens+ordered.meanfield.stan"
    assert cell.label == "split 3, givens+ordered, mean-field ADVI, Stan"
    assert Cell("free", "nuts", "numpyro", NutsSettings(), 0).key == "free.nuts.numpyro"


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_of_the_table_can_be_loaded(name):
    assert isinstance(find(name), Study)


def test_unknown_study_lists_what_there_is():
    with pytest.raises(ValueError, match="choose one of relu-teacher, boston"):
        find("iris")
