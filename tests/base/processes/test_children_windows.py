"""Programs as they are started where there are no process groups; Windows itself is not at hand."""

import sys
import threading

from onebasin.base.processes import children


def test_a_program_without_a_guard_runs_and_ends(tmp_path):
    script = "print('one', flush=True); print('two')"
    with children._started_alone([sys.executable, "-c", script], tmp_path, None) as process:
        pipe = process.stdout.fileno()
        pieces = list(children._pieces(pipe, threading.Event()))
        assert process.wait() == 0
    assert b"".join(pieces).split() == [b"one", b"two"]
