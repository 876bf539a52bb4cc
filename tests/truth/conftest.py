"""Run models as in a user's process."""

import jax
import pytest


@pytest.fixture(autouse=True)
def broadcasting():
    """Allow broadcasting, which NumPyro's mixtures and its transforms of several simplices need."""
    with jax.numpy_rank_promotion("allow"):
        yield
