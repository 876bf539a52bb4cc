"""A process that runs a Stan program by the interpreter, with CmdStan's command lines and CmdStan's files.

`python -m onebasin.stan.interpreter.driver PROGRAM.stan method=sample ...` does what the executable of CmdStan does
with the same words. So one implementation runs, watches and reads both. A program that crashes, loops or exhausts
memory ends this process and no other. Random streams are CmdStan's; draws agree up to rounding.

What it lacks: static HMC, draws that do not move, optima without the Jacobian, and several paths of Pathfinder in a
run.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from .model import Arguments, Model, RunFailed, parse, say, write_table
from .runtime import InterpreterMissing
from .source import ProgramRefused

SHARE = 0.8
"""The share of the machine's memory that a program may take."""


def bound_memory() -> None:
    """Limit this process to a share of the machine's memory, where it can be done: it fails before the machine does."""
    try:
        import resource

        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = int(SHARE * total)
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        within = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (within, hard))
    except (ImportError, OSError, ValueError):  # Windows has none; macOS may refuse
        return


def main(words: Sequence[str] = ()) -> int:
    """Run what the words say; errors are printed, and the exit code is not 0."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    bound_memory()
    program, *rest = words or sys.argv[1:]
    try:
        _run(Path(program), parse(rest))
    except OSError as error:  # in the words of our driver of Stan's services
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        say(f"Error: {f'cannot write output file: {error.strerror}' if full else error}")
        return 1
    except (InterpreterMissing, ProgramRefused, RunFailed) as error:
        say(str(error))
        return 1
    return 0


def _run(program: Path, arguments: Arguments) -> None:
    method, out = arguments.values["method"], arguments.output
    if method == "check":
        from .model import check

        out.write_text(json.dumps(check(program, arguments)), encoding="utf-8")
        return
    model = Model.of(program, arguments, constants=method == "variational")
    if method == "sample":
        from .model import nuts

        nuts(model, arguments)
        return
    algorithms = {
        "optimize": model.optimum,
        "laplace": model.laplace,
        "pathfinder": model.pathfinder,
        "variational": model.variational,
    }
    columns, rows = algorithms[method](arguments)
    write_table(out, (*columns, *model.columns), rows, arguments.get("output.sig_figs", 8))


if __name__ == "__main__":
    sys.exit(main())
