"""The docstrings of the reference are whole: parameters with types, results, errors, sources."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import pytest

import onebasin as ob
from onebasin.base.docstrings import entries, sections

from .docstrings import directives, documented

ARRAYS = re.compile(r"\b(array|arrays|DataArray)\b")
SHAPE = re.compile(r"\([^()]*\)|\(\*")
PLAIN = {"Any", "str", "int", "float", "bool", "callable"}
FORMULAS = {
    "nuts", "hmc", "advi", "laplace", "pathfinder", "optimize", "symmetrised_vi", "mixture_gap", "ensemble", "train",
    "align", "diagnose", "elbo", "compare", "fit_gaussian", "distil", "score_predictions", "failure_rates", "barriers",
    "transpositions", "check_symmetry", "find_symmetry", "sample_modes", "find_modes", "Network", "Parametrisation",
    "predictive_uncertainty", "unit_activity",
}  # fmt: skip
EVERYTHING = documented()
CALLABLES = {
    name: value
    for name, value in EVERYTHING.items()
    if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception))
}
everything = pytest.mark.parametrize("name", CALLABLES)


def fields_of(value: Any) -> list[str]:
    if inspect.isclass(value) and dataclasses.is_dataclass(value):
        return [f.name for f in dataclasses.fields(value) if not f.name.startswith("_")]
    if getattr(
        value, "_is_protocol", False
    ):  # nobody calls it; what it promises are its properties
        return [name for name, member in vars(value).items() if isinstance(member, property)]
    names = inspect.signature(value).parameters
    return [name for name in names if name not in ("self", "cls")]


def is_made_by_users(name: str, value: Any) -> bool:
    return "." not in name and inspect.isclass(value)


def is_property(name: str) -> bool:
    owner, _, member = name.rpartition(".")
    value = vars(EVERYTHING[owner]).get(member) if owner in EVERYTHING else None
    return value is not None and not inspect.isfunction(value) and not hasattr(value, "__func__")


@everything
def test_every_parameter_and_field_is_documented_with_its_type(name):
    value = CALLABLES[name]
    if is_property(name):
        return
    title = (
        "Attributes"
        if inspect.isclass(value) and not is_made_by_users(name, value)
        else "Parameters"
    )
    found = entries(value.__doc__, title)
    if title == "Attributes":
        found = entries(value.__doc__, "Parameters") | found
    found = {key.lstrip("*"): entry for key, entry in found.items()}
    assert [key for key in fields_of(value) if key not in found] == [], "documented nowhere"
    assert set(found) <= set(fields_of(value)), "documented, but not there"
    for key, entry in found.items():
        head, _, meaning = entry.partition("\n")
        assert " : " in head, f"`{key}` has no type"
        assert meaning.strip().endswith((".", "`", ")")), f"`{key}` has no meaning that ends"
        kind = head.partition(" : ")[2]
        if ARRAYS.search(kind):
            assert SHAPE.search(entry), f"`{key}` is an array of no known shape"


@pytest.mark.parametrize("name", [name for name in CALLABLES if is_property(name)])
def test_no_property_begins_with_a_colon(name):  # Napoleon takes what stands before it for a type
    assert ": " not in sections(CALLABLES[name].__doc__)[""].partition("\n")[0]


@pytest.mark.parametrize(
    "name", [n for n, v in CALLABLES.items() if not inspect.isclass(v) and not is_property(n)]
)
def test_what_comes_back_is_documented(name):
    value = CALLABLES[name]
    annotation = inspect.signature(value).return_annotation
    if annotation in (None, "None", inspect.Signature.empty):
        return
    parts = sections(value.__doc__)
    if "." in name and not set(
        fields_of(value)
    ):  # a method without arguments: its one line says it
        assert parts[""]
        return
    assert parts.get("Returns"), "no section Returns"
    head = parts["Returns"].partition("\n")[0]
    if ARRAYS.search(head):
        assert SHAPE.search(parts["Returns"]), "an array of no known shape"


@pytest.mark.parametrize("name", [n for n, v in CALLABLES.items() if n in ob.__all__])
def test_errors_are_documented(name):
    value = CALLABLES[name]
    if name in ("Categorical", "plot_failure_rates") or name.endswith("Settings"):
        return  # nothing of theirs can be refused; a settings' field says what it allows
    assert sections(value.__doc__).get("Raises"), "no section Raises"


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_what_computes_by_a_formula_gives_its_source(name):
    parts = sections(getattr(ob, name).__doc__)
    assert parts.get("References") or parts.get("Notes")


def test_every_public_name_is_on_one_page_of_the_reference():
    shown = [name for name, _ in directives()]
    assert sorted(name for name in shown if "." not in name) == sorted(
        set(ob.__all__) - {"__version__"}
    )
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize(
    "name", sorted(n for n in CALLABLES if "." not in n and not inspect.isclass(CALLABLES[n]))
)
def test_classes_that_come_back_are_in_the_reference(name):
    returned = str(inspect.signature(CALLABLES[name]).return_annotation)
    ours = {shown.rpartition(".")[2] for shown, _ in directives()}
    for word in re.findall(r"[A-Z]\w+", returned):
        assert word in ours | {
            "DataTree",
            "DataFrame",
            "DataArray",
            "Path",
            "Float",
            "Picture",
            "None",
            "CmdStanModel",
            "Callable",
        }, word
