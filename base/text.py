r"""Show text from files without letting the terminal act on it.

Names of variables, attributes, columns and files, and the output of programs, may contain characters that a terminal
acts on: escape sequences that recolour or link, carriage returns, marks that reverse the direction of writing. They are
written as in a Python string, such as ``\x1b``.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from .errors import ArgumentError, nearby

Flag = Literal["", "good", "warn", "bad"]
"""Good news, a warning, bad news, or none of these."""
MARKS: Mapping[str, str] = {"": "", "good": "✓", "warn": "!", "bad": "✗"}
"""The sign of each flag."""
_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of characters that a terminal acts on: controls, formats, surrogates, separators of lines."""
_JOINERS = "\u200c\u200d"
"""Format characters that words of some scripts need."""


def dotted(named: Any) -> Any:
    """Convert a name, a tuple of names, or the keys of a mapping to the names that files store.

    Slashes and indices inside a name become dots: `net/layers[0].weight` becomes `net.layers.0.weight`.
    """
    if isinstance(named, str):
        return _PLACE.sub(r".\1", named).replace("/", ".")
    if isinstance(named, tuple | list):
        return type(named)(map(dotted, named))
    if not isinstance(named, Mapping):
        return named
    found: dict[Any, Any] = {}
    for name, value in named.items():
        if (own := dotted(name)) in found:
            raise ArgumentError(
                f"Two variables would both be stored as {own}, because onebasin replaces slashes with dots. Rename "
                "one of them."
            )
        found[own] = value
    return found


_PLACE = re.compile(r"/?\['?(\w+)'?\](?=(?:\[[^\]]*\])*\.)")


def shown(text: str, *, lines: bool = False) -> str:
    """Escape every character that a terminal acts on; keep line feeds only if `lines`."""
    return escape_acting(
        text, lambda c: c.encode("unicode_escape").decode("ascii"), kept="\n" if lines else ""
    )


def pasteable(text: str) -> str:
    """Escape a text as `shown` does, and write numbers as programs read them: 12345, -1 and 1e+15."""
    text = _GROUPS.sub(lambda found: found[0] if "[" in found[0] else "", text)
    text = re.sub(r"−(?=[\d∞])", "-", text)
    text = _POWERS.sub(lambda found: f"e{int(found[1].translate(_PLAIN)):+03d}", text)
    return shown(text)


_GROUPS = re.compile(r"\[[^\]\n]*\]|(?<=\d),(?=\d{3}(?!\d))")
"""Commas between thousands, and indices, which keep their commas."""
_POWERS = re.compile(r"(?<=\d)·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def escape_acting(text: str, escape: Callable[[str], str], *, kept: str = "\n") -> str:
    """Replace every character that a terminal acts on, except those `kept`, by the result of `escape`."""
    if text.isascii() and text.isprintable():
        return text
    kept += _JOINERS
    return "".join(
        escape(c) if unicodedata.category(c) in _ACTING and c not in kept else c for c in text
    )


def json_safe(value: Any) -> Any:
    """Return nested plain types, with None in place of non-finite numbers."""
    if isinstance(value, dict):
        return {str(key): json_safe(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def parse_json(text: str, *, once: bool = False) -> Any:
    """Read JSON; with `once`, raise `KeyError` if an object has a name twice.

    Raise `JSONDecodeError` if the text is not JSON, is nested too deeply, or has a number with thousands of digits.
    """

    def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        named = dict(pairs)
        if len(named) < len(pairs):
            names = [name for name, _ in pairs]
            raise KeyError(next(name for name in names if names.count(name) > 1))
        return named

    try:
        return json.loads(text, object_pairs_hook=named_once if once else None)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deeply", text[:1], 0) from None
    except ValueError:
        raise json.JSONDecodeError(
            "it contains a number with too many digits", text[:1], 0
        ) from None


def json_text(value: Any) -> str:
    """Write a value as readable JSON.

    Non-finite numbers become null. Letters of all languages are kept; characters that a terminal would obey are
    escaped.
    """
    text = json.dumps(json_safe(value), indent=2, ensure_ascii=False, allow_nan=False)
    return escape_acting(text, lambda character: json.dumps(character)[1:-1])


def read_json_file(path: Path, *, error: type[Exception], argument: str = "data") -> dict[str, Any]:
    """Read a JSON object that contains each variable once, or raise `error`, whose message names the argument."""
    if path.is_dir():
        raise error(f"`{argument}` is {path}, which is a folder. Give a JSON file.")
    try:
        values = parse_json(path.read_text(encoding="utf-8-sig"), once=True)
    except FileNotFoundError:
        raise error(f"`{argument}` is {path}, which does not exist.{nearby(path)}") from None
    except OSError as reason:
        raise error(f"`{argument}` is {path}, which cannot be read: {reason.strerror}.") from reason
    except json.JSONDecodeError as reason:
        remedy = ' Write an entry for each variable, such as {"N": 2, "y": [0.5, 1.5]}.' * (
            path.suffix == ".csv"
        )
        raise error(f"`{argument}` is {path}, which is not JSON: {reason}.{remedy}") from reason
    except UnicodeDecodeError as reason:
        raise error(
            f"`{argument}` is {path}, which is not UTF-8 text: save it as UTF-8."
        ) from reason
    except KeyError as reason:
        raise error(
            f"`{argument}` is {path}, which contains the name {reason.args[0]} twice. Give each variable once."
        ) from None
    if not isinstance(values, dict):
        raise error(
            f"`{argument}` is {path}, which contains no JSON object. Give a file with a mapping from names to values."
        )
    return values
