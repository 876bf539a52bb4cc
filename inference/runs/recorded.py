"""The Stan program that a posterior records, with its data, for log densities, predictions and log likelihoods.

A posterior file is not trusted: its record only selects among files on this machine. If the program that the run's
command named still exists and has the recorded text, the interpreter evaluates it on data with the recorded hash. The
text in the posterior file is interpreted only if the user passes `RECORDED`. Nothing is compiled, and no Python model
is run, unless the user names it.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import InferenceError, OnebasinError
from onebasin.models.target import Target
from onebasin.posteriors import schema
from onebasin.posteriors.view import View
from onebasin.stan.choice import Refused, examine
from onebasin.stan.compile import has_library
from onebasin.stan.data import read_data
from onebasin.stan.interpreter.runtime import full_text, included_files
from onebasin.stan.program import stan_program

from ..density.stan import StanDensity
from .posterior import data_sha256

RECORDED = "recorded"
"""Value of `model` with which a user declares to trust the program text in a posterior."""


def kept_data(view: View) -> dict[str, Any]:
    """Return the data in a posterior's groups as arrays and single numbers."""
    held = (item for group in view.data.values() for item in group.data_vars.items())
    return {str(name): v.values if v.ndim else v.item() for name, v in held}


@dataclass(frozen=True, eq=False)
class RecordedProgram:
    """The Stan program that a posterior records, which is searched when first needed."""

    view: View  # The posterior, with folders in which to search for files of the run's command.
    trusted: bool = False  # Whether to interpret the text in the posterior.

    def __call__(self, draws: xr.Dataset) -> np.ndarray:
        """Evaluate draws (chain, draw, ...), in nats, on the constrained scale, without the Jacobian.

        Raise InferenceError if the program or its data are missing, or if the interpreter does not accept the program.
        """
        arrays = {
            n: draws[n].transpose(*schema.SAMPLE_DIMS, ...).values for n in self._density.names
        }
        points = {n: np.float64(v).reshape(-1, *v.shape[2:]) for n, v in arrays.items()}
        lead = tuple(draws.sizes[dim] for dim in schema.SAMPLE_DIMS)
        return self._density.log_density(points).reshape(lead)

    @cached_property
    def _density(self) -> StanDensity:
        try:
            return StanDensity(self.target)
        except InferenceError as error:
            raise InferenceError(
                f"{error}. Give `--program` and `--data`, or `--program {RECORDED}` if you trust the recorded text"
            ) from error

    @cached_property
    def target(self) -> Target:
        """The program with its data, accepted by the interpreter; raises InferenceError as a call does."""
        view, name = self.view, schema.stan_program_of(self.view.tree.attrs)
        text = view.attribute(schema.PROGRAM, "")
        if not self.trusted:
            named = self._named(".stan")
            text = next((p for p in named if full_text(p, included_files(p)) == text), None)
        if text is None:
            raise InferenceError(
                f"the run's command does not lead to a file {name} with the recorded text of the program"
            )
        if (data := self._data()) is None:
            raise InferenceError(f"the recorded data of {name} are missing")
        title = str(view.attribute(schema.TARGET, "")) or Path(name).stem
        target = stan_program(text, data, name=title)
        path = target.stan_program.path
        if isinstance(found := examine(path, data), Refused) and not has_library(path):
            raise InferenceError(f"{found.reason}, and {name} is not compiled for this check")
        return target

    def _data(self) -> dict[str, Any] | None:
        """Return data with the recorded hash, from the posterior or from a file that the run's command names."""
        wanted = self.view.attribute(schema.DATA_SHA256, "")
        kept = kept_data(self.view)
        if not wanted or data_sha256(kept) == wanted:
            return kept
        for path in self._named(".json"):
            try:
                data = read_data(path)
            except OnebasinError:
                continue
            if data_sha256(data) == wanted:
                return dict(data)
        return None

    def _named(self, suffix: str) -> Iterator[Path]:
        """Yield existing files with a suffix that the run's command names."""
        try:
            words = shlex.split(str(self.view.attribute(schema.COMMAND, "")))
        except ValueError:
            return
        for folder in self.view.folders:
            for word in words:
                path = (folder / word).absolute()
                if word.endswith(suffix) and path.is_file():
                    yield path
