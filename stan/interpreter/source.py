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
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onebasin.base.errors import OnebasinError

from .runtime import Message, load

_DROPPING = re.compile(rb"(_lp[dm]f)\x01(?=[^\x00]\x00{3})")
_READ = re.compile(rb"FnReadData\x00\x01\x00\x00\x00\x03(....)", re.DOTALL)
_NUMBER = (b"\x04\x00\x00\x00UInt", b"\x05\x00\x00\x00UReal")
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|[A-Za-z]\w*|[{}]', re.DOTALL)
_HEAD = "STANLI2"
_INCLUDE = re.compile(r"""^[ \t]*\#include[ \t]+[<"]?([^>"\s]+)[>"]?.*$""", re.MULTILINE)


class ProgramRefused(OnebasinError):
    """A program that does not parse, or that the interpreter does not take; the message is its own."""


def compiled(text: str, folder: Path) -> str:
    """Compile a program's text; includes are looked up in a folder. A text that does not parse is rejected.

    The compiler's OCaml runtime reserves signal stacks that are too small for a process that has asked the kernel for
    AMX, as JAX does at its first matrix product, and then ends that process. So it runs only in a process without
    NumPy, which is one without JAX, such as the driver's; any other process starts one.
    """
    if "\0" in text:
        raise ProgramRefused("Lexing error: the file has a zero byte, so that it is no text.")
    if "numpy" in sys.modules:
        return _compiled_by_child(text, folder)
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


_CHILD = """
import json, sys
from pathlib import Path
from onebasin.stan.interpreter.source import ProgramRefused, compiled

try:
    found = {"form": compiled(sys.stdin.buffer.read().decode(), Path(sys.argv[1]))}
except ProgramRefused as error:
    found = {"refused": str(error)}
print(json.dumps(found))
"""


def _compiled_by_child(text: str, folder: Path) -> str:
    command = [sys.executable, "-c", _CHILD, str(folder)]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise ProgramRefused(
            f"The compiler's process ended with exit code {done.returncode}.\n{words}"
        )
    found = json.loads(done.stdout)
    if "refused" in found:
        raise ProgramRefused(found["refused"])
    return found["form"]


def with_constants(form: str) -> str:
    """Return the compiled form whose densities keep all constants."""
    kept = _DROPPING.sub(lambda found: found[1] + b"\x00", _bytes(form))
    return f"{_HEAD}:{base64.b64encode(kept).decode()}"


def declared_data(form: str) -> dict[str, bool]:
    """Name the variables that a compiled program reads, of its data block, then its parameters; true of a number."""
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


def _bytes(form: str) -> bytes:
    head, _, body = form.partition(":")
    if head != _HEAD:
        raise ProgramRefused(f"stanli compiles to the form {head[:20]!r}, which is not known here.")
    return base64.b64decode(body)


def full_text(path: Path, includes: Iterable[Path]) -> str:
    """Return a program with the given includes in their places, each between two comments that name it."""
    return _expanded(path, path.parent, frozenset(p.resolve() for p in includes))


def included_files(path: Path) -> tuple[Path, ...]:
    """List the files that a program includes, each once; a line that looks like an include is taken for one."""
    found: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        text = waiting.pop().read_bytes().decode("utf-8", errors="replace")
        for match in _INCLUDE.finditer(text):
            included = path.parent / match[1]
            if included not in found and included.is_file():
                found[included] = None
                waiting.append(included)
    return tuple(found)


def _expanded(path: Path, folder: Path, includes: frozenset[Path]) -> str:
    def put(found: re.Match[str]) -> str:
        included = (folder / found[1]).resolve()
        if included not in includes:  # such a line within a comment
            return found[0]
        # a file is not included within itself: the compiler has refused that
        text = _expanded(included, folder, includes - {included}).rstrip("\n")
        return f"// {found[1]} begins\n{text}\n// {found[1]} ends"

    text = path.read_bytes().decode("utf-8", errors="replace")
    return _INCLUDE.sub(put, text)
