"""Images that several studies classify, and the network that classifies them."""

from dataclasses import dataclass, replace
from functools import lru_cache

from onebasin.models import BayesianNetwork, Categorical, Network
from onebasin.models.data import Dataset, Split, load_data, own_split, split

NUM_CLASSES = 10


@dataclass(frozen=True)
class Images:
    """The classified images: those of the data set `data`, averaged down to `side` pixels a side.

    `train` of them are for training; None takes those that the data set sets apart.
    """

    data: str
    side: int
    train: int | None


def classifier(images: Images, hidden: int) -> BayesianNetwork:
    """State the model: one hidden layer of ReLU units, N(0, 1) priors."""
    return BayesianNetwork(Network(images.side**2, (hidden,), NUM_CLASSES, "relu"), Categorical())


@lru_cache(maxsize=2)
def image_split(images: Images, seed: int) -> Split:
    """Give training and test images, with pixels from 0 to 1."""
    data = load_data(images.data)
    if images.train is None:
        parts = own_split(data)
    else:
        parts = split(data, test_fraction=1 - images.train / data.num_obs, seed=seed)
    return Split(train=_shrunk(parts.train, images.side), test=_shrunk(parts.test, images.side))


def _shrunk(data: Dataset, side: int) -> Dataset:
    now = round(data.in_dim**0.5)
    blocks = data.x.reshape(-1, side, now // side, side, now // side).mean((2, 4))
    names = tuple(f"pixel_{row}_{column}" for row in range(side) for column in range(side))
    top = 16.0 if data.name == "digits" else 1.0
    return replace(data, x=blocks.reshape(-1, side**2) / top, feature_names=names, held_out=None)
