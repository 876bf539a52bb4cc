"""A Stan program with its data in this process: its log density and gradient in microseconds, at one point or many."""

from __future__ import annotations

import ctypes
import json
import logging
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from stanio import Variable, parse_header

from onebasin.models.checks import check_path
from onebasin.models.storage.leftovers import working_folder
from onebasin.models.text import shown

from .compile import compile_library
from .data import read_data
from .errors import StanDataError, StanProgramError, StanRunError
from .home.bridge import bridge_home
from .home.directory import Progress
from .interface import PRINT, Interface
from .program import StanProgram, stan_program, write_data
from .translation import in_own_names

_LOG = logging.getLogger("onebasin")


def open_library(
    program: StanProgram | str | Path,
    data: Mapping[str, Any] | str | Path | None = None,
    *,
    seed: int = 0,
    threads: bool = True,
    on_print: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> StanLibrary:
    """Open a Stan program in this process, compiled once per content.

    Parameters
    ----------
    program : StanProgram or path
        The program with its data, or its ``.stan`` file; or a library ``MODEL_model.so`` that is compiled already.
    data : mapping or path, optional
        The data block's variables, or a JSON file that holds them; of a path alone.
    seed : int
        Of random numbers in the block `transformed data`, and of generated quantities.
    threads : bool
        Whether several threads may use it at once; otherwise they take turns.
    on_print : callable, optional
        Called with what the program prints; Python's logger `onebasin` is told, at level INFO, if not given.
    progress : callable, optional
        Called with a line of text before something that takes long.

    Returns
    -------
    StanLibrary
        Ready to be evaluated.

    Raises
    ------
    StanProgramError
        If the file is not there, does not parse or compile, or is a library of another Stan version.
    StanDataError
        If the program refuses the data.
    CmdStanNotFound, HomeBuildError
        If there is no CmdStan and none can be assembled.

    Examples
    --------
    >>> from onebasin.stan.library import open_library
    >>> library = open_library("mixture.stan", "mixture.json")
    >>> value, gradient = library.log_density_gradient(np.zeros(library.dim))
    """
    if not isinstance(program, StanProgram):
        file = check_path("program", program).resolve()
        if file.suffix == ".so":
            return _open_compiled(file, data, seed, on_print, progress)
        program = _program(file, data)
    file, info = compile_library(program.path, threads=threads, progress=progress)
    with working_folder("library") as folder:
        text = write_data(program, info, folder).read_text(encoding="utf-8")
    return StanLibrary(Interface(file), program.path, text, seed=seed, on_print=on_print)


class StanLibrary:
    """A Stan program with its data in this process.

    Points are vectors of the unconstrained space; every function takes one of them, or an array whose last axis is a
    point, and evaluates them in one call. It can be used by several threads, and holds its own copy of the data.

    Parameters
    ----------
    interface : Interface
        The loaded library.
    path : Path
        The program, as it is called in messages.
    data : str
        Its data, as JSON.
    seed, on_print
        As of `open_library`.

    Attributes
    ----------
    file : Path
        The library ``MODEL_model.so``, for other tools that take one.
    handle : int
        The address of the model, which the C functions take first.
    dim : int
        Length of a point.
    unconstrained_names : tuple of str
        Names of a point's entries, as ``theta.1``.
    """

    def __init__(
        self,
        interface: Interface,
        path: Path,
        data: str,
        *,
        seed: int = 0,
        on_print: Callable[[str], None] | None = None,
    ) -> None:
        self._interface, self._path, self.seed = interface, path, seed
        self.file = interface.file
        report = on_print or _LOG.info
        self._print = PRINT(lambda text, size: report(ctypes.string_at(text, size).decode()))
        error = ctypes.c_char_p()
        handle = interface["onebasin_construct"](
            data.encode(), seed % 2**32, self._print, ctypes.byref(error)
        )
        if not handle:
            words = self._own(interface.take(error))
            raise StanDataError(f"{shown(path.name)} refuses its data:\n{words}")
        self.handle: int = handle
        # The function that prints outlives the model, which may call it to the last.
        weakref.finalize(self, _destruct, interface["bs_model_destruct"], handle, self._print)
        self.dim: int = interface["bs_param_unc_num"](handle)
        self.unconstrained_names = tuple(interface.words("bs_param_unc_names", handle))

    def __repr__(self) -> str:
        return f"<StanLibrary {shown(self._path.name)}: {self.dim} unconstrained parameters>"

    @property
    def stan_version(self) -> str:
        """The version of Stan that it was compiled with."""
        return self._interface.stan_version

    def address(self, name: str) -> int:
        """Where a function of the C interface lies, such as ``bs_log_density_gradient``."""
        return self._interface.address(name)

    def names(self, *, include_tp: bool = False, include_gq: bool = False) -> tuple[str, ...]:
        """Names of the entries that `constrain` gives, as ``theta.1``; first indices run fastest."""
        return tuple(self._interface.words("bs_param_names", self.handle, include_tp, include_gq))

    def variables(
        self, *, include_tp: bool = False, include_gq: bool = False
    ) -> dict[str, tuple[int, ...]]:
        """Parameters, and transformed ones and generated quantities if asked for: name to shape."""
        lines = self._interface["onebasin_variables"](self.handle, include_tp, include_gq)
        words = (line.split() for line in lines.decode().splitlines())  # type: ignore[attr-defined]
        return {name: tuple(map(int, lengths)) for name, *lengths in words}

    def log_density(
        self, points: ArrayLike, *, propto: bool = True, jacobian: bool = True
    ) -> np.ndarray | np.float64:
        """Evaluate the log density.

        Parameters
        ----------
        points : array, (..., dim)
            Where.
        propto : bool
            Whether terms that do not depend on the parameters are dropped.
        jacobian : bool
            Whether it is the density of the unconstrained space, with the transforms' Jacobian.

        Returns
        -------
        array, (...)
            The log densities; -inf where the program rejects a point.

        Raises
        ------
        ValueError
            If `points` is of another length.
        StanRunError
            If the program fails; the message holds its own words.
        """
        rows, lead = self._rows("points", points, self.dim)
        values = np.empty(len(rows))
        self._call("onebasin_log_densities", propto, jacobian, len(rows), _at(rows), _at(values))
        return values.reshape(lead)[()]

    def log_density_gradient(
        self, points: ArrayLike, *, propto: bool = True, jacobian: bool = True
    ) -> tuple[np.ndarray | np.float64, np.ndarray]:
        """Evaluate the log density and its gradient.

        Parameters
        ----------
        points, propto, jacobian
            As of `log_density`.

        Returns
        -------
        array, (...)
            The log densities; -inf where the program rejects a point.
        array, (..., dim)
            Their gradients; NaN there.

        Raises
        ------
        ValueError, StanRunError
            As of `log_density`.
        """
        rows, lead = self._rows("points", points, self.dim)
        values, gradients = np.empty(len(rows)), np.empty_like(rows)
        where = (len(rows), _at(rows), _at(values), _at(gradients))
        self._call("onebasin_gradients", propto, jacobian, *where)
        return values.reshape(lead)[()], gradients.reshape(*lead, self.dim)

    def log_density_hessian(
        self, point: ArrayLike, *, propto: bool = True, jacobian: bool = True
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Evaluate the log density, its gradient and its Hessian, by differences of gradients, at one point.

        Parameters
        ----------
        point : array, (dim,)
            Where.
        propto, jacobian
            As of `log_density`.

        Raises
        ------
        ValueError, StanRunError
            As of `log_density`; also where the program rejects the point or one beside it.
        """
        rows, _ = self._rows("point", np.asarray(point, dtype=float).ravel(), self.dim)
        value, gradient = ctypes.c_double(), np.empty(self.dim)
        hessian = np.empty((self.dim, self.dim))
        where = (_at(rows), ctypes.byref(value), _at(gradient), _at(hessian))
        self._call("bs_log_density_hessian", propto, jacobian, *where)
        return value.value, gradient, hessian

    def constrain(
        self,
        points: ArrayLike,
        *,
        include_tp: bool = False,
        include_gq: bool = False,
        generator: StanGenerator | None = None,
    ) -> np.ndarray:
        """Give parameters on their constrained scale, and what follows from them.

        Parameters
        ----------
        points : array, (..., dim)
            Unconstrained.
        include_tp, include_gq : bool
            Whether transformed parameters and generated quantities come after them.
        generator : StanGenerator, optional
            Of random numbers in generated quantities; a new one of the library's seed if not given.

        Returns
        -------
        array, (..., entry)
            In the order of `names`; NaN where the program rejects a point.

        Raises
        ------
        ValueError, StanRunError
            As of `log_density`.
        """
        rows, lead = self._rows("points", points, self.dim)
        count = self._interface["bs_param_num"](self.handle, include_tp, include_gq)
        out = np.empty((len(rows), count))
        source = generator or (self.generator(self.seed) if include_gq else None)
        self._call(
            *("onebasin_constrain", include_tp, include_gq, len(rows), _at(rows), _at(out)),
            source and source.handle,
        )
        return out.reshape(*lead, count)

    def unconstrain(self, values: ArrayLike) -> np.ndarray:
        """Give points of parameters on their constrained scale: the inverse of `constrain`.

        Parameters
        ----------
        values : array, (..., entry)
            In the order of `names`.

        Returns
        -------
        array, (..., dim)
            Unconstrained; NaN where a value does not satisfy its constraint.

        Raises
        ------
        ValueError, StanRunError
            As of `log_density`.
        """
        count = self._interface["bs_param_num"](self.handle, False, False)
        rows, lead = self._rows("values", values, count)
        out = np.empty((len(rows), self.dim))
        self._call("onebasin_unconstrain", len(rows), _at(rows), _at(out))
        return out.reshape(*lead, self.dim)

    def unpack(
        self, values: ArrayLike, *, include_tp: bool = False, include_gq: bool = False
    ) -> dict[str, np.ndarray]:
        """Split what `constrain` gives into variables: name to array (..., *shape)."""
        array = np.asarray(values, dtype=float)
        shapes = self.variables(include_tp=include_tp, include_gq=include_gq)
        columns = _columns(self.names(include_tp=include_tp, include_gq=include_gq))
        lead = array.shape[:-1]
        return {
            name: columns[name].extract_reshape(array).reshape(*lead, *columns[name].dimensions)
            if name in columns
            else np.empty((*lead, *shape))
            for name, shape in shapes.items()
        }

    def pack(self, variables: Mapping[str, ArrayLike]) -> np.ndarray:
        """Join parameters (..., *shape) into what `unconstrain` takes: the inverse of `unpack`."""
        parts = [
            _flat(np.asarray(variables[name]), len(column.dimensions))
            for name, column in _columns(self.names()).items()
        ]
        lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        return np.concatenate(
            [np.broadcast_to(part, (*lead, part.shape[-1])) for part in parts], axis=-1
        )

    def generator(self, seed: int, *, chain: int = 0) -> StanGenerator:
        """Make a generator of random numbers: the stream of a seed that CmdStan's chain of this number draws from."""
        return StanGenerator(self._interface, seed, chain)

    def _rows(
        self, argument: str, points: ArrayLike, length: int
    ) -> tuple[np.ndarray, tuple[int, ...]]:
        array = np.asarray(points, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != length:
            raise ValueError(
                f"`{argument}` has the shape {array.shape}; its last axis has to be of length {length} for "
                f"{shown(self._path.name)}."
            )
        lead = array.shape[:-1]
        return np.ascontiguousarray(array.reshape(math.prod(lead), length)), lead

    def _call(self, function: str, *arguments: Any) -> None:
        """Call a function of points; what it says of rejected ones is dropped, since their values say it."""
        error = ctypes.c_char_p()
        code = self._interface[function](self.handle, *arguments, ctypes.byref(error))
        words = self._interface.take(error)
        if code < 0:
            raise StanRunError(f"{shown(self._path.stem)} fails:\n{self._own(words)}")

    def _own(self, words: str) -> str:
        return in_own_names(words, self._path)


class StanGenerator:
    """A stream of random numbers for generated quantities; used by one thread at a time."""

    def __init__(self, interface: Interface, seed: int, chain: int) -> None:
        self.handle = interface["onebasin_rng_construct"](seed % 2**32, chain, None)
        weakref.finalize(self, interface["bs_rng_destruct"], self.handle)


def _program(file: Path, data: Mapping[str, Any] | str | Path | None) -> StanProgram:
    program = stan_program(file, data).stan_program
    if program is None:  # which `stan_program` always gives
        raise StanProgramError(f"`program` is {shown(str(file))}, which is no Stan program.")
    return program


def _open_compiled(
    file: Path,
    data: Mapping[str, Any] | str | Path | None,
    seed: int,
    on_print: Callable[[str], None] | None,
    progress: Progress | None,
) -> StanLibrary:
    if not file.is_file():
        raise StanProgramError(f"`program` is {shown(str(file))}, which is not an existing file.")
    source = file.with_name(f"{file.stem.removesuffix('_model')}.stan")
    if source.is_file() and source.stat().st_mtime > file.stat().st_mtime:
        raise StanProgramError(
            f"`program` is {shown(str(file))}, which was compiled before {shown(source.name)} was changed; give the "
            ".stan file, or compile it anew."
        )
    interface = Interface(file)
    ours = ".".join(map(str, bridge_home(progress=progress).version))
    if interface.stan_version != ours:
        raise StanProgramError(
            f"`program` is {shown(str(file))}, a library of Stan {interface.stan_version}, and this is Stan {ours}; "
            "give the .stan file, or compile it anew."
        )
    values = read_data(Path(data)) if isinstance(data, str | Path) else dict(data or {})
    return StanLibrary(
        interface, source, json.dumps(values, default=_listed), seed=seed, on_print=on_print
    )


def _listed(value: Any) -> Any:
    return np.asarray(value).tolist()


def _destruct(function: Callable[[int], Any], handle: int, _kept: object) -> None:
    function(handle)


def _at(array: np.ndarray) -> int:
    return array.ctypes.data


def _columns(names: Sequence[str]) -> dict[str, Variable]:
    return parse_header(",".join(names)) if names else {}


def _flat(values: np.ndarray, axes: int) -> np.ndarray:
    """A variable (..., *shape) as (..., entry), first indices fastest; a complex number is two entries."""
    lead = values.shape[: values.ndim - axes]
    turned = values.reshape(*lead, *values.shape[values.ndim - axes :])
    turned = np.moveaxis(
        turned, range(len(lead), values.ndim), range(values.ndim - 1, len(lead) - 1, -1)
    )
    entries = np.ascontiguousarray(turned.reshape(*lead, -1))
    return entries.view(np.float64) if np.iscomplexobj(entries) else entries.astype(np.float64)
