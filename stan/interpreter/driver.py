"""A process that runs a Stan program by the interpreter, with CmdStan's command lines and CmdStan's files.

`python -m onebasin.stan.interpreter.driver PROGRAM.stan method=sample ...` does what the executable of CmdStan does
with the same words. So one implementation runs, watches and reads both. A program that crashes, loops or exhausts
memory ends this process and no other. Random streams are CmdStan's; draws agree up to rounding.

What it lacks: static HMC, optima without the Jacobian, and several paths of Pathfinder in one run.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .arguments import Arguments, parse
from .model import Model, RunFailed
from .process import bound_memory
from .runtime import InterpreterMissing
from .source import ProgramRefused
from .tables import RowFile, say


def main(words: Sequence[str] = ()) -> int:
    """Run what the words say; errors are printed, and the exit code is not 0."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    bound_memory()
    program, *rest = words or sys.argv[1:]
    try:
        arguments = parse(rest)
        _METHODS[arguments.method](Path(program), arguments)
    except (InterpreterMissing, ProgramRefused, RunFailed, OSError) as error:
        say(str(error))
        return 1
    return 0


def _check(program: Path, arguments: Arguments) -> None:
    from .check import check

    arguments.output.write_text(json.dumps(check(program, arguments)), encoding="utf-8")


def _sample(program: Path, arguments: Arguments) -> None:
    from .sampling import fixed, nuts

    model = Model.of(program, arguments)
    run = fixed if arguments.text("algorithm", "hmc") == "fixed_param" else nuts
    run(model, arguments)


def _optimize(program: Path, arguments: Arguments) -> None:
    model = Model.of(program, arguments)
    point, level, met = model.optimum(arguments)
    with RowFile(arguments.output, ("lp__", *model.columns), arguments.digits) as table:
        table.row((level, *model.values(point)))
    say("Convergence detected" if met else "The search ended before it met its criterion")


def _laplace(program: Path, arguments: Arguments) -> None:
    model = Model.of(program, arguments)
    mode = model.unconstrained(Path(arguments.text("mode")).read_text(encoding="utf-8"))
    rows = model.laplace(mode, arguments)
    _write(arguments, ("log_p__", "log_q__", *model.columns), rows)


def _pathfinder(program: Path, arguments: Arguments) -> None:
    model = Model.of(program, arguments)
    _write(
        arguments, ("lp_approx__", "lp__", "path__", *model.columns), model.pathfinder(arguments)
    )


def _variational(program: Path, arguments: Arguments) -> None:
    model = Model.of(program, arguments, constants=True)
    rows, trace = model.variational(arguments)
    _write(arguments, ("lp__", "log_p__", "log_g__", *model.columns), rows)
    if arguments.diagnostics is not None:
        with RowFile(arguments.diagnostics, ("iter", "time_in_seconds", "ELBO"), 18) as table:
            for iteration, seconds, elbo in trace:
                table.row((iteration, seconds, elbo))


def _write(arguments: Arguments, columns: Sequence[str], rows: Sequence[Sequence[float]]) -> None:
    with RowFile(arguments.output, columns, arguments.digits) as table:
        for row in rows:
            table.row(row)


_METHODS: dict[str, Callable[[Path, Arguments], None]] = {
    "check": _check,
    "sample": _sample,
    "optimize": _optimize,
    "laplace": _laplace,
    "pathfinder": _pathfinder,
    "variational": _variational,
}

if __name__ == "__main__":
    sys.exit(main())
