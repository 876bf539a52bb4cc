"""The log density of a Stan program at given values of its parameters."""

from __future__ import annotations

import json
import shutil
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.storage.leftovers import temporary_folder
from onebasin.models.target import Target
from onebasin.stan import command
from onebasin.stan.network import pack_unconstrained
from onebasin.stan.output import read
from onebasin.stan.program import make_ready
from onebasin.stan.run import run

from .numpyro import NumpyroDensity
from .values import NumpyroValues


class StanDensity:
    """Evaluates a target's density on the constrained scale, without the Jacobian, up to one constant.

    Parameters
    ----------
    target : Target
        With a Stan definition.
    progress : callable, optional
        Called with a line of text before something that takes long.

    Attributes
    ----------
    derived : tuple of str
        Quantities that follow from the parameters.

    Raises
    ------
    StanError
        If there is no CmdStan, the program does not compile or its data are incomplete.
    """

    def __init__(self, target: Target, progress: Callable[[str], None] | None = None) -> None:
        self.target = target
        self._folder = temporary_folder("density")
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._ready = make_ready(target, self._folder, progress=progress)
        self._files = command.Files(data=self._ready.data, output=self._folder / "out.csv")
        self.derived = self._ready.info.derived

    def points(self, count: int, seed: int) -> dict[str, np.ndarray]:
        """Points to try, uniform within +-2 in the unconstrained space: name to array (point, ...)."""
        if isinstance(self.target, NetworkTarget):
            return NumpyroValues(self.target).points(count, seed)
        starts = [command.Start(seed=seed % 2**32, chain=number + 1) for number in range(count)]
        outputs = [self._run(command.draw_start(self._files, start)) for start in starts]
        return {
            name: np.stack([output.variables[name][0] for output in outputs])
            for name in self._ready.info.parameters
        }

    def log_density(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"]:
        """Log density at points (point, ...), up to a constant."""
        if isinstance(self.target, NetworkTarget):
            return self._of_network(self.target, values)
        count = len(next(iter(values.values())))
        points = [{name: value[i] for name, value in values.items()} for i in range(count)]
        return np.array([self._at(point) for point in points])

    def log_likelihood(self, values: Mapping[str, Any]) -> None:
        """None: Stan does not tell the likelihood from the prior."""

    def _at(self, point: Mapping[str, Any]) -> float:
        file = self._folder / "point.json"
        file.write_text(json.dumps({name: np.asarray(v).tolist() for name, v in point.items()}))
        output = self._run(command.log_prob(self._files, file, constrained=True, jacobian=False))
        return float(output.method["lp__"][0])

    def _of_network(self, target: NetworkTarget, values: Mapping[str, Any]) -> np.ndarray:
        """By way of NumPyro's unconstrained space, whose packing the program shares."""
        density = NumpyroDensity.of(target)
        points = jax.vmap(density.unconstrain)(dict(values))
        jacobians = jax.vmap(density.log_jacobian)(points)
        vectors = []
        for point in points:
            parts = pack_unconstrained(target, density.unravel(point))
            vectors.append([*parts["weights_raw"], *parts["biases_raw"], *np.log(parts["sigma"])])
        file = self._folder / "points.json"
        file.write_text(json.dumps({"params_r": np.array(vectors).tolist()}))
        output = self._run(command.log_prob(self._files, file, constrained=False, jacobian=True))
        return output.method["lp__"] - np.asarray(jacobians)

    def _run(self, arguments: list[str]) -> Any:
        run(self._ready, arguments, self._folder)
        return read(self._files.output)
