"""Undo what compiling a Stan program does to the process: it sets CMDSTAN."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def keep_environment() -> Iterator[None]:
    """Restore CMDSTAN, which compiling a Stan program sets for the process."""
    before = os.environ.get("CMDSTAN")
    yield
    if before is None:
        os.environ.pop("CMDSTAN", None)
    else:
        os.environ["CMDSTAN"] = before
