"""Data of a model, read from JSON: one object, each variable once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import nearby
from .jsonable import parse_json


def read_json_file(path: Path, *, error: type[Exception], argument: str = "data") -> dict[str, Any]:
    """Read a JSON file of variables.

    Raises
    ------
    Exception
        If it is no file, no JSON or no object, or gives a variable twice; of the type `error`.
    """
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
