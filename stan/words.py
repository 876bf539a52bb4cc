"""The telling lines of what a Stan program prints: few, each once, cut to a width."""

from __future__ import annotations

SHOWN_LINES, SHOWN_WIDTH = 12, 400

_TELLING = ("Er", "Ex", "Initialization", "Rejecting", "Posterior is improper")


def last_words(printed: str) -> str:
    """Return the lines that say what went wrong, such as "Exception: ..."; without one, the last lines."""
    lines = [line[:SHOWN_WIDTH] for line in printed.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(_TELLING)]
    once = list(dict.fromkeys(telling or lines))
    return "\n".join(once[-SHOWN_LINES:])
