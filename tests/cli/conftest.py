"""Commands as users have them."""

import pytest


@pytest.fixture(autouse=True)
def _as_a_user_types(unchecked: None) -> None:
    """Without the check of annotations, which takes longer than most commands; tests of the library check them."""
