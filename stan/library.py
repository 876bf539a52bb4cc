"""Open a Stan program with its data in this process, and evaluate its functions at one point or many."""

from __future__ import annotations

import ctypes
import logging
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from stanio import Variable, parse_header

from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentError, StanDataError, StanRunError
from onebasin.base.files.writing import working_folder
from onebasin.base.processes.children import ending, run_guarded
from onebasin.base.text import shown
from onebasin.models.target import Target

from .choice import driver
from .compile import compile_library, in_own_names
from .interfaces import (
    FUNCTIONS,
    PRINT,
    Entry,
    Interface,
    Interpreted,
    StanGenerator,
    load_calls,
    split,
)
from .program import StanProgram, definition, stan_program
from .run import write_data

_LOG = logging.getLogger("onebasin.printed")


class StanLibrary:
    """A Stan program with its data in this process.

    Points are vectors in the unconstrained space. Every function takes one point, or an array whose last axis is a
    point, and evaluates all points in one call. Several threads can use a library. It has its own copy of the data.
    Every function raises `ValueError` for a point of the wrong length, and `StanRunError` with the program's message if
    the program fails.

    Parameters
    ----------
    interface : Interface or Interpreted
        The loaded library.
    path : Path
        The program, for messages.
    data : str
        Its data, as JSON.
    seed : int
        Seed of random numbers in the block `transformed data` and in generated quantities.
    on_print : callable, optional
        Called with the text that the program prints; by default it goes to Python's logger `onebasin`.
    """

    def __init__(
        self,
        interface: Interface | Interpreted,
        path: Path,
        data: str,
        *,
        seed: int = 0,
        on_print: Callable[[str], None] | None = None,
    ) -> None:
        self._interface, self._path, self.seed = interface, path, seed
        report = on_print or _LOG.info
        self._print = PRINT(
            lambda text, size: report(ctypes.string_at(text, size).decode(errors="replace"))
        )
        try:
            handle = interface.construct(data, seed % 2**32, self._print)
        except StanDataError as error:
            own = in_own_names(str(error), path)
            raise StanDataError(f"{shown(path.name)} rejects its data:\n{own}") from None
        self._handle, self._dim = handle, interface.library.bs_param_unc_num(handle)
        # The model may call the function that prints until it is freed. At the end of the process nothing is freed,
        # since other threads may still be at work.
        destruct = weakref.finalize(self, lambda _kept: interface.destruct(handle), self._print)
        destruct.atexit = False
        self._native = load_calls()
        self._entries: dict[tuple[str, bool, bool], Entry] = {}

    def __repr__(self) -> str:
        return f"<StanLibrary {shown(self._path.name)}: {self.dim} unconstrained parameters>"

    @property
    def file(self) -> Path:
        """The library ``MODEL_model.so``, for BridgeStan and other tools."""
        return self._interface.file

    @property
    def dim(self) -> int:
        """Length of a point."""
        return self._dim

    @property
    def unconstrained_names(self) -> tuple[str, ...]:
        """Names of a point's entries, such as ``theta.1``.

        For an array of vectors or matrices, Stan orders the names with the first index fastest, but a point contains
        one vector after the other.
        """
        return split(self._interface.library.bs_param_unc_names(self._handle))

    @property
    def stan_version(self) -> str:
        """The version of Stan, or of the interpreter."""
        return self._interface.stan_version

    def names(self, *, include_tp: bool = False, include_gq: bool = False) -> tuple[str, ...]:
        """Return the names of the entries that `constrain` returns, such as ``theta.1``; first indices vary fastest.

        Parameters
        ----------
        include_tp, include_gq : bool
            Whether to append transformed parameters and generated quantities.

        Returns
        -------
        tuple of str
            A name for each entry.
        """
        return self._interface.names(self._handle, include_tp, include_gq)

    def variables(
        self, *, include_tp: bool = False, include_gq: bool = False
    ) -> dict[str, tuple[int, ...]]:
        """List variables with their shapes.

        Parameters
        ----------
        include_tp, include_gq : bool
            Same as in `names`.

        Returns
        -------
        dict
            Name to shape.
        """
        return self._interface.variables(self._handle, include_tp, include_gq)

    def log_density(
        self, points: ArrayLike, *, propto: bool = True, jacobian: bool = True
    ) -> np.ndarray | np.float64:
        """Evaluate the log density.

        Parameters
        ----------
        points : array, (..., dim)
            Unconstrained.
        propto : bool
            Whether to drop terms that do not depend on the parameters.
        jacobian : bool
            Whether to add the log Jacobian of the transforms, which gives the density on the unconstrained space.

        Returns
        -------
        array, (...)
            The log densities; -inf where the program rejects a point.
        """
        rows, lead = self._rows("points", points, self.dim)
        values = np.empty(len(rows))
        entry = self.entry("density", propto, jacobian)
        self._call("densities", entry, len(rows), rows, values)
        return values.reshape(lead)[()]

    def log_density_gradient(
        self, points: ArrayLike, *, propto: bool = True, jacobian: bool = True
    ) -> tuple[np.ndarray | np.float64, np.ndarray]:
        """Evaluate the log density and its gradient.

        Parameters
        ----------
        points : array, (..., dim)
            Unconstrained.
        propto, jacobian : bool
            Same as in `log_density`.

        Returns
        -------
        array, (...)
            The log densities; -inf where the program rejects a point.
        array, (..., dim)
            Their gradients; NaN where the program rejects a point.
        """
        rows, lead = self._rows("points", points, self.dim)
        values, gradients = np.empty(len(rows)), np.empty_like(rows)
        entry = self.entry("density", propto, jacobian)
        self._call("gradients", entry, len(rows), rows, values, gradients)
        return values.reshape(lead)[()], gradients.reshape(*lead, self.dim)

    def constrain(
        self,
        points: ArrayLike,
        *,
        include_tp: bool = False,
        include_gq: bool = False,
        generator: StanGenerator | None = None,
    ) -> np.ndarray:
        """Compute parameters on their constrained scale, and the quantities derived from them.

        Parameters
        ----------
        points : array, (..., dim)
            Unconstrained.
        include_tp, include_gq : bool
            Whether to append transformed parameters and generated quantities.
        generator : StanGenerator, optional
            Generator of random numbers for generated quantities; by default a new one with the library's seed.

        Returns
        -------
        array, (..., entry)
            Values in the order of `names`; NaN if the program rejects a point.
        """
        rows, lead = self._rows("points", points, self.dim)
        entry = self.entry("values", include_tp, include_gq)
        out = np.empty((len(rows), entry.values))
        source = generator or (self.generator(self.seed) if include_gq else None)
        random = source and source.handle
        self._call("constrain", entry, len(rows), rows, out, random)
        return out.reshape(*lead, entry.values)

    def unconstrain(self, values: ArrayLike) -> np.ndarray:
        """Compute points from parameters on their constrained scale: the inverse of `constrain`.

        Parameters
        ----------
        values : array, (..., entry)
            In the order of `names`.

        Returns
        -------
        array, (..., dim)
            Unconstrained points; NaN if a value violates its constraint.
        """
        entry = self.entry("values")
        rows, lead = self._rows("values", values, entry.values)
        out = np.empty((len(rows), self.dim))
        self._call("unconstrain", entry, len(rows), rows, out)
        return out.reshape(*lead, self.dim)

    def unpack(
        self, values: ArrayLike, *, include_tp: bool = False, include_gq: bool = False
    ) -> dict[str, np.ndarray]:
        """Split the result of `constrain` into variables.

        Parameters
        ----------
        values : array, (..., entry)
            In the order of `names`.
        include_tp, include_gq : bool
            Same as in `names`.

        Returns
        -------
        dict
            Name to array (..., shape).
        """
        flags = {"include_tp": include_tp, "include_gq": include_gq}
        rows, columns = np.asarray(values, dtype=float), _columns(self.names(**flags))
        lead = rows.shape[:-1]
        rows = rows.reshape(math.prod(lead), rows.shape[-1])
        return {
            name: columns[name].extract_reshape(rows).reshape((*lead, *columns[name].dimensions))
            if name in columns
            else np.empty((*lead, *shape))  # An empty array has no entries to name.
            for name, shape in self.variables(**flags).items()
        }

    def pack(self, variables: Mapping[str, ArrayLike]) -> np.ndarray:
        """Join parameters into the argument of `unconstrain`: the inverse of `unpack`.

        Parameters
        ----------
        variables : mapping
            Name of each parameter to its array (..., shape).

        Returns
        -------
        array, (..., entry)
            In the order of `names`.
        """
        parts = []
        for name, column in _columns(self.names()).items():
            values = np.asarray(variables[name])
            own = values.ndim - len(column.dimensions)
            # The first index varies fastest; a complex number takes two entries.
            backwards = (*range(own), *range(values.ndim - 1, own - 1, -1))
            flat = np.ascontiguousarray(
                values.transpose(backwards).reshape(*values.shape[:own], -1)
            )
            complex_ = np.iscomplexobj(flat)
            parts.append(flat.view(np.float64) if complex_ else flat.astype(np.float64))
        lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        rows = [np.broadcast_to(part, (*lead, part.shape[-1])) for part in parts]
        return np.concatenate(rows, axis=-1) if rows else np.empty(0)

    def generator(self, seed: int, *, chain: int = 0) -> StanGenerator:
        """Make a generator of random numbers for generated quantities.

        Parameters
        ----------
        seed : int
            Seed of the stream.
        chain : int
            Number of a chain, for the random stream of CmdStan's chain with this number.

        Returns
        -------
        StanGenerator
            Used by one thread at a time.
        """
        return StanGenerator(self._interface, seed, chain)

    def _rows(
        self, argument: str, points: ArrayLike, length: int
    ) -> tuple[np.ndarray, tuple[int, ...]]:
        array = np.asarray(points, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != length:
            raise ArgumentError(
                f"The last axis of `{argument}` must have length {length} for {shown(self._path.name)}; got shape "
                f"{array.shape}."
            )
        lead = array.shape[:-1]
        return np.ascontiguousarray(array.reshape(math.prod(lead), length)), lead

    def entry(
        self, kind: Literal["density", "values"], first: bool = False, second: bool = False
    ) -> Entry:
        """Return the entry for compiled code that evaluates the log density, or calls `constrain` and `unconstrain`.

        Parameters
        ----------
        kind : {"density", "values"}
            Whether the entry is for the log density or for constrained values.
        first, second : bool
            `propto` and `jacobian` of `log_density`, or `include_tp` and `include_gq` of `names`.

        Returns
        -------
        Entry
            Valid as long as the library exists.
        """
        key, interface = (kind, first, second), self._interface
        if key not in self._entries:
            if kind == "density":
                model, minus, *flags = interface.density_handles(self._handle, first, second)
                flags, count = [*flags, False, False], 0
            else:
                model, minus, flags = self._handle, None, [False, False, first, second]
                count = interface.library.bs_param_num(self._handle, first, second)
            rest = (*flags, interface.lenient, *map(interface.address, FUNCTIONS))
            self._entries[key] = Entry(model, minus, self.dim, count, *rest)
        return self._entries[key]

    def _call(self, name: str, entry: Entry, *arguments: Any) -> None:
        """Call a function of `calls.c`; rejected points show in the values, and failures raise an error."""
        error = ctypes.c_char_p()
        function = getattr(self._native, f"onebasin_{name}")
        passed = (a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments)
        code = function(ctypes.byref(entry), *passed, ctypes.byref(error))
        words = in_own_names(self._interface.take(error), self._path)
        if code < 0:
            raise StanRunError(f"{shown(self._path.stem)} fails:\n{words}")


def _columns(names: Sequence[str]) -> dict[str, Variable]:
    return parse_header(",".join(names)) if names else {}


@checks_arguments
def open_library(
    program: StanProgram | Target | str | Path,
    data: Mapping[str, Any] | str | Path | None = None,
    *,
    engine: str | None = None,
    seed: int = 0,
    threads: bool = False,
    on_print: Callable[[str], None] | None = None,
    progress: Callable[[str], None] | None = None,
) -> StanLibrary:
    """Open a Stan program in this process, in the interpreter if it accepts the program, otherwise compiled.

    Parameters
    ----------
    program : Target, StanProgram, path or str
        A target with a Stan program, a program with its data, a ``.stan`` file, or the text of a program.
    data : mapping or path, optional
        The variables of the data block, or a JSON file with them; only if `program` is a file or a text.
    engine : {"stanli", "cmdstan"}, optional
        The interpreter, or a library compiled with CmdStan; by default the interpreter if it accepts the program.
    seed : int
        Seed of random numbers in the block `transformed data` and in generated quantities.
    threads : bool
        Whether several threads can compute at once in a compiled library, which needs a separate compilation; otherwise
        they take turns. In the interpreter, threads always compute at once.
    on_print : callable, optional
        Called with the text that the program prints; by default it goes to Python's logger `onebasin`, at level INFO.
    progress : callable, optional
        Called with a line of text before a long computation.

    Returns
    -------
    StanLibrary
        Ready to be evaluated.

    Raises
    ------
    StanProgramError
        If the file does not exist, does not parse or does not compile.
    StanDataError
        If the program rejects the data.
    CmdStanNotFound, HomeBuildError
        If there is no CmdStan and none can be assembled.

    Examples
    --------
    >>> library = ob.stan.open_library("mixture.stan", "mixture.json")
    >>> values, gradients = library.log_density_gradient(np.zeros((100, library.dim)))
    >>> values.shape, gradients.shape == (100, library.dim)
    ((100,), True)
    """
    if isinstance(program, Target):
        program = definition(program)
    if not isinstance(program, StanProgram):
        program = definition(stan_program(program, data))
    choice = program.chosen(engine)
    interface: Interface | Interpreted
    if choice.accepted is not None:
        interface, info = Interpreted(choice.accepted), choice.accepted.info
    else:
        if choice.reason and program.choice is None and progress is not None:
            progress(choice.reason.removesuffix("."))
        compiled, info = compile_library(program.path, threads=threads, progress=progress)
        interface = Interface(compiled)  # Load it now: the file may be removed from the cache.
    with working_folder("library") as folder:
        file = write_data(program, info, folder)
        text = file.read_text(encoding="utf-8")
        if choice.accepted is None:
            # Try the library in a separate process, since the program may crash.
            words = ("data", f"file={file}", "random", f"seed={seed % 2**32}", "method=try")
            done = run_guarded([*driver(interface.file), *words], folder=folder)
            if done.code < 0:
                raise StanRunError(
                    f"The program {shown(program.path.stem)} {ending(done.code)} while onebasin evaluated the log "
                    "density in a separate process. Check the program's functions and loops."
                )
    return StanLibrary(interface, program.path, text, seed=seed, on_print=on_print)
