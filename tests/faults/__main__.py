"""Insert every known fault and check that tests catch it: `python -m tests.faults [--only NAME ...] [--workers N]`.

An interrupted run resumes: a caught fault is not tried again until the sources, its tests or the fault change.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from functools import partial
from pathlib import Path

from .catalogue import Fault, faults
from .running import KEPT, FailsWithoutFault, record, run


def main(words: list[str] | None = None) -> int:
    """Run the command; return its exit code, 1 if a fault is missed or stale."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names or patterns of faults")
    parser.add_argument("--workers", type=int, default=1, help="faults to try at once (default 1)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the outcomes to a file")
    parser.add_argument("--again", action="store_true", help="try faults that were caught, too")
    args = parser.parse_args(words)
    chosen = _chosen(args.only)
    if not chosen:
        parser.error(f"`--only` names no fault: {' '.join(args.only)}")
    say = partial(print, flush=True)
    try:
        outcomes = run(chosen, workers=args.workers, say=say, kept=None if args.again else KEPT)
    except FailsWithoutFault as error:
        say(str(error))
        return 1
    if args.record is not None:
        record(args.record, outcomes)
    return int(any(outcome.result != "caught" for outcome in outcomes))


def _chosen(only: list[str] | None) -> list[Fault]:
    return [f for f in faults() if not only or any(fnmatch.fnmatch(f.name, o) for o in only)]


if __name__ == "__main__":
    sys.exit(main())
