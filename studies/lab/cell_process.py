"""The process of one cell: `python -m onebasin.studies.lab.cell_process FOLDER`, started by `cell_worker`.

The folder holds the order and what became of the cell's inputs; whatever becomes of the cell is an answer on stdout.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onebasin.base.processes.command import DONE, run_as_process


def main() -> int:
    """Carry out the order."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(what: dict[str, Any]) -> None:
        from .cell_worker import SEPARATOR

        print(f"{SEPARATOR}{json.dumps(what)}", file=answers, flush=True)

    try:
        answer(_carry_out(Path(sys.argv[1]), answer))
    except KeyboardInterrupt:
        answer({"broken": "its process was told to stop", "trace": ""})
    return DONE


class _HandingOn(logging.Handler):
    """Hands on notices, to be said, and records, to be written to the run's log."""

    def __init__(self, answer: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(logging.INFO)
        self._answer = answer

    def emit(self, record: logging.LogRecord) -> None:
        word = "says" if record.levelno >= logging.WARNING else "records"
        self._answer({word: record.getMessage()})


def _carry_out(folder: Path, answer: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    from onebasin.base.notices import LOGGER
    from onebasin.base.processes.libraries import prepare_jax, quieten_stan

    from .orders import carry_out

    prepare_jax()
    quieten_stan()
    LOGGER.addHandler(_HandingOn(answer))
    LOGGER.setLevel(logging.INFO)
    inputs = json.loads((folder / "inputs.json").read_text())
    return carry_out((folder / "order").read_bytes(), inputs, lambda line: answer({"says": line}))


if __name__ == "__main__":
    sys.exit(run_as_process(main))
