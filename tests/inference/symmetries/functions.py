"""Log densities as plain functions of one point, with constraints, in the form that the search needs."""

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import expit

from onebasin.inference.symmetries.measuring import SearchedDensity

Point = Mapping[str, np.ndarray]

TOL = 1e-8


def _simplex(raw):
    e = np.exp(raw - raw.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _ordered(raw):
    return np.cumsum(np.concatenate([raw[..., :1], np.exp(raw[..., 1:])], -1), -1)


def _covariance(raw):
    return raw @ np.swapaxes(raw, -1, -2) + 0.1 * np.eye(raw.shape[-1])


def _correlation(raw):
    cov = _covariance(raw)
    sd = np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1))
    return cov / sd[..., :, None] / sd[..., None, :]


def _cholesky(raw):
    diagonal = np.exp(np.diagonal(raw, axis1=-2, axis2=-1))
    return np.tril(raw, -1) + diagonal[..., None] * np.eye(raw.shape[-1])


def _positive_definite(value):
    symmetric = np.abs(value - np.swapaxes(value, -1, -2)).max() <= TOL
    return symmetric & (np.linalg.eigvalsh(value) > 0).all()


MAPS = {
    "real": lambda raw: raw,
    "positive": np.exp,
    "unit": expit,
    "simplex": _simplex,
    "ordered": _ordered,
    "covariance": _covariance,
    "correlation": _correlation,
    "cholesky": _cholesky,
}
INSIDE = {
    "real": lambda v: True,
    "positive": lambda v: (v > 0).all(),
    "unit": lambda v: ((v > 0) & (v < 1)).all(),
    "simplex": lambda v: (v >= 0).all() & (np.abs(v.sum(-1) - 1).max() < TOL),
    "ordered": lambda v: (np.diff(v, axis=-1) > 0).all(),
    "covariance": _positive_definite,
    "correlation": lambda v: (
        (np.abs(np.diagonal(v, axis1=-2, axis2=-1) - 1).max() < TOL) & _positive_definite(v)
    ),
    "cholesky": lambda v: (
        (np.diagonal(v, axis1=-2, axis2=-1) > 0).all() & (np.triu(v, 1) == 0).all()
    ),
}


def in_jax(function: Callable[[Point], float], *modules: Any) -> Callable[[Point], Any]:
    """Return the same function, which replaces NumPy and SciPy by JAX in some modules and in this one while it runs."""

    def call(values):
        import jax

        own = {
            "np": jax.numpy,
            "logsumexp": jax.scipy.special.logsumexp,
            "expit": jax.scipy.special.expit,
            "xlogy": jax.scipy.special.xlogy,
        }
        held = [
            (m, n, vars(m)[n])
            for m in (*modules, sys.modules[__name__])
            for n in own
            if n in vars(m)
        ]
        try:
            for module, name, _ in held:
                setattr(module, name, own[name])
            with jax.numpy_rank_promotion("allow"):
                return function(values)
        finally:
            for module, name, value in held:
                setattr(module, name, value)

    return call


def parameters(text: str) -> dict[str, tuple[tuple[int, ...], str]]:
    """Parse parameters such as `mu 3, L 5x2, w unit`: name, shape and constraint; the default is a real number."""
    found = {}
    for name, *words in map(str.split, text.split(", ")):
        shape = tuple(map(int, words.pop(0).split("x"))) if words and words[0][0].isdigit() else ()
        found[name] = shape, words[0] if words else "real"
    return found


class FunctionDensity(SearchedDensity):
    """A function of one point; `parameters` maps names to (shape, constraint)."""

    def __init__(
        self,
        parameters: Mapping[str, tuple[tuple[int, ...], str]],
        function: Callable[[Point], float],
        ascents: bool = False,
    ) -> None:
        self.parameters, self.function, self.ascents, self.calls = parameters, function, ascents, 0
        shapes = {name: shape for name, (shape, _) in parameters.items()}
        dim = sum(math.prod(shape) for shape in shapes.values())
        super().__init__(shapes, dim, self._constrain, self._log_density, self._gradient)

    def _constrain(self, vectors):
        out, at = {}, 0
        for name, (shape, constraint) in self.parameters.items():
            size = math.prod(shape)
            raw = vectors[:, at : at + size].reshape(-1, *shape)
            out[name] = MAPS[constraint](raw)
            at += size
        return out

    def terms(self, values):
        """Return quantities that do not change if the log density does not."""
        inside = {f"support of {n}": INSIDE[c](values[n]) for n, (_, c) in self.parameters.items()}
        return {"density": self.function(values), **inside}

    def _log_density(self, values):
        count = len(next(iter(values.values())))
        return np.array([self._one({n: v[i] for n, v in values.items()}) for i in range(count)])

    def _one(self, point):
        self.calls += 1
        if not all(INSIDE[c](point[n]) for n, (_, c) in self.parameters.items()):
            return -np.inf
        with np.errstate(all="ignore"):
            try:
                return float(self.function(point))
            except (ValueError, np.linalg.LinAlgError):
                return -np.inf

    def _gradient(self, vector):
        if not self.ascents:
            return None
        h = 1e-6
        shifts = np.concatenate(
            [np.zeros((1, self.dim)), h * np.eye(self.dim), -h * np.eye(self.dim)]
        )
        found = self.log_density(self.constrain(vector + shifts))
        return found[0], (found[1 : self.dim + 1] - found[self.dim + 1 :]) / (2 * h)
