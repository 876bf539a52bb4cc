"""A compiled program's library: BridgeStan's functions and our own (`onebasin_`), from `bridge/interface.cpp`."""

from __future__ import annotations

import ctypes
from ctypes import c_bool, c_char_p, c_uint, c_void_p
from pathlib import Path

from onebasin.base.text import shown

from .home.errors import StanDataError, StanProgramError
from .opened import ERROR, PRINT, Opened


class Interface(Opened):
    """A compiled program's library, loaded.

    Parameters
    ----------
    file : Path
        The library.

    Raises
    ------
    StanProgramError
        If it cannot be loaded, or onebasin did not compile it.
    """

    functions = Opened.functions | {
        "onebasin_stan_version": (c_char_p, ()),
        "onebasin_construct": (c_void_p, (c_char_p, c_uint, PRINT, ERROR)),
        "onebasin_variables": (c_char_p, (c_void_p, c_bool, c_bool)),
        "onebasin_rng_construct": (c_void_p, (c_uint, c_uint, ERROR)),
    }

    def __init__(self, file: Path) -> None:
        try:
            super().__init__(file)
        except OSError as error:
            raise StanProgramError(
                f"`path` is {shown(str(file))}, which cannot be loaded as a library ({error}); compile it anew."
            ) from None
        except AttributeError:
            raise StanProgramError(
                f"`path` is {shown(str(file))}, a library that onebasin has not compiled; give the .stan file instead."
            ) from None
        self.stan_version: str = self._library.onebasin_stan_version().decode()
        # Libraries of earlier releases have this function, and return negative codes alone.
        self.lenient = hasattr(self._library, "onebasin_log_densities")

    def construct(self, data: str, seed: int, report: ctypes._FuncPointer) -> int:
        """Construct a model; see `Opened.construct`."""
        error = c_char_p()
        handle = self._library.onebasin_construct(data.encode(), seed, report, ctypes.byref(error))
        if not handle:
            raise StanDataError(self.take(error))
        return handle

    def variables(
        self, handle: int, include_tp: bool, include_gq: bool
    ) -> dict[str, tuple[int, ...]]:
        """Return the shape of each variable."""
        lines = self._library.onebasin_variables(handle, include_tp, include_gq).decode()
        words = (line.split() for line in lines.splitlines())
        return {name: tuple(map(int, lengths)) for name, *lengths in words}

    def rng(self, seed: int, chain: int) -> int:
        """Construct the generator that CmdStan's chain of this number draws from."""
        return self._library.onebasin_rng_construct(seed, chain, None)

    def density_handles(
        self, handle: int, propto: bool, jacobian: bool
    ) -> tuple[int, int | None, bool, bool]:
        """Return the model itself, which has all kinds of log density."""
        return handle, None, propto, jacobian
