import numpy as np
import pytest

from onebasin.models import BayesianNetwork, Exchangeable, Network
from onebasin.posteriors import schema


@pytest.mark.parametrize("value", [{"a": [1, 2.5], "b": "text"}, [1.0, 2.0], [], [{"eta": None}]])
def test_what_is_encoded_is_text_and_is_decoded(value):
    assert isinstance(schema.encode(value), str)
    assert schema.decode({"some": schema.encode(value)}, "some") == value


def test_nothing_is_decoded_as_none_and_an_array_of_netcdfs_as_a_list():
    assert schema.decode({}, "settings") is schema.decode({"settings": ""}, "settings") is None
    assert schema.decode({"sampling_seconds": np.array([1.0, 2.0])}, "sampling_seconds") == [1, 2]


@pytest.mark.parametrize(
    "text, fault", [("{half", "is not JSON"), ("[1]", "has a wrong type"), ("3", "has a wrong")]
)
def test_what_is_no_json_or_of_something_else_is_refused(text, fault):
    with pytest.raises(ValueError, match=f"attribute `settings` of `posterior` {fault}"):
        schema.decode({"settings": text}, "settings")


def test_network_and_symmetry_survive():
    network = BayesianNetwork(Network(2, (3,), 1))
    symmetry = (Exchangeable({"mu": 0}), *network.symmetry)
    attributes = {"model": network.describe(), "symmetry": schema.encode_symmetry(symmetry)}
    assert schema.network_of(attributes) == network
    assert schema.symmetry_of(attributes) == symmetry


@pytest.mark.parametrize("attributes", [{}, {"model": "", "symmetry": ""}])
def test_where_nothing_is_described_there_is_nothing(attributes):
    assert schema.network_of(attributes) is None
    assert schema.symmetry_of(attributes) == ()
