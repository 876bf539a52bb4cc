"""The interpreter's library in this process, by BridgeStan's functions."""

from __future__ import annotations

import ctypes
import json
from ctypes import c_char_p, c_uint, c_void_p
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from .acceptance import Accepted
from .home.errors import StanDataError, StanProgramError
from .interpreter.runtime import InterpreterMissing, installed_version, load, location
from .interpreter.source import held, with_constants
from .opened import ERROR, PRINT, Opened, Signatures

_BEYOND_NAMES = ("real", "imag")
_REPORTS: dict[int, ctypes._FuncPointer] = {}
"""The functions that receive printed text, of the models that are open, the latest last."""


@PRINT
def _HAND_ON(text: ctypes._Pointer[ctypes.c_char], size: int) -> None:
    """Hand text to the latest of the reports; the interpreter keeps one function for all models, which stays alive."""
    for report in [*_REPORTS.values()][-1:]:
        report(text, size)


@dataclass(frozen=True)
class _Constructed:
    """Data and seed of a model, and the models that were constructed for it."""

    data: str
    seed: int
    report: int
    others: dict[str, int] = field(default_factory=dict)


class Interpreted(Opened):
    """A program that the interpreter takes.

    The interpreter evaluates one kind of log density. Two more models give the others: one keeps the constants, and one
    has an empty model block, so that its log density is the log Jacobian. Each is constructed when first needed.
    """

    functions: ClassVar[Signatures] = Opened.functions | {
        "bs_model_construct": (c_void_p, (c_char_p, c_uint, ERROR)),
        "bs_rng_construct": (c_void_p, (c_uint, ERROR)),
        "bs_set_print_callback": (ctypes.c_int, (PRINT, ERROR)),
    }

    lenient = True

    def __init__(self, accepted: Accepted) -> None:
        try:
            load()
        except InterpreterMissing as error:
            raise StanProgramError(str(error)) from None
        file = location()
        assert file is not None, "it is loaded"
        super().__init__(file)
        self.stan_version = f"stanli {installed_version()}"
        self._program = accepted
        self._constructed: dict[int, _Constructed] = {}

    def construct(self, data: str, seed: int, report: ctypes._FuncPointer) -> int:
        """Construct a model; see `Opened.construct`. The latest `report` receives what all models print."""
        _REPORTS[id(report)] = report
        self._library.bs_set_print_callback(_HAND_ON, None)
        try:
            handle = self._new(self._program.form, data, seed)
        except StanDataError:
            del _REPORTS[id(report)]
            raise
        self._constructed[handle] = _Constructed(data, seed, id(report))
        return handle

    def destruct(self, handle: int) -> None:
        """Free a model and those that were made for it."""
        made = self._constructed.pop(handle)
        for each in (handle, *made.others.values()):
            self._library.bs_model_destruct(each)
        _REPORTS.pop(made.report, None)

    def variables(
        self, handle: int, include_tp: bool, include_gq: bool
    ) -> dict[str, tuple[int, ...]]:
        """Return the shape of each variable; those without an entry are not known."""
        shapes: dict[str, tuple[int, ...]] = {}
        for name in self.names(handle, include_tp, include_gq):
            variable, *places = name.split(".")
            numbers = tuple(int(place) for place in places if place not in _BEYOND_NAMES)
            before = shapes.get(variable, numbers)
            shapes[variable] = tuple(map(max, before, numbers))
        return shapes

    def rng(self, seed: int, chain: int) -> int:
        """Construct a generator; chains of a seed get different ones, which are not CmdStan's."""
        if chain:
            seed = int(np.random.SeedSequence([seed, chain]).generate_state(1)[0])
        return self._library.bs_rng_construct(seed, None)

    def density_handles(
        self, handle: int, propto: bool, jacobian: bool
    ) -> tuple[int, int | None, bool, bool]:
        """Return the models whose log densities give a kind of log density; see `Opened.density_handles`."""
        model = handle if propto else self._other(handle, "with constants")
        return model, None if jacobian else self._other(handle, "jacobian"), True, True

    def _other(self, handle: int, kind: Literal["with constants", "jacobian"]) -> int:
        made = self._constructed[handle]
        if kind not in made.others:
            form = self._program.jacobian
            if kind == "with constants":
                form = with_constants(self._program.form)
            made.others[kind] = self._new(form, made.data, made.seed)
        return made.others[kind]

    def _new(self, form: str, data: str, seed: int) -> int:
        """Construct a model of a form; refuse data that it does not take."""
        error = c_char_p()
        model = json.dumps({**json.loads(data), **held(form)})
        handle = self._library.bs_model_construct(model.encode(), seed, ctypes.byref(error))
        if not handle:
            raise StanDataError(self.take(error))
        return int(handle)
