"""An empty folder to work in, what is written to the terminal, and calls as a user makes them."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from .cases import Call, Case, check_call, check_command


@pytest.fixture(autouse=True)
def _as_a_user_calls(unchecked: None) -> None:
    """Without the check of annotations, which users do not have."""


Check = Callable[[Iterable], None]


def _every(cases: Iterable, check: Callable[[Case | Call, Path], None], folder: Path) -> None:
    """Check every case in its own empty folder, and list all that fail."""
    faults, names = [], set()
    for place, case in enumerate(cases):
        assert case.id not in names, f"two cases are named {case.id}"
        names.add(case.id)
        own = folder / str(place)
        own.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(own)
            try:
                check(case, own)
            except Exception as error:
                faults.append(f"{case.id}: {type(error).__name__}: {error}")
        shutil.rmtree(own)
    assert names
    assert not faults, f"{len(faults)} of {len(names)} fail\n\n" + "\n\n".join(faults)


@pytest.fixture
def refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Check:
    """Run the commands of cases, each in an empty folder, and check the answers."""
    monkeypatch.setenv("COLUMNS", "80")

    def check(case: Case, folder: Path) -> None:
        check_command(case, folder, lambda: tuple(capfd.readouterr()))

    return lambda cases: _every(cases, check, tmp_path)


@pytest.fixture
def refuse_calls(tmp_path: Path) -> Check:
    """Make the calls of cases, each in an empty folder, check the errors, and that nothing is left there."""

    def check(case: Call, folder: Path) -> None:
        check_call(case)
        assert not list(folder.iterdir())

    return lambda cases: _every(cases, check, tmp_path)
