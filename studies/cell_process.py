"""The process of one cell: `python -m onebasin.studies.cell_process ORDER`, started by `lab.processes`."""

import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .process import DONE, run_as_process

LAST_CHARACTERS = 16_000
"""How much of the end of a traceback is handed on."""


def main() -> int:
    """Make the cell of an order; whatever becomes of it is an answer on stdout."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(**what: Any) -> None:
        from .lab.processes import SEPARATOR

        print(f"{SEPARATOR}{json.dumps(what)}", file=answers, flush=True)

    answer(**_make(Path(sys.argv[1]), answer))
    return DONE


class _HandingOn(logging.Handler):
    """Hands on notices, to be said, and records, to be written to the run's log."""

    def __init__(self, answer: Callable[..., None]) -> None:
        super().__init__(logging.INFO)
        self._answer = answer

    def emit(self, record: logging.LogRecord) -> None:
        how = "says" if record.levelno >= logging.WARNING else "records"
        self._answer(**{how: record.getMessage()})


def _make(path: Path, answer: Callable[..., None]) -> dict[str, Any]:
    from onebasin.models.errors import WriteError
    from onebasin.models.notices import LOGGER

    from .commands import console
    from .lab.making import Broken, in_words, make_cell
    from .lab.processes import read_order

    console.prepare_jax()
    console.quieten_stan()
    LOGGER.addHandler(_HandingOn(answer))
    LOGGER.setLevel(logging.INFO)
    try:
        order = read_order(path)
        made = make_cell(
            order.recipe,
            order.cell,
            order.inputs,
            progress=False,
            say=lambda text: answer(says=text),
        )
    except Broken as error:
        return {"broken": str(error), "trace": error.trace[-LAST_CHARACTERS:]}
    except WriteError as error:
        return {"unwritten": str(error), "path": str(error.path)}
    except KeyboardInterrupt:
        return {"stopped": True}
    except Exception as error:  # of what comes before the making
        return {"refused": in_words(error)}
    return {"made": {name: value for name, value in asdict(made).items() if name != "cell"}}


if __name__ == "__main__":
    sys.exit(run_as_process(main))
