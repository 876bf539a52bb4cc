"""A Stan program with its data, held in this process: its functions at one point or at many."""

from __future__ import annotations

import ctypes
import logging
import math
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onebasin.base.text import shown

from .home.errors import StanDataError, StanRunError
from .interface import PRINT, Interface
from .packing import pack, unpack
from .translation import in_own_names

_LOG = logging.getLogger("onebasin")


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
    seed : int
        Of random numbers in the block `transformed data`, and of generated quantities.
    on_print : callable, optional
        Called with what the program prints; Python's logger `onebasin` is told if not given.
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
        report = on_print or _LOG.info
        self._print = PRINT(lambda text, size: report(ctypes.string_at(text, size).decode()))
        error = ctypes.c_char_p()
        handle = interface["onebasin_construct"](
            data.encode(), seed % 2**32, self._print, ctypes.byref(error)
        )
        if not handle:
            words = self._own(interface.take(error))
            raise StanDataError(f"{shown(path.name)} refuses its data:\n{words}")
        self._handle: int = handle
        # The function that prints outlives the model, which may call it to the last. At the end of the process nothing
        # is freed: other threads may still be at work.
        weakref.finalize(
            self, _destruct, interface["bs_model_destruct"], handle, self._print
        ).atexit = False
        self._dim: int = interface["bs_param_unc_num"](handle)

    def __repr__(self) -> str:
        return f"<StanLibrary {shown(self._path.name)}: {self.dim} unconstrained parameters>"

    @property
    def file(self) -> Path:
        """The library ``MODEL_model.so``, for other tools that take one."""
        return self._interface.file

    @property
    def handle(self) -> int:
        """The address of the model, which the C functions take first."""
        return self._handle

    @property
    def dim(self) -> int:
        """Length of a point."""
        return self._dim

    @property
    def unconstrained_names(self) -> tuple[str, ...]:
        """Names of a point's entries, as ``theta.1``.

        Stan names those of an array of vectors or of matrices as if its first index ran fastest, whereas a point holds
        one vector after the other.
        """
        return tuple(self._interface.words("bs_param_unc_names", self._handle))

    @property
    def stan_version(self) -> str:
        """The version of Stan that it was compiled with."""
        return self._interface.stan_version

    def address(self, name: str) -> int:
        """Say where a function of the C interface lies, for compiled code that calls it itself.

        Parameters
        ----------
        name : str
            Such as ``bs_log_density_gradient``.

        Returns
        -------
        int
            Its address.
        """
        return self._interface.address(name)

    def names(self, *, include_tp: bool = False, include_gq: bool = False) -> tuple[str, ...]:
        """Name the entries that `constrain` gives, as ``theta.1``; first indices run fastest.

        Parameters
        ----------
        include_tp, include_gq : bool
            Whether transformed parameters and generated quantities come after the parameters.

        Returns
        -------
        tuple of str
            A name for each entry.
        """
        return tuple(self._interface.words("bs_param_names", self.handle, include_tp, include_gq))

    def variables(
        self, *, include_tp: bool = False, include_gq: bool = False
    ) -> dict[str, tuple[int, ...]]:
        """List variables with their shapes.

        Parameters
        ----------
        include_tp, include_gq : bool
            Whether transformed parameters and generated quantities come after the parameters.

        Returns
        -------
        dict
            Name to shape.
        """
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
        points : array, (..., dim)
            Where.
        propto, jacobian : bool
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
        propto, jacobian : bool
            As of `log_density`.

        Returns
        -------
        float
            The log density.
        array, (dim,)
            Its gradient.
        array, (dim, dim)
            Its Hessian.

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
        """Split what `constrain` gives into variables.

        Parameters
        ----------
        values : array, (..., entry)
            In the order of `names`.
        include_tp, include_gq : bool
            Whether transformed parameters and generated quantities are among them.

        Returns
        -------
        dict
            Name to array (..., shape).
        """
        flags = {"include_tp": include_tp, "include_gq": include_gq}
        return unpack(np.asarray(values, dtype=float), self.names(**flags), self.variables(**flags))

    def pack(self, variables: Mapping[str, ArrayLike]) -> np.ndarray:
        """Join parameters into what `unconstrain` takes: the inverse of `unpack`.

        Parameters
        ----------
        variables : mapping
            Name of each parameter to its array (..., shape).

        Returns
        -------
        array, (..., entry)
            In the order of `names`.
        """
        return pack(variables, self.names())

    def generator(self, seed: int, *, chain: int = 0) -> StanGenerator:
        """Make a generator of random numbers for generated quantities.

        Parameters
        ----------
        seed : int
            Of its stream.
        chain : int
            With the number of a chain, the stream that CmdStan's chain of this number draws from.

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


def _destruct(function: Callable[[int], Any], handle: int, _kept: object) -> None:
    function(handle)


def _at(array: np.ndarray) -> int:
    return array.ctypes.data
