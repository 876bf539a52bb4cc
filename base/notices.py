"""Notices: single lines for whoever started a run, of what was met on the way and what is done about it.

They go through Python's logging, under the name "onebasin": a script shows them on stderr, your own program may
direct or silence them, and the command line writes them as it writes its progress. What is only for a run's log (a
chain begins, a chain has ended) goes the same way at the level INFO, which nobody sees who has not asked for it.
"""

from __future__ import annotations

import logging

from .text import shown

LOGGER = logging.getLogger("onebasin")


def notice(text: str) -> None:
    """Say something in a line, whatever characters are in what a file or a user named."""
    LOGGER.warning("%s", shown(text))


def record(text: str) -> None:
    """Say something to a run's log alone."""
    LOGGER.info("%s", shown(text))
