"""Stan programs in the form that the interpreter takes, and variants of them that it does not make itself.

The interpreter evaluates one density: Stan's `lp__`, without the constants that `~` drops and with the log Jacobian of
the constraints. Two variants give the others. In the compiled form, every call of a density function has a flag for
constants, and `with_constants` changes all of them. A program with an empty model block has the log Jacobian as its
density, and `emptied` makes its text.

This module needs the standard library alone.
"""

from __future__ import annotations

import base64
import ctypes
import re
from pathlib import Path
from typing import Any

from onebasin.base.errors import OnebasinError

from .runtime import Message, load

_DROPPING = re.compile(rb"(_lp[dm]f)\x01(?=[^\x00]\x00{3})")
_READ = re.compile(rb"FnReadData\x00\x01\x00\x00\x00\x03(....)", re.DOTALL)
_NUMBER = (b"\x04\x00\x00\x00UInt", b"\x05\x00\x00\x00UReal")
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|[A-Za-z]\w*|[{}]', re.DOTALL)
_HEAD = "STANLI2"


class ProgramRefused(OnebasinError):
    """A program that does not parse, or that the interpreter does not take; the message is its own."""


def compiled(text: str, folder: Path) -> str:
    """Compile a program's text; includes are looked up in a folder.

    Raises
    ------
    ProgramRefused
        If the text does not parse; the message holds the compiler's own words.
    """
    if "\0" in text:
        raise ProgramRefused("Lexing error: the file has a zero byte, so that it is no text.")
    library = load()
    message = Message()
    folders = (ctypes.c_char_p * 1)(str(folder).encode())
    result = library.stanli_stan_to_mir_with_opts(text.encode(), folders, 1, 0, *message.arguments)
    if not result:
        raise ProgramRefused(message.text.strip())
    try:
        return ctypes.string_at(result).decode()
    finally:
        library.stanli_string_free(ctypes.c_void_p(result))


def with_constants(form: str) -> str:
    """Return the compiled form whose densities keep all constants.

    Raises
    ------
    ProgramRefused
        If the form is not the one that this module reads.
    """
    return f"{_HEAD}:{base64.b64encode(_DROPPING.sub(_keeping, _bytes(form))).decode()}"


def declared_data(form: str) -> dict[str, bool]:
    """Name the variables that a compiled program reads, those of its data block, then its parameters.

    The values tell whether a variable is a single number.

    Raises
    ------
    ProgramRefused
        If the form is not the one that this module reads.
    """
    content = _bytes(form)
    names: dict[str, bool] = {}
    for found in _READ.finditer(content):
        size = int.from_bytes(found[1], "little")
        end = found.end() + size
        name = content[found.end() : end].decode(errors="replace")
        names[name] = content.startswith(_NUMBER, end)
    return names


def emptied(text: str, block: str) -> str:
    """Empty a block of a program without includes; without its model block, its density is the log Jacobian."""
    opened, closed = _inside(text, block)
    return text[:opened] + text[closed:]


def until_data(text: str) -> str:
    """Return a program without includes up to the end of its data block; empty if it has none."""
    opened, closed = _inside(text, "data")
    return text[: closed + 1] if opened < len(text) else ""


def _inside(text: str, block: str) -> tuple[int, int]:
    """Find where the content of a block begins and ends; the end of the text if there is no such block."""
    depth, awaited, opened, before = 0, False, -1, ""
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word == "{":
            depth += 1
            if awaited and depth == 1:
                opened = token.end()
        elif word == "}":
            depth -= 1
            if depth == 0 and opened >= 0:
                return opened, token.start()
        if not word.startswith(("//", "/*")):
            awaited = depth == 0 and word == block and before != "transformed"
            before = word
    return len(text), len(text)


def adds_to_target_early(text: str) -> bool:
    """Tell whether a program without includes adds to the log density before its model block, by a function `_lp`."""
    rest = emptied(emptied(text, "model"), "functions")
    return any(token[0].endswith("_lp") for token in _TOKEN.finditer(rest))


def held(form: str) -> dict[str, Any]:
    """Return the entry of a program's data that gives the program to the interpreter's BridgeStan functions."""
    build = load().stanli_build_id().decode()
    return {"__stanli": {"build_id": build, "mir": form, "name": "model"}}


def _keeping(found: re.Match[bytes]) -> bytes:
    return found[1] + b"\x00"


def _bytes(form: str) -> bytes:
    head, _, body = form.partition(":")
    if head != _HEAD:
        raise ProgramRefused(f"stanli compiles to the form {head[:20]!r}, which is not known here.")
    return base64.b64decode(body)
