"""Calls as users make them."""

import pytest


@pytest.fixture(autouse=True)
def _as_a_user_calls(unchecked: None) -> None:
    """Without the check of annotations, which users do not have."""


@pytest.fixture
def refuse(here, monkeypatch, capfd):
    """Run a case's command in an empty folder, and check its answer."""
    from .cases import check

    monkeypatch.setenv("COLUMNS", "80")
    return lambda case: check(case, here, lambda: tuple(capfd.readouterr()))
