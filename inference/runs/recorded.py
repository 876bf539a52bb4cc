"""The log density of a posterior, by the program and the data that its file records.

A file is data, and never obeyed: its record only chooses among files that are there. The run's command names a Stan
program and its data; where they are found, with the recorded text and hash, the interpreter evaluates them. Nothing is
compiled, and no Python model is run, without being named by the user.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import InferenceError, OnebasinError
from onebasin.models.data.hash import data_sha256
from onebasin.posteriors import schema
from onebasin.stan.acceptance import Refused, examine
from onebasin.stan.data import read_data
from onebasin.stan.interpreter.includes import full_text, included_files
from onebasin.stan.program import stan_program

from ..density.stan import StanDensity


class RecordedDensity:
    """The log density of a Stan program that root attributes record; opened when it is first called.

    `folders` are those where the names in the run's command may begin.
    """

    def __init__(self, attributes: Mapping[Any, Any], folders: Iterable[Path]) -> None:
        self._attributes, self._folders = attributes, tuple(folders)

    def __call__(self, draws: xr.Dataset) -> np.ndarray:
        """Evaluate draws (chain, draw, ...): nats, on the constrained scale, without the Jacobian.

        Raises
        ------
        InferenceError
            If the program or its data are not there, or the interpreter does not take the program.
        """
        arrays = {
            n: draws[n].transpose(*schema.SAMPLE_DIMS, ...).values for n in self._density.names
        }
        points = {n: np.float64(v).reshape(-1, *v.shape[2:]) for n, v in arrays.items()}
        lead = tuple(draws.sizes[dim] for dim in schema.SAMPLE_DIMS)
        return self._density.log_density(points).reshape(lead)

    @cached_property
    def _density(self) -> StanDensity:
        program = next(self._found(".stan", self._is_program), None)
        data = next(self._found(".json", self._is_data), None)
        if program is None or (data is None and self._attributes.get(schema.DATA_SHA256)):
            raise InferenceError(
                "the program and the data that the file records are not here as they were; give them with `--program` "
                "and `--data`"
            )
        target = stan_program(program, data)
        found = examine(program, target.stan_program.data)
        if isinstance(found, Refused):
            raise InferenceError(f"{found.reason}; give the program with `--program`")
        return StanDensity(target)

    def _found(self, suffix: str, fits: Callable[[Path], bool]) -> Iterator[Path]:
        """Files that the run's command names, and that are what the run read."""
        try:
            words = shlex.split(str(self._attributes.get(schema.COMMAND, "")))
        except ValueError:
            return
        for folder in self._folders:
            for word in words:
                path = (folder / word).absolute()
                if word.endswith(suffix) and path.is_file() and fits(path):
                    yield path

    def _is_program(self, path: Path) -> bool:
        return full_text(path, included_files(path)) == self._attributes.get(schema.PROGRAM)

    def _is_data(self, path: Path) -> bool:
        try:
            return data_sha256(read_data(path)) == self._attributes.get(schema.DATA_SHA256)
        except OnebasinError:
            return False
