"""Run the blocks of a page in order in one folder: Python in a new interpreter, commands as in a shell."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import platformdirs
import pytest

from onebasin.cli.main import main

from .blocks import Block, blocks

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "notebooks" / "programs"

# Share compiled code between processes.
ENVIRONMENT = {
    "JAX_COMPILATION_CACHE_DIR": str(platformdirs.user_cache_path("onebasin") / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "MPLBACKEND": "agg",
    "PATH": os.pathsep.join(
        [str(Path(__file__).parent / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    ),
}
OF_A_SHELL = re.compile(r"[|<>;&$`*]|^\s*\w+=")
# Commands that tests must not run on this machine.
REFUSED = re.compile(r"\b(cmdstan (build|clean)|install|git clone|make \w+|conda|rm -)\b")
NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
GROUPS = re.compile(r"(?<=\d),(?=\d{3}\b)")


class PythonProcess:
    """An interpreter that keeps the names of a page from block to block."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("python_process.py"))]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ENVIRONMENT},
        )

    def run(self, source: str, *, page: Path, line: int, folder: Path, new: bool) -> str:
        """Run a block and return its output; if it raises, fail the test with the traceback."""
        assert self.process.stdin is not None and self.process.stdout is not None
        name = str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name
        request = {"source": source, "name": name, "line": line, "folder": str(folder), "new": new}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if answer["error"]:
            pytest.fail(f"{page.name}, block at line {line}:\n{answer['error']}", pytrace=False)
        return answer["printed"]

    def close(self) -> None:
        """Stop the interpreter."""
        with self.process as process:
            assert process.stdin is not None
            process.stdin.close()


def commands(text: str) -> list[list[str]]:
    """Return the words of a block's command lines, with continued lines joined and comments removed."""
    joined = text.replace("\\\n", " ")
    return [words for line in joined.splitlines() if (words := shlex.split(line, comments=True))]


def run_commands(text: str, folder: Path, read: Callable[[], str]) -> tuple[int, str]:
    """Run a `sh` block, and return its exit code and output.

    Lines with only an `onebasin` command run in this process, which saves seconds each; all other lines use a shell.
    """
    refused = REFUSED.search(text)
    assert not refused, (
        f"`{refused and refused[0]}` changes the machine: `<!-- not run: REASON -->`"
    )
    lines = commands(text)
    bare = "\n".join(line.split(" #")[0] for line in text.replace("\\\n", " ").splitlines())
    if all(words[0] == "onebasin" for words in lines) and not OF_A_SHELL.search(bare):
        code = 0
        read()
        for words in lines:
            assert code == 0, f"a command before `{shlex.join(words)}` ended with {code}"
            code = main(words[1:])
        return code, read()
    done = subprocess.run(
        ["sh", "-ec", text],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


class Page:
    """The state of a page during a run: its folder, and the output of the previous block."""

    def __init__(self, path: Path, folder: Path, python: PythonProcess, read: Callable[[], str]):
        self.path, self.folder, self.python, self.read = path, folder, python, read
        self.printed, self.said, self.new = "", "", True
        for file in PROGRAMS.iterdir():
            if file.suffix in (".stan", ".json", ".csv"):
                shutil.copy(file, folder)

    def run(self) -> None:
        """Run all blocks in order."""
        for block in blocks(self.path):
            if block.one("not run") is not None:
                continue
            for language, text in block.setup:
                self._run(language, text + "\n", block)
            name = block.one("file")
            if name is not None:
                (self.folder / name).write_text(block.quick)
            elif block.language == "text" and block.one("output"):
                self._compare(block)
            else:
                self._run(block.language, block.quick, block, code=int(block.one("exit") or 0))

    def _run(self, language: str, text: str, block: Block, code: int = 0) -> None:
        if language == "python":
            self.printed = self.python.run(
                text, page=self.path, line=block.line, folder=self.folder, new=self.new
            )
            self.new = False
        elif language == "sh":
            ended, self.printed = run_commands(text, self.folder, self.read)
            where = f"{self.path.name}, block at line {block.line}"
            assert ended == code, f"{where} ended with {ended}:\n{self.printed}"
        self.said += self.printed

    def _compare(self, block: Block) -> None:
        asked = block.one("output") or ""
        if asked == "part":
            contains(self.said, block.text, f"{self.path.name}, line {block.line}")
            return
        allowed = 0.0 if asked == "exact" else float(asked.removeprefix("within "))
        same(self.printed, block.text, allowed, f"{self.path.name}, line {block.line}")


def contains(printed: str, shown: str, where: str) -> None:
    """Search the output for a text of the page; numbers may differ by at most a tenth."""
    printed, shown = (GROUPS.sub("", text).replace("−", "-") for text in (printed, shown))
    words, wanted = (" ".join(NUMBER.sub("#", text).split()) for text in (printed, shown))
    numbers, expected = (list(map(float, NUMBER.findall(text))) for text in (printed, shown))
    start = words.find(wanted)
    while start >= 0:
        first = words[:start].count("#")
        found = numbers[first : first + len(expected)]
        if np.allclose(found, expected, rtol=0.1, atol=0.011):
            return
        start = words.find(wanted, start + 1)
    raise AssertionError(
        f"{where}: the page shows text that was not printed:\n{shown}\nPrinted:\n{printed}"
    )


def same(printed: str, shown: str, allowed: float, where: str) -> None:
    """Compare the output with a page's text up to a final line `...`; numbers may differ by `allowed`."""
    if shown.rstrip().endswith("\n..."):
        shown = shown.rstrip().removesuffix("\n...")
        printed = "\n".join(printed.strip().splitlines()[: len(shown.strip().splitlines())])
    came, expected = (NUMBER.split(text.strip()) for text in (printed, shown))
    assert came[::2] == expected[::2], f"{where}: the page does not show the printed output"
    for one, other in zip(came[1::2], expected[1::2], strict=True):
        assert abs(float(one) - float(other)) <= allowed, f"{where}: {one} printed, {other} shown"
