"""The C interface of a program's library: BridgeStan's functions (`bs_`) and our own of many points (`onebasin_`).

What they do and take is said in `bridge/interface.cpp`. Arrays are passed as addresses, which the callers keep alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path

from onebasin.base.text import shown

from .home.errors import StanProgramError

PRINT = ctypes.CFUNCTYPE(None, POINTER(c_char), c_int)
"""The type of what takes the text that a program prints."""

_ERROR = POINTER(c_char_p)
_FUNCTIONS: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "bs_free_error_msg": (None, (c_char_p,)),
    "bs_model_destruct": (None, (c_void_p,)),
    "bs_model_info": (c_char_p, (c_void_p,)),
    "bs_param_names": (c_char_p, (c_void_p, c_bool, c_bool)),
    "bs_param_unc_names": (c_char_p, (c_void_p,)),
    "bs_param_num": (c_int, (c_void_p, c_bool, c_bool)),
    "bs_param_unc_num": (c_int, (c_void_p,)),
    "bs_rng_destruct": (None, (c_void_p,)),
    "bs_log_density_hessian": (
        c_int,
        (c_void_p, c_bool, c_bool, c_void_p, POINTER(c_double), c_void_p, c_void_p, _ERROR),
    ),
    "onebasin_stan_version": (c_char_p, ()),
    "onebasin_construct": (c_void_p, (c_char_p, c_uint, PRINT, _ERROR)),
    "onebasin_variables": (c_char_p, (c_void_p, c_bool, c_bool)),
    "onebasin_rng_construct": (c_void_p, (c_uint, c_uint, _ERROR)),
    "onebasin_log_densities": (
        c_int,
        (c_void_p, c_bool, c_bool, c_size_t, c_void_p, c_void_p, _ERROR),
    ),
    "onebasin_gradients": (
        c_int,
        (c_void_p, c_bool, c_bool, c_size_t, c_void_p, c_void_p, c_void_p, _ERROR),
    ),
    "onebasin_constrain": (
        c_int,
        (c_void_p, c_bool, c_bool, c_size_t, c_void_p, c_void_p, c_void_p, _ERROR),
    ),
    "onebasin_unconstrain": (c_int, (c_void_p, c_size_t, c_void_p, c_void_p, _ERROR)),
}


class Interface:
    """A library, loaded, with its functions by name.

    Parameters
    ----------
    file : Path
        The library.

    Raises
    ------
    StanProgramError
        If it cannot be loaded, or is not one of ours.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self._library = ctypes.CDLL(str(file))
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(self._library, name)
                function.restype, function.argtypes = result, arguments
        except OSError as error:
            raise StanProgramError(
                f"`path` is {shown(str(file))}, which cannot be loaded as a library ({error}); compile it anew."
            ) from None
        except AttributeError:
            raise StanProgramError(
                f"`path` is {shown(str(file))}, a library that onebasin has not compiled; give the .stan file instead."
            ) from None
        self.stan_version: str = self._library.onebasin_stan_version().decode()

    def __getitem__(self, name: str) -> Callable[..., int]:
        return getattr(self._library, name)

    def address(self, name: str) -> int:
        """Where a function lies, for compiled code that calls it itself."""
        return ctypes.cast(getattr(self._library, name), c_void_p).value or 0

    def words(self, name: str, *arguments: object) -> list[str]:
        """What a function returns that gives names with commas between them."""
        text = getattr(self._library, name)(*arguments).decode()
        return text.split(",") if text else []

    def take(self, error: c_char_p) -> str:
        """What a function said of its error, whose memory is given back; empty where it said nothing."""
        if not error:
            return ""
        words = (error.value or b"").decode(errors="replace").strip()
        self._library.bs_free_error_msg(error)
        return words.partition("failed with exception: ")[2] or words
