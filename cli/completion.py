"""Completions that a shell offers for a value: a command's few words; of files it lists what is there itself.

Nothing is opened for it: an answer has to come at once.
"""

from __future__ import annotations

import os

VARIABLE = "_ONEBASIN_COMPLETE"
"""Set by the shell's script where it asks for completions."""


def asked_words() -> list[str] | None:
    """The words that a shell wants completed; None where none does."""
    if VARIABLE not in os.environ:
        return None
    return (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")).split()


def methods() -> list[str]:
    """Words of `--method`."""
    from .methods import OFFERED

    return list(OFFERED)


def studies() -> list[str]:
    """Names of studies."""
    from onebasin.studies.registry import STUDIES

    return list(STUDIES)


def engines() -> list[str]:
    """Words of `--engine`."""
    return ["numpyro", "stan", "both"]
