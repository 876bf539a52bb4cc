"""An empty folder to work in, what is written to the terminal, and calls as a user makes them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .cases import Call, Case, check_call, check_command


@pytest.fixture(autouse=True)
def _as_a_user_calls(unchecked: None) -> None:
    """Without the check of annotations, which users do not have."""


@pytest.fixture
def refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[Case], None]:
    """Run a case's command in an empty folder, and check the answer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(case: Case) -> None:
        check_command(case, tmp_path, lambda: tuple(capfd.readouterr()))

    return run


@pytest.fixture
def refuse_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Call], None]:
    """Make a case's call in an empty folder, check the error, and that nothing is left there."""
    monkeypatch.chdir(tmp_path)

    def run(case: Call) -> None:
        check_call(case)
        assert not list(tmp_path.iterdir())

    return run
