"""Compile a Stan program in a process without JAX, as the driver does."""

import json
import subprocess
import sys
from pathlib import Path

from onebasin.stan.interpreter.runtime import ProgramRefused

_PROGRAM = """
import json, sys
from pathlib import Path
from onebasin.stan.interpreter.runtime import ProgramRefused, compiled

try:
    found = {"form": compiled(sys.stdin.buffer.read().decode(), Path(sys.argv[1]))}
except ProgramRefused as error:
    found = {"refused": str(error)}
print(json.dumps(found))
"""


def compiled(text: str, folder: Path) -> str:
    """Return the compiled form of a program's text; raise the driver's error if it does not parse."""
    command = [sys.executable, "-c", _PROGRAM, str(folder)]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    found = json.loads(done.stdout)
    if "refused" in found:
        raise ProgramRefused(found["refused"])
    return found["form"]
