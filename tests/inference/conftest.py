"""Compiling a Stan program sets CMDSTAN for the process; a test undoes it."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def keep_environment() -> Iterator[None]:
    """Compiling a Stan program sets CMDSTAN for the process; undo it."""
    before = os.environ.get("CMDSTAN")
    yield
    if before is None:
        os.environ.pop("CMDSTAN", None)
    else:
        os.environ["CMDSTAN"] = before
