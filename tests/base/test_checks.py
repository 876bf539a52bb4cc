"""Data, parts and combinations of parts that are refused, and what the user is told."""

import numpy as np
import pytest

from onebasin.networks import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NormalPrior,
    Parametrisation,
)

from ..each import each

X = np.random.default_rng(1).normal(size=(5, 3))
Y = np.random.default_rng(2).normal(size=(5, 2))
LABELS = np.array([0, 1, 1, 0, 1])


def with_nan(array):
    bad = np.array(array, dtype=float)
    bad.flat[2] = np.nan
    return bad


REGRESSION = BayesianNetwork(Network(3, (4,), 2))
CLASSIFIER = BayesianNetwork(Network(3, (4,), 2), Categorical())
INFINITE = Y.copy()
INFINITE[3, 1] = np.inf


@pytest.mark.usefixtures("unchecked")
@each(
    ("model", "x", "y", "message"),
    [
        (REGRESSION, with_nan(X), Y, r"`x` has 1 value\(s\).*row 0, column 2 \(nan\)"),
        (REGRESSION, X, with_nan(Y), r"`y` has 1 value\(s\).*row 1, column 0 \(nan\)"),
        (REGRESSION, X, INFINITE, r"`y` has 1 value\(s\).*row 3, column 1 \(inf\)"),
        (REGRESSION, X[:, :2], Y, r"`x` has shape \(5, 2\), but the network has 3 inputs"),
        (REGRESSION, X[0], Y, r"`x` has shape \(3,\), but the network has 3 inputs"),
        (REGRESSION, X[:0], Y[:0], "`x` has no rows"),
        (REGRESSION, X, Y[:4], r"`y` has shape \(4, 2\), but 5 rows.*need \(5, 2\)"),
        (REGRESSION, X, Y[:, 0], r"`y` has shape \(5,\), but 5 rows.*need \(5, 2\)"),
        (REGRESSION, [["a", "b", "c"]], Y, "`x` must be an array of real numbers.*got list"),
        (REGRESSION, [[1.0], [1.0, 2.0]], Y, "`x` must be an array of real numbers"),
        (REGRESSION, X, Y + 1j, "`y` must be an array of real numbers.*complex"),
        (CLASSIFIER, X, LABELS + 1, "`y` must hold labels 0 to 1 .*from 1 to 2"),
        (CLASSIFIER, X, LABELS - 1, "`y` must hold labels 0 to 1 .*from -1 to 0"),
        (CLASSIFIER, X, LABELS / 2, r"`y` must hold labels 0 to 1 .*from 0 to 0\.5"),
        (CLASSIFIER, X, with_nan(LABELS), r"`y` has 1 value\(s\) that are not finite"),
        (CLASSIFIER, X, LABELS[:, None], r"`y` has shape \(5, 1\); 5 labels need \(5,\)"),
        (CLASSIFIER, X, ["cat"] * 5, "`y` must be an array of real numbers"),
    ],
)
def test_condition_refuses(model, x, y, message):
    with pytest.raises(ValueError, match=message):
        model.condition(x, y)


@pytest.mark.usefixtures("unchecked")
@each(
    ("build", "message"),
    [
        (lambda: Parametrisation("given"), "`weights` is 'given'; choose one of free, givens, giv"),
        (lambda: Parametrisation("free", "sorted"), "`biases` is 'sorted'; choose one of free, or"),
        (
            lambda: Gaussian(noise_sd=-1.0),
            r"`noise_sd` must be a positive finite number; got -1\.0",
        ),
        (lambda: Gaussian(noise_scale=0), "`noise_scale` must be a positive finite number; got 0"),
        (lambda: Gaussian(noise_sd=np.inf), "`noise_sd` must be a positive finite number; got inf"),
        (lambda: NormalPrior(0.0), r"`weight_scale` must be a positive.*got 0\.0"),
        (lambda: NormalPrior(1.0, (1.0, np.nan)), "`bias_scale` must be a positive.*got nan"),
        (lambda: NormalPrior("wide"), "`weight_scale` must be a positive.*got 'wide'"),
        (lambda: NormalPrior(True), "`weight_scale` must be a positive.*got True"),
    ],
)
def test_a_part_refuses(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@each(
    ("network", "options", "message"),
    [
        (
            Network(3, (4,), activation="tanh"),
            {"parametrisation": Parametrisation("givens")},
            "`weights` is 'givens'.*'tanh' is not.*identity, relu, leaky_relu",
        ),
        (
            Network(1, (4,)),
            {"parametrisation": Parametrisation("givens")},
            "`weights` is 'givens', but W1 has one input: a unit vector in one dimension has no",
        ),
        (
            Network(3, (1, 4)),
            {"parametrisation": Parametrisation("unit_vector")},
            "`weights` is 'unit_vector', but W2 has one input",
        ),
        (
            Network(3, (4,), readout="sum"),
            {"parametrisation": Parametrisation("givens_seamless")},
            "`weights` is 'givens_seamless'.*got readout='sum'",
        ),
        (
            Network(3, (4,), biases=False),
            {"parametrisation": Parametrisation("free", "ordered")},
            "`biases` is 'ordered', but the network has biases=False",
        ),
        (
            Network(3, (4,)),
            {"prior": NormalPrior((1.0, 2.0, 3.0))},
            "`weight_scale` has 3 entries, but the network has 2 layers",
        ),
        (
            Network(3, (4,)),
            {"prior": NormalPrior(1.0, (1.0,))},
            "`bias_scale` has 1 entries, but the network has 2 layers",
        ),
        (Network(3, (4,), 1), {"likelihood": Categorical()}, "`out_dim` is 1, but a categorical"),
    ],
)
def test_parts_that_do_not_fit_are_refused(network, options, message):
    with pytest.raises(ValueError, match=message):
        BayesianNetwork(network, **options)
