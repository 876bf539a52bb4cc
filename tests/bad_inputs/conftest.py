"""Run code as users do."""

import pytest


@pytest.fixture(autouse=True)
def _as_a_user_calls(unchecked: None) -> None:
    """Turn off the check of annotations, which users do not have."""


@pytest.fixture
def refuse(here, monkeypatch, capfd):
    """Return a function that runs the command of a case in an empty folder and checks the answer."""
    from .cases import check

    monkeypatch.setenv("COLUMNS", "80")
    return lambda case: check(case, here, lambda: tuple(capfd.readouterr()))
