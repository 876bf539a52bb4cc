"""The docstrings of the reference are whole: parameters with types, results, errors, sources."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

from onebasin.inference.infer import FUNCTIONS

from .docstrings import PUBLIC, directives, documented

ARRAYS = re.compile(r"\b(array|arrays|DataArray)\b")
SHAPE = re.compile(r"\([^()]*\)|\(\*")
FOREIGN = {
    *("DataTree", "DataFrame", "DataArray", "Path", "Float", "Picture", "None", "CmdStanModel", "Callable"),
    "ELPDData",
}  # fmt: skip
FORMULAS = {
    "nuts", "hmc", "advi", "laplace", "pathfinder", "optimize", "symmetrised_vi", "align", "diagnose", "compare",
    "networks.transpositions", "check_symmetry", "find_symmetry", "sample_modes", "find_modes",
    "approximations.mixture_gap", "approximations.elbo", "approximations.fit_gaussian", "approximations.distil",
    "networks.ensemble", "networks.score_predictions", "networks.barriers", "networks.Network",
    "networks.Parametrisation",
}  # fmt: skip
WITHOUT_ERRORS = {"networks.Categorical", "truth.references"}
"""Nothing of theirs can be refused."""
EVERYTHING = documented()
CALLABLES = {
    name: value
    for name, value in EVERYTHING.items()
    if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception))
}


_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def sections(text: str | None) -> dict[str, str]:
    """Return every section's body by its title; the text before the first section has an empty title."""
    parts = _TITLE.split(inspect.cleandoc(text or ""))
    return {"": parts[0].strip()} | {
        title: body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def entries(text: str | None, title: str) -> dict[str, str]:
    """Return a section's entries by their names; an entry with several names is listed under each."""
    body = sections(text).get(title, "")
    out = {}
    for entry in re.split(r"\n(?=\S)", body) if body else []:
        head = entry.partition("\n")[0].partition(" : ")[0]
        for name in head.split(", "):
            out[name] = entry.rstrip()
    return out


def fields_of(value: Any) -> list[str]:
    if inspect.isclass(value) and dataclasses.is_dataclass(value):
        return [f.name for f in dataclasses.fields(value) if not f.name.startswith("_")]
    if getattr(value, "_is_protocol", False):  # nobody calls it; it promises properties
        return [name for name, member in vars(value).items() if isinstance(member, property)]
    names = inspect.signature(value).parameters
    return [name for name in names if name not in ("self", "cls")]


def documented_fields(cls: type) -> dict[str, str]:
    """Return the entries of a class's fields: a method's stand at its function, which has more arguments."""
    if cls in FUNCTIONS:
        found = entries(FUNCTIONS[cls].__doc__, "Parameters")
        return {name: entry for name, entry in found.items() if name in fields_of(cls)}
    return entries(cls.__doc__, "Parameters")


def is_property(name: str) -> bool:
    owner, _, member = name.rpartition(".")
    value = vars(EVERYTHING[owner]).get(member) if owner in EVERYTHING else None
    return value is not None and not inspect.isfunction(value) and not hasattr(value, "__func__")


def faults_of_parameters(name: str, value: Any) -> Iterator[str]:
    """Name the parameters and fields that are not documented with a type and a meaning, or do not exist."""
    found = entries(value.__doc__, "Parameters")
    if inspect.isclass(value) and name not in PUBLIC:  # users do not make it
        found |= entries(value.__doc__, "Attributes")
    if inspect.isclass(value) and dataclasses.is_dataclass(value):
        found = documented_fields(value) | found
    found = {key.lstrip("*"): entry for key, entry in found.items()}
    yield from (f"`{key}` is documented nowhere" for key in fields_of(value) if key not in found)
    yield from (f"`{key}` is documented, but not there" for key in found.keys() - fields_of(value))
    for key, entry in found.items():
        head, _, meaning = entry.partition("\n")
        if " : " not in head:
            yield f"`{key}` has no type"
        if not meaning.strip().endswith((".", "`", ")")):
            yield f"`{key}` has no meaning that ends"
        if ARRAYS.search(head.partition(" : ")[2]) and not SHAPE.search(entry):
            yield f"`{key}` is an array of no known shape"


def faults_of_result(name: str, value: Any) -> Iterator[str]:
    """Say whether a function's result is documented, with the shape of arrays."""
    annotation = inspect.signature(value).return_annotation
    if annotation in (None, "None", inspect.Signature.empty):
        return
    parts = sections(value.__doc__)
    # Of a method without arguments its one line says it.
    if name not in PUBLIC and not fields_of(value):
        if not parts[""]:
            yield "no summary"
    elif not parts.get("Returns"):
        yield "no section Returns"
    elif ARRAYS.search(parts["Returns"].partition("\n")[0]) and not SHAPE.search(parts["Returns"]):
        yield "an array of no known shape"


def faults_of_sections(name: str, value: Any) -> Iterator[str]:
    """Name the sections that a public name lacks."""
    parts = sections(value.__doc__)
    settings = hasattr(value, "__pydantic_fields__")  # whose fields say what they allow
    if name not in WITHOUT_ERRORS and not settings and not parts.get("Raises"):
        yield "no section Raises"
    if name in FORMULAS and not (parts.get("References") or parts.get("Notes")):
        yield "no source of its formulas"


def test_everything_is_documented_with_types_results_errors_and_sources():
    assert PUBLIC >= FORMULAS
    faults = []
    for name, value in CALLABLES.items():
        if is_property(name):
            # Napoleon takes what stands before a colon for a type.
            if ": " in sections(value.__doc__)[""].partition("\n")[0]:
                faults.append(f"{name}: a property's summary has a colon")
            continue
        found = [*faults_of_parameters(name, value)]
        if not inspect.isclass(value):
            found += faults_of_result(name, value)
        if name in PUBLIC:
            found += faults_of_sections(name, value)
        faults += [f"{name}: {fault}" for fault in found]
    faults += [
        f"{name}: no section Examples"
        for name in sorted(PUBLIC)
        if EVERYTHING[name] not in FUNCTIONS
        and not sections(EVERYTHING[name].__doc__).get("Examples")
    ]
    assert not faults, "\n".join(faults)


def test_every_public_name_is_on_one_page_of_the_reference():
    shown = [name for name, _ in directives()]
    assert set(shown) >= PUBLIC
    assert {name for name in shown if "." not in name} <= PUBLIC
    assert len(shown) == len(set(shown))


def test_classes_that_come_back_are_in_the_reference():
    ours = {shown.rpartition(".")[2] for shown, _ in directives()}
    returned = {
        name: set(re.findall(r"[A-Z]\w+", str(inspect.signature(value).return_annotation)))
        for name, value in CALLABLES.items()
        if name in PUBLIC and not inspect.isclass(value)
    }
    missing = {name: words - ours - FOREIGN for name, words in returned.items()}
    assert {name: words for name, words in missing.items() if words} == {}
