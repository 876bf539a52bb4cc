"""A short reference of one problem, made once."""

from dataclasses import replace

import jax
import pytest

from onebasin.truth.making import Order
from onebasin.truth.problems import PROBLEMS
from onebasin.truth.produce import produce


@pytest.fixture(autouse=True)
def broadcasting():
    """As in a user's process: NumPyro's transforms of several simplices and its mixtures broadcast."""
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The folder of a reference, its labelling fitted: four chains of 500 kept draws."""
    order = Order.of(PROBLEMS["mixture-2"])
    settings = replace(order.settings, chains=4, warmup=300, draws=500)
    folder = tmp_path_factory.mktemp("made")
    with jax.numpy_rank_promotion("allow"):
        produce(replace(order, settings=settings, thin=4, max_thin=4), folder)
    return folder
