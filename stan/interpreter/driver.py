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
from collections.abc import Iterable, Sequence
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
        _run(Path(program), parse(rest))
    except (InterpreterMissing, ProgramRefused, RunFailed, OSError) as error:
        say(str(error))
        return 1
    return 0


def _run(program: Path, arguments: Arguments) -> None:
    method, out = arguments.method, arguments.output
    if method == "check":
        from .check import check

        out.write_text(json.dumps(check(program, arguments)), encoding="utf-8")
        return
    model = Model.of(program, arguments, constants=method == "variational")
    if method == "sample":
        from .sampling import fixed, nuts

        run = fixed if arguments.text("algorithm", "hmc") == "fixed_param" else nuts
        run(model, arguments)
    elif method == "optimize":
        point, level, met = model.optimum(arguments)
        _write(out, ("lp__", *model.columns), [(level, *model.values(point))], arguments.digits)
        say("Convergence detected" if met else "The search ended before it met its criterion")
    elif method == "laplace":
        mode = model.unconstrained(Path(arguments.text("mode")).read_text(encoding="utf-8"))
        columns = ("log_p__", "log_q__", *model.columns)
        _write(out, columns, model.laplace(mode, arguments), arguments.digits)
    elif method == "pathfinder":
        columns = ("lp_approx__", "lp__", "path__", *model.columns)
        _write(out, columns, model.pathfinder(arguments), arguments.digits)
    else:
        rows, trace = model.variational(arguments)
        _write(out, ("lp__", "log_p__", "log_g__", *model.columns), rows, arguments.digits)
        if arguments.diagnostics is not None:
            _write(arguments.diagnostics, ("iter", "time_in_seconds", "ELBO"), trace, 18)


def _write(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[float]], digits: int
) -> None:
    with RowFile(path, columns, digits) as table:
        for row in rows:
            table.row(row)


if __name__ == "__main__":
    sys.exit(main())
