"""A JAX program as text: the same in every process for the same computation, other for any other.

JAX's own printing leaves out the constants, rounds, and shows addresses. Here every constant is its dtype, shape and
SHA-256; variables are numbered; a nested program is the hash of its own text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from numbers import Number
from typing import Any

import jax
import numpy as np
from jax.extend import core

from onebasin.base.errors import NoFingerprint

FOREIGN = ("pure_callback", "io_callback", "ffi_call")
"""Primitives that compute outside of JAX: what they do is not in the program."""

SILENT = ("debug_callback", "debug_print")
"""Primitives that compute nothing."""

RULES = (
    "bwd",
    "fwd",
    "fwd_jaxpr_thunk",
    "jvp_jaxpr_fun",
    "jvp_jaxpr_thunk",
    "jvp_rule",
    "out_trees",
    "policy",
)
"""Parameters of primitives that hold Python functions for derivatives; once those are taken, nobody calls them."""

PLACES = ("Mesh", "AbstractMesh")
"""Objects that say where something is computed."""


def digest(program: Callable[..., Any], *like: Any) -> str:
    """Trace a function at arrays like these (nothing is compiled or computed), and hash what it does."""
    closed, results = jax.make_jaxpr(program, return_shape=True)(*like)
    text = _Text().of(closed)
    names = [str(jax.tree.structure(tree)) for tree in (like, results)]
    return hashlib.sha256("\n".join([*names, text]).encode()).hexdigest()


class _Text:
    """Texts of a program and of those nested in it; each of these is written once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}

    def of(self, program: Any) -> str:
        """The hash of a program's text."""
        if id(program) not in self._known:
            closed = isinstance(program, core.ClosedJaxpr)
            lines = self._lines(program.jaxpr, program.consts) if closed else self._lines(program)
            digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
            self._known[id(program)] = (program, digest)  # held, so that no other takes its id
        return self._known[id(program)][1]

    def _lines(self, program: Any, constants: Any = ()) -> Iterator[str]:
        names: dict[Any, str] = {}

        def name(variable: Any) -> str:
            if isinstance(variable, core.Literal):
                return f"{_array(variable.val)}:{variable.aval}"
            return names.setdefault(variable, f"v{len(names)}:{variable.aval}")

        for variable, value in zip(program.constvars, constants, strict=False):
            yield f"{name(variable)} is {_array(value)}"
        yield " ".join(map(name, program.invars))
        for step in program.eqns:
            primitive = str(step.primitive.name)
            if primitive in FOREIGN:
                raise NoFingerprint(f"it computes outside of JAX ({primitive})")
            if primitive in SILENT:
                continue
            takes, gives = (" ".join(map(name, part)) for part in (step.invars, step.outvars))
            yield f"{gives} = {primitive} {self._parameters(step.params)} {takes}"
        yield " ".join(map(name, program.outvars))

    def _parameters(self, parameters: Mapping[str, Any]) -> str:
        said = {
            key: self._value(value)
            for key, value in parameters.items()
            if not (key in RULES and callable(value))
        }
        return str(sorted(said.items()))

    def _value(self, value: Any) -> str:
        if _is_program(value):
            return self.of(value)
        if isinstance(value, Enum | type | Number | str | None):
            return repr(value)
        if isinstance(value, np.ndarray | jax.Array):
            return _array(value)
        kind = type(value).__name__
        if kind in PLACES:
            return kind
        if kind == "PRNGImpl":
            return f"{kind} {value.name}"
        if hasattr(value, "expand") and hasattr(value, "params"):  # a primitive made of others
            return f"{kind}{self._parameters(value.params)}"
        if _is_program(getattr(value, "jaxpr", None)):
            return self.of(value.jaxpr)
        if isinstance(value, Mapping):
            return f"{kind}{sorted((repr(k), self._value(v)) for k, v in value.items())}"
        if isinstance(value, set | frozenset):
            return f"{kind}{sorted(map(self._value, value))}"
        if isinstance(value, tuple | list):
            return f"{kind}{[self._value(entry) for entry in value]}"
        if is_dataclass(value):
            said = [
                (field.name, self._value(getattr(value, field.name))) for field in fields(value)
            ]
            return f"{kind}{said}"
        text = repr(value)
        if callable(value) or " at 0x" in text:
            raise NoFingerprint(f"it holds the Python object {kind}")
        return text


def _is_program(value: Any) -> bool:
    return isinstance(value, core.ClosedJaxpr | core.Jaxpr)


def _array(value: Any) -> str:
    """An array's dtype, shape and hash."""
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return f"{jax.random.key_impl(value)} {_array(jax.random.key_data(value))}"
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise NoFingerprint(f"it holds the Python object {type(value).__name__}")
    content = hashlib.sha256(np.ascontiguousarray(array).view(np.uint8)).hexdigest()
    return f"{array.dtype.name}{array.shape} {content}"
