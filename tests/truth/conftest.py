"""Models run as in a user's process."""

import jax
import pytest


@pytest.fixture(autouse=True)
def broadcasting():
    """NumPyro's transforms of several simplices and its mixtures broadcast."""
    with jax.numpy_rank_promotion("allow"):
        yield
