"""References of two seeds of one problem, short ones, made once."""

from dataclasses import replace

import jax
import pytest

from onebasin.truth import open_reference
from onebasin.truth.making import order_of_problem
from onebasin.truth.produce import produce


@pytest.fixture(autouse=True)
def broadcasting():
    """As in a user's process: NumPyro's transforms of several simplices and its mixtures broadcast."""
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture(scope="session")
def short_order():
    """Four chains of 500 kept draws."""
    order = order_of_problem("mixture-2")
    settings = replace(order.settings, chains=4, warmup=300, draws=500)
    return replace(order, settings=settings, thin=4, max_thin=4)


@pytest.fixture(scope="session")
def made(short_order, tmp_path_factory):
    """The folder of a reference, its labelling fitted."""
    folder = tmp_path_factory.mktemp("made")
    with jax.numpy_rank_promotion("allow"):
        produce(short_order, folder)
    return folder


@pytest.fixture(scope="session")
def another(short_order, made, tmp_path_factory):
    """Another seed, in the labelling of the first."""
    folder = tmp_path_factory.mktemp("another")
    labelling = open_reference(made).labelling
    with jax.numpy_rank_promotion("allow"):
        produce(replace(short_order, seed=2), folder, labelling=labelling)
    return folder
