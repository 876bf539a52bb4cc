"""Run commands as users do."""

import pytest


@pytest.fixture(autouse=True)
def _as_a_user_types(unchecked: None) -> None:
    """Turn off the check of annotations, which takes longer than most commands; tests of the library have it."""
