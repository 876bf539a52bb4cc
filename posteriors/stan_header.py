"""Read the run's settings from the comments of CmdStan's CSV file, as attributes of a posterior."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from . import schema

_ENTRY = re.compile(r"(?P<name>\w+) = (?P<value>.*?)(?: \(Default\))?")
_SECONDS = re.compile(r"([\d.e+-]+) seconds \((Warm-up|Sampling)\)")


@dataclass(frozen=True)
class Header:
    """The comments of one CSV file, lines without their ``#``."""

    comments: tuple[str, ...]

    @cached_property
    def entries(self) -> dict[str, str]:
        """The first value of each name in the comments; empty for a file that Stan did not write."""
        found = (_ENTRY.fullmatch(line) for line in reversed(self.comments))
        return {entry["name"]: entry["value"].strip() for entry in found if entry is not None}

    def number(self, name: str) -> float | None:
        """A number that is said, or None."""
        try:
            return float(self.entries[name])
        except (KeyError, ValueError):
            return None

    def count(self, name: str) -> int | None:
        """A whole number that is said, or None."""
        value = self.number(name)
        return None if value is None or value % 1 else int(value)

    @property
    def is_stans(self) -> bool:
        """Tell whether CmdStan wrote the file."""
        return "stan_version_major" in self.entries or "method" in self.entries

    @property
    def model(self) -> str:
        """The program's name."""
        return self.entries.get("model", "").removesuffix("_model")

    @property
    def method(self) -> str:
        """The method, in this project's words; empty where nothing is said."""
        method, algorithm = self.entries.get("method", ""), self.entries.get("algorithm", "")
        if method == "variational":
            return f"advi-{algorithm}"
        if method != "sample":
            return method
        if algorithm == "fixed_param":
            return "fixed-param"
        return {"nuts": "nuts", "static": "hmc"}.get(self.entries.get("engine", ""), "nuts")

    def saved(self, name: str) -> int | None:
        """The rows that a finished run has written of this number of iterations; None where the file does not say."""
        count, thin = self.count(name), self.count("thin") or 1
        return None if count is None else -(-count // max(thin, 1))

    def seconds(self, phase: str) -> float:
        """Time of ``"Warm-up"`` or ``"Sampling"``; NaN where there is none."""
        for line in self.comments:
            if (found := _SECONDS.search(line)) and found.group(2) == phase:
                return float(found.group(1))
        return float("nan")


def attributes(headers: Sequence[Header], draws: int) -> dict[str, Any]:
    """Give what chains of one run say of it as root attributes; what they do not say is left out."""
    first = headers[0]
    if not first.is_stans:
        return {}
    settings: dict[str, Any] = {"chains": len(headers), "draws": draws}
    if first.method in ("nuts", "hmc"):
        settings |= {
            "warmup": first.count("num_warmup"),
            "thin": first.count("thin"),
            "target_acceptance": first.number("delta"),
            "max_tree_depth": first.count("max_depth"),
            "metric": first.entries.get("metric"),
            "step_size": first.number("stepsize"),
        }
    version = [first.entries.get(f"stan_version_{part}") for part in ("major", "minor", "patch")]
    # CmdStan's `2026-01-31 12:00:00 UTC` as ISO 8601 writes it.
    began = first.entries.get("start_datetime", "")
    began = re.sub(r"^(\S+) (\S+) UTC$", r"\1T\2+00:00", began)
    said: dict[str, Any] = {
        schema.TARGET: first.model,
        schema.PROGRAM_NAME: first.model,
        schema.ENGINE: "stan",
        schema.METHOD: first.method,
        schema.SEED: first.count("seed"),
        schema.SETTINGS: {k: v for k, v in settings.items() if v is not None},
        schema.MAX_TREE_DEPTH: first.count("max_depth") if first.method == "nuts" else None,
        schema.VERSIONS: {"stan": ".".join(filter(None, version))} if all(version) else None,
        schema.CREATED_AT: began,
    }
    phases = {schema.WARMUP_SECONDS: "Warm-up", schema.SAMPLING_SECONDS: "Sampling"}
    for name, phase in phases.items() if first.entries.get("method") == "sample" else ():
        times = [header.seconds(phase) for header in headers]
        said[name] = times if all(time == time for time in times) else None
    return {name: schema.encode(value) for name, value in said.items() if value not in (None, "")}
