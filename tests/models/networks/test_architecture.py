"""The forward pass against a loop in NumPy; shapes, skip matrices and refused architectures."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from onebasin.models import ACTIVATIONS, Network

FORMULAS = {
    "identity": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "leaky_relu": lambda z: np.maximum(z, 0.01 * z),
    "tanh": np.tanh,
    "selu": lambda z: 1.0507009873554805 * np.where(z > 0, z, 1.6732632423543772 * np.expm1(z)),
    "softplus": lambda z: np.log1p(np.exp(z)),
    "silu": lambda z: z * special.expit(z),
}


def by_hand(network, weights, x):
    """Kurle et al. 2021, equation 7: h_l = O_l h_{l-1} + W_l f_l(h_{l-1}) + b_l, f_1 the identity.

    One observation, unit and input at a time.
    """
    f = FORMULAS[network.activation]
    skips = network.skip_matrices()
    outputs = []
    for observation in x:
        h = observation
        for number in range(1, len(network.hidden) + 2):
            before = h if number == 1 else f(h)
            if f"W{number}" not in weights:
                h = [sum(before)]
                break
            weight = weights[f"W{number}"]
            after = []
            for unit in range(weight.shape[1]):
                total = sum(weight[i, unit] * before[i] for i in range(len(before)))
                if network.biases:
                    total += weights[f"b{number}"][unit]
                if skips:
                    total += sum(skips[number - 1][i, unit] * h[i] for i in range(len(h)))
                after.append(total)
            h = np.array(after)
        outputs.append(h)
    return np.array(outputs)


@pytest.mark.parametrize(
    "network",
    [
        *(Network(3, (4, 2), 1, name, skip="orthogonal") for name in ACTIVATIONS),
        *(Network(3, hidden, 2, "tanh") for hidden in ((4,), (4, 2, 3, 5, 2))),
        *(Network(3, (4, 2), 2, biases=False, skip=skip) for skip in (None, "orthogonal")),
        *(Network(3, (4, 2), biases=biases, readout="sum") for biases in (True, False)),
    ],
)
def test_forward_pass_is_equation_7(rng, network):
    weights = {n: rng.normal(size=s) for n, s in network.shapes.items()}
    x = rng.normal(size=(6, network.in_dim))
    out = network.apply({n: jnp.asarray(w) for n, w in weights.items()}, jnp.asarray(x))
    assert out.shape == (6, network.out_dim)
    np.testing.assert_allclose(out, by_hand(network, weights, x), rtol=1e-10, atol=1e-12)


def test_names_shapes_and_axes():
    network = Network(3, (5, 4), 2)
    assert network.shapes == {
        "W1": (3, 5),
        "b1": (5,),
        "W2": (5, 4),
        "b2": (4,),
        "W3": (4, 2),
        "b3": (2,),
    }
    assert network.dims == {
        "W1": ("in", "hidden1"),
        "b1": ("hidden1",),
        "W2": ("hidden1", "hidden2"),
        "b2": ("hidden2",),
        "W3": ("hidden2", "out"),
        "b3": ("out",),
    }
    assert tuple(Network(3, (5,), biases=False).shapes) == ("W1", "W2")
    assert tuple(Network(3, (5,), readout="sum").dims) == ("W1", "b1")


def test_skip_matrices_are_semi_orthogonal_in_every_layer():
    network = Network(3, (5, 4, 4), 2, skip="orthogonal")
    shapes = [(3, 5), (5, 4), (4, 4), (4, 2)]
    matrices = network.skip_matrices()
    assert [m.shape for m in matrices] == shapes
    for m in matrices:
        product = m.T @ m if m.shape[0] >= m.shape[1] else m @ m.T
        np.testing.assert_allclose(product, np.eye(min(m.shape)), atol=1e-14)
    assert Network(3, (5,)).skip_matrices() == ()


def test_skip_matrices_are_drawn_uniformly():
    # A QR factor alone is not: its diagonal would not be symmetric about 0.
    corners = [
        Network(2, (2,), 2, skip="orthogonal", skip_seed=seed).skip_matrices()[0][0, 0]
        for seed in range(400)
    ]
    assert abs(np.mean(corners)) < 5 * np.sqrt(0.5 / 400)
    assert abs(np.mean(np.square(corners)) - 0.5) < 5 * np.sqrt(0.125 / 400)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_dim": 0}, "`in_dim` must be a whole number, at least 1; got 0"),
        ({"out_dim": True}, "`out_dim` must be a whole number, at least 1; got True"),
        ({"hidden": (3, 0)}, "`hidden` must be a whole number, at least 1; got 0"),
        ({"hidden": ()}, r"`hidden` must hold the units of every hidden layer.*got \(\)"),
        ({"skip_seed": -1}, "`skip_seed` must be a whole number, at least 0; got -1"),
        ({"activation": "rleu"}, f"'rleu'; choose one of {', '.join(ACTIVATIONS)}.*'relu'?"),
        ({"readout": "mean"}, "`readout` is 'mean'; choose one of linear, sum"),
        ({"readout": "sum", "out_dim": 2}, "`readout` is 'sum'.*got out_dim=2"),
        ({"readout": "sum", "skip": "orthogonal"}, "`readout` is 'sum'.*skip='orthogonal'"),
    ],
)
def test_network_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        Network(**{"in_dim": 3, "hidden": (4,), **options})
