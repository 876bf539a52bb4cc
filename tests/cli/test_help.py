"""Help: shown where no command is named, with examples that can be typed; and what a shell completes."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest
import typer
from typer.core import TyperGroup

from onebasin.cli.program import program
from onebasin.cli.spelling import EXAMPLES

LINES = [(path, line) for path, examples in EXAMPLES.items() for _, line in examples]


def parse(words: list[str]) -> str:
    """Parse a command without running it; returns its name."""
    command = typer.main.get_command(program(words))
    context = command.make_context("onebasin", list(words))
    while isinstance(command, TyperGroup):
        name, command, words = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        context = command.make_context(name, words, parent=context)
    return context.command_path


def commands() -> set[str]:
    """Every command, and every group of them."""
    group = typer.main.get_command(program([]))
    found = {"onebasin"}
    for name, command in group.commands.items():
        found.add(f"onebasin {name}")
        if isinstance(command, TyperGroup):
            found |= {f"onebasin {name} {inner}" for inner in command.commands}
    return found


@pytest.mark.parametrize("words", [[], ["--debug"]])
def test_no_command_shows_the_help(onebasin, words):
    answer = onebasin(*words)
    assert answer.code == 0
    assert answer.err == ""
    assert "Usage: onebasin" in answer.out
    assert answer.out == onebasin(*words, "--help").out


def test_examples_are_of_commands():
    assert set(EXAMPLES) <= commands()


@pytest.mark.parametrize(("path", "line"), LINES)
def test_examples_are_commands(path, line):
    found = re.fullmatch(r"export (?:CMDSTAN|BRIDGESTAN)=\$\((.*)\)", line)
    _, *words = shlex.split(found[1] if found else line)
    assert parse(words).startswith(path)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("onebasin sam", ["sample"]),
        ("onebasin sample a.stan --method p", ["pathfinder"]),
        ("onebasin sample a.stan --max-tr", ["--max-tree-depth"]),
        ("onebasin study ortho", ["orthogonal-skips"]),
        ("onebasin diagnose ru", []),  # files: the shell's own
    ],
)
def test_completion(onebasin, monkeypatch, words, offered):
    monkeypatch.setenv("_ONEBASIN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    answer = onebasin()
    assert (answer.code, answer.out.split()) == (0, offered)


def test_completion_can_be_installed_and_loads_nothing_heavy():
    script = (
        "import os, sys; os.environ.update(_ONEBASIN_COMPLETE='complete_bash', "
        "COMP_WORDS='onebasin diagnose ru', COMP_CWORD='2'); sys.argv = ['onebasin']; "
        "from onebasin.cli.main import main; code = main(); "
        "assert not {'jax', 'numpyro', 'arviz_stats', 'pandas'} & set(sys.modules); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    script = (
        'import sys; sys.argv=["onebasin", "--help"]; from onebasin.cli.main import main; main()'
    )
    words = ["sh", "-c", f"{shlex.quote(sys.executable)} -c '{script}'"]
    shown = subprocess.run(words, capture_output=True, text=True)
    assert "--install-completion" in shown.stdout and "--show-completion" in shown.stdout
