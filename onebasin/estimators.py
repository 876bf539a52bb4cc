"""Bayesian neural networks as scikit-learn estimators that fit, predict with standard deviations, and score.

The estimators standardise inputs and regression targets by the training data. Predictions are in the data's units.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, softmax

from .base.errors import ArgumentError, InferenceError
from .base.machine import lacks
from .inference.contracts.method import Method
from .models.networks.architecture import Network
from .models.networks.bayesian import BayesianNetwork, mean_and_sd, predict
from .models.networks.likelihood import Categorical, Gaussian

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise InferenceError(lacks("An estimator", "sklearn")) from error


class _NetworkEstimator(BaseEstimator):
    """Base class of both estimators, with standardised inputs, the posterior and its verdict."""

    _verdict: str | None

    def __init__(
        self,
        hidden: tuple[int, ...] = (16, 16),
        *,
        activation: str = "relu",
        method: Method | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.method = method
        self.random_state = random_state

    def _infer(self, x: np.ndarray, y: np.ndarray, likelihood: Gaussian | Categorical) -> None:
        from .inference.infer import infer
        from .inference.microcanonical.mclmc import Mclmc

        columns = y.shape[1] if y.ndim == 2 else int(y.max()) + 1
        network = Network(x.shape[1], tuple(self.hidden), columns, activation=self.activation)
        self.model_ = BayesianNetwork(network, likelihood)
        method = self.method or Mclmc(draws=500, dtype="float32")
        seed = int(check_random_state(self.random_state).randint(2**31))
        self._x_mean, self._x_scale = x.mean(0), _scale(x)
        target = self.model_.condition(self._inputs(x), y)
        self.posterior_ = infer(target, method, seed=seed, predictive_mb=0, progress=False)
        self._verdict = None

    def _inputs(self, x: np.ndarray) -> np.ndarray:
        return np.asarray((x - self._x_mean) / self._x_scale)

    def _checked(self, x: Any) -> np.ndarray:
        check_is_fitted(self, "model_")
        return self._inputs(validate_data(self, x, dtype="float64", reset=False))

    @property
    def verdict_(self) -> str | None:
        """Verdict of `ob.diagnose` on the posterior (``usable``, ``unusable``, ...), computed on first access."""
        check_is_fitted(self, "model_")
        if self._verdict is None:
            from .analysis.diagnostics.diagnose import diagnose

            self._verdict = diagnose(self.posterior_).verdict
        return self._verdict


class BayesianRegressor(RegressorMixin, _NetworkEstimator):
    """A Bayesian neural network for regression, with scikit-learn's interface.

    Parameters
    ----------
    hidden : tuple of int
        Number of units in each hidden layer.
    activation : str
        Same as in `ob.networks.Network`.
    noise_sd : float, None or "predicted"
        Same as in `ob.networks.Gaussian`, in standard deviations of the training targets.
    method : Method, optional
        Inference method, such as ``ob.Nuts()`` or ``ob.networks.Ensemble(members=10)``. The default is
        ``ob.Mclmc(draws=500, dtype="float32")``.
    random_state : int, RandomState or None
        Seed or random number generator, as in scikit-learn.

    Attributes
    ----------
    posterior_ : DataTree
        Draws of the weights for standardised data. Pass it to `ob.diagnose`, `ob.align` and other functions.
    verdict_ : str
        Verdict of `ob.diagnose`, which says whether the posterior is usable.
    model_ : BayesianNetwork
        Network with its prior.

    Raises
    ------
    InferenceError
        If scikit-learn is not installed. Methods raise scikit-learn's own errors.

    Examples
    --------
    >>> method = ob.networks.Ensemble(members=3, epochs=50)
    >>> fitted = ob.networks.BayesianRegressor(hidden=(4,), method=method, random_state=1).fit(x, np.sin(x[:, 0]))
    >>> mean, sd = fitted.predict(x, return_std=True)
    >>> mean.shape, bool((sd > 0).all())
    ((20,), True)
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (16, 16),
        *,
        activation: str = "relu",
        noise_sd: float | Literal["predicted"] | None = "predicted",
        method: Method | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(hidden, activation=activation, method=method, random_state=random_state)
        self.noise_sd = noise_sd

    def fit(self, X: Any, y: Any) -> BayesianRegressor:
        """Infer the weights.

        Parameters
        ----------
        X : array (obs, in)
            Inputs.
        y : array (obs,) or (obs, out)
            Targets.

        Returns
        -------
        BayesianRegressor
            The fitted estimator.
        """
        x, y = validate_data(self, X, y, dtype="float64", y_numeric=True, multi_output=True)
        self._flat = y.ndim == 1
        y = y.astype(np.float64).reshape(len(x), -1)
        self._y_mean, self._y_scale = y.mean(0), _scale(y)
        self._infer(x, (y - self._y_mean) / self._y_scale, Gaussian(noise_sd=self.noise_sd))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict targets as means over draws.

        Parameters
        ----------
        X : array (obs, in)
            Inputs.
        return_std : bool
            Whether to return standard deviations of new targets too. They include the noise and the uncertainty about
            the function.

        Returns
        -------
        array (obs,) or (obs, out), or two of them
            Means, or means and standard deviations, in the units of `y`.
        """
        mean, sd = self._normals(X)
        middle = mean.mean(0)
        if not return_std:
            return middle[:, 0] if self._flat else middle
        spread = np.sqrt(mean.var(0) + (sd**2).mean(0))
        return (middle[:, 0], spread[:, 0]) if self._flat else (middle, spread)

    def log_score(self, X: Any, y: Any) -> float:
        """Return the mean log predictive density.

        Parameters
        ----------
        X : array (obs, in)
            Inputs.
        y : array (obs,) or (obs, out)
            Targets.

        Returns
        -------
        float
            Mean log density in nats, in the units of `y`, under the mixture of the normal distributions of all draws.
        """
        mean, sd = self._normals(X)
        z = (np.asarray(y, np.float64).reshape(mean.shape[1:]) - mean) / sd
        terms = (-0.5 * z**2 - np.log(sd) - 0.5 * np.log(2 * np.pi)).sum(-1)
        return float(np.mean(logsumexp(terms, axis=0) - np.log(len(mean))))

    def __sklearn_tags__(self) -> Any:
        """Declare that targets may have several columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _normals(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the predicted mean and standard deviation of each draw (draw, obs, out) in the units of `y`."""
        inputs = self._checked(x)  # Checked first, to reject an unfitted estimator.
        mean, sd = mean_and_sd(self.model_, self.posterior_, inputs)
        sd = np.broadcast_to(sd, mean.shape)
        shape = (-1, *mean.shape[2:])
        return (
            mean.reshape(shape) * self._y_scale + self._y_mean,
            sd.reshape(shape) * self._y_scale,
        )


class BayesianClassifier(ClassifierMixin, _NetworkEstimator):
    """A Bayesian neural network for classification, with scikit-learn's interface.

    Parameters
    ----------
    hidden, activation, method, random_state : Any
        Same as in `BayesianRegressor`.

    Attributes
    ----------
    classes_ : array
        Class labels, in the order of the columns of `predict_proba`.
    posterior_, verdict_, model_ : Any
        Same as in `BayesianRegressor`.

    Raises
    ------
    InferenceError
        If scikit-learn is not installed. Methods raise scikit-learn's own errors.

    Examples
    --------
    >>> method = ob.networks.Ensemble(members=3, epochs=50)
    >>> fitted = ob.networks.BayesianClassifier(hidden=(4,), method=method, random_state=1).fit(x, x[:, 0] > 0)
    >>> fitted.predict_proba(x).shape
    (20, 2)
    """

    def fit(self, X: Any, y: Any) -> BayesianClassifier:
        """Infer the weights.

        Parameters
        ----------
        X : array (obs, in)
            Inputs.
        y : array (obs,)
            Labels from at least two classes.

        Returns
        -------
        BayesianClassifier
            The fitted estimator.
        """
        x, y = validate_data(self, X, y, dtype="float64")
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ArgumentError(
                f"`y` must have labels of at least two classes, but all labels are {self.classes_[0]!r}."
            )
        self._infer(x, labels, Categorical())
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "obs classes"]:
        """Return the probability of every class.

        Parameters
        ----------
        X : array (obs, in)
            Inputs.

        Returns
        -------
        array (obs, classes)
            Probabilities averaged over draws, with columns in the order of `classes_`.
        """
        inputs = self._checked(X)
        logits = predict(self.model_, self.posterior_, inputs)
        return np.asarray(softmax(logits, axis=-1).mean((0, 1)), np.float64)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of every row.

        Parameters
        ----------
        X : array (obs, in)
            Inputs.

        Returns
        -------
        array (obs,)
            Predicted labels.
        """
        column = self.predict_proba(X).argmax(1)  # Called first, to reject an unfitted estimator.
        return np.asarray(self.classes_[column])

    def log_score(self, X: Any, y: Any) -> float:
        """Return the mean log predictive probability.

        Parameters
        ----------
        X : array (obs, in)
            Inputs.
        y : array (obs,)
            Labels.

        Returns
        -------
        float
            Mean log probability in nats.
        """
        columns = np.searchsorted(self.classes_, y)
        return float(np.mean(np.log(self.predict_proba(X)[np.arange(len(columns)), columns])))


def _scale(values: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each column, or 1 for a constant column."""
    sd = values.std(0)
    return np.where(sd > 1e-12 * np.abs(values).max(0, initial=1e-300), sd, 1.0)
