"""Values as JSON can say them, and variables from a JSON file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .errors import nearby
from .text import escape_acting


def json_safe(value: Any) -> Any:
    """Return nested plain types in which every number that is not finite is None."""
    if isinstance(value, dict):
        return {str(key): json_safe(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def parse_json(text: str, *, once: bool = False) -> Any:
    """Read JSON; with `once` an object may give a name once only, otherwise the last value counts, as Python has it.

    It is a `JSONDecodeError` if it is none, or nothing that is read here: lists within lists a thousandfold, numbers of
    thousands of digits; and a `KeyError` if a name is given twice and must not be.
    """

    def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for name, value in pairs:
            if name in named:
                raise KeyError(name)
            named[name] = value
        return named

    try:
        return json.loads(text, object_pairs_hook=named_once if once else None)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", text[:1], 0) from None
    except ValueError:
        raise json.JSONDecodeError("a number with too many digits", text[:1], 0) from None


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Write a value as JSON for people to read too: numbers that are not finite become null.

    Letters of all languages stay; characters that a terminal would obey are escaped. Without `indent` it is one line.
    """
    text = json.dumps(json_safe(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return escape_acting(text, lambda character: json.dumps(character)[1:-1])


def read_json_file(path: Path, *, error: type[Exception], argument: str = "data") -> dict[str, Any]:
    """Read a JSON file of variables: one object, each variable once; else raise `error`, which names the argument."""
    if path.is_dir():
        raise error(f"`{argument}` is {path}, which is a folder; name a JSON file.")
    try:
        values = parse_json(path.read_text(encoding="utf-8-sig"), once=True)
    except FileNotFoundError:
        raise error(f"`{argument}` is {path}, which does not exist.{nearby(path)}") from None
    except OSError as reason:
        raise error(f"`{argument}` is {path}, which cannot be read: {reason.strerror}.") from reason
    except json.JSONDecodeError as reason:
        remedy = ' Write {"N": 2, "y": [0.5, 1.5]}, an entry for each variable.' * (
            path.suffix == ".csv"
        )
        raise error(f"`{argument}` is {path}, which is not JSON: {reason}.{remedy}") from reason
    except UnicodeDecodeError as reason:
        raise error(
            f"`{argument}` is {path}, which is not JSON: it is no text in UTF-8."
        ) from reason
    except KeyError as reason:
        raise error(
            f"`{argument}` is {path}, which gives {reason.args[0]} twice; give every variable once."
        ) from None
    if not isinstance(values, dict):
        raise error(f"`{argument}` is {path}, which holds no JSON object of variables.")
    return values
