"""One way to refuse an unknown word: name it, list what there is, guess what was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def choose(argument: str, value: str, allowed: Iterable[str]) -> str:
    """Return `value` if it is among `allowed`.

    Raises
    ------
    TypeError
        If `value` is not text.
    ValueError
        If `value` is not allowed; the message lists what is and names the nearest.
    """
    names = list(allowed)
    if not isinstance(value, str):
        raise TypeError(f"`{argument}` must be text, one of {', '.join(names)}; got {value!r}.")
    if value in names:
        return value
    near = difflib.get_close_matches(value, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"`{argument}` is {value!r}; choose one of {', '.join(names)}.{hint}")
