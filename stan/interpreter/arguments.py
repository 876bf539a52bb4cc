"""CmdStan's command lines, as far as `command` composes them, read back into numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .runtime import Structure, new_options

_SECTIONS = ("data", "output", "random", "adapt")
_SAME = (
    *("save_warmup", "max_depth", "iter", "jacobian", "draws", "num_elbo_draws", "max_lbfgs_iters"),
    *("history_size", "grad_samples", "elbo_samples", "eta", "tol_rel_obj", "eval_elbo"),
    "output_samples",
)
_FIELDS = dict(zip(_SAME, _SAME, strict=True)) | {
    "random.seed": "seed",
    "id": "chain_id",
    "num_warmup": "warmup",
    "num_samples": "samples",
    "adapt.delta": "delta",
    "adapt.engaged": "adapt_engaged",
    "stepsize": "step_size",
    "num_psis_draws": "num_draws",
}
"""The numbers of a command line, and the interpreter's options that they are."""


@dataclass(frozen=True)
class Arguments:
    """The words of a command line; a key below `data`, `output`, `random` or `adapt` has these and a dot before it."""

    values: Mapping[str, str]

    def get[T: (str, int, float)](self, key: str, default: T) -> T:
        """Return a value as what its default is."""
        return type(default)(self.values.get(key, default))

    @property
    def data(self) -> str:
        """The data as JSON."""
        file = self.values.get("data.file")
        return "{}" if file is None else Path(file).read_text(encoding="utf-8")

    @property
    def output(self) -> Path:
        """The CSV file for the draws."""
        return Path(self.values["output.file"])

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""
        return self.get("random.seed", 1)

    @property
    def start(self) -> Path | float:
        """The JSON file of initial values, or the radius within which they are drawn."""
        text = self.values.get("init", "2")
        try:
            return float(text)
        except ValueError:
            return Path(text)

    def options(self, name: str) -> Structure:
        """Return the options of a function: the numbers that the command line says, and the library's defaults."""
        options = new_options(name)
        for key, text in ({"random.seed": "1", "id": "1"} | dict(self.values)).items():
            field = _FIELDS.get(key, "")
            if hasattr(options, field):
                setattr(options, field, type(getattr(options, field))(text))
        return options


def parse(words: Sequence[str]) -> Arguments:
    """Read the words of a command line."""
    values: dict[str, str] = {}
    section = ""
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            section = f"{word}." if word in _SECTIONS else ""
        elif key in ("method", "init", "algorithm", "refresh", "id"):
            section = "" if key != "init" else section
            values[key] = value
        else:
            values[f"{section}{key}"] = value
    return Arguments(values)
