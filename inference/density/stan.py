"""The log density of a Stan program at given values of its parameters."""

from __future__ import annotations

import json
import shutil
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.storage.leftovers import temporary_folder
from onebasin.models.target import Target
from onebasin.stan import command
from onebasin.stan.errors import StanRunError
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
    names, derived : tuple of str
        The parameters, and quantities that follow from them.

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
        info = self._ready.info
        self.names, self.derived = info.parameters, info.derived
        if isinstance(target, NetworkTarget):  # whose program has other words for them
            self.names, self.derived = NumpyroDensity.of(target).names, ()

    def derived_at(self, values: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
        """What follows from the parameters at points (point, ...); `seed` is that of `_rng` functions."""
        file, outputs = self._folder / "derived.json", []
        for point in self._split(values):
            self._write(file, point)
            start = command.Start(seed=seed % 2**32, init=file)
            outputs.append(self._run(command.draw_start(self._files, start)).variables)
        return {name: np.stack([output[name][0] for output in outputs]) for name in self.derived}

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
        return np.array([self._at(point) for point in self._split(values)])

    def log_likelihood(self, values: Mapping[str, Any]) -> None:
        """None: Stan does not tell the likelihood from the prior."""

    def _at(self, point: Mapping[str, Any]) -> float:
        file = self._folder / "point.json"
        self._write(file, point)
        try:
            output = self._run(
                command.log_prob(self._files, file, constrained=True, jacobian=False)
            )
        except StanRunError:  # CmdStan ends in an error where values are outside the support
            return float("-inf")
        return float(output.method["lp__"][0])

    def _split(self, values: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
        """Points one by one, of the parameters alone."""
        count = len(values[self.names[0]])
        return [{n: np.asarray(values[n][i]) for n in self.names} for i in range(count)]

    def _write(self, file: Path, point: Mapping[str, np.ndarray]) -> None:
        file.write_text(json.dumps({name: value.tolist() for name, value in point.items()}))

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
