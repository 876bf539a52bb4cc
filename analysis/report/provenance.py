"""How a posterior was made, read from its attributes, for the page's last section."""

import json
from collections.abc import Sequence
from typing import Any

import xarray as xr

from ..posterior.view import json_attribute, posterior_group
from .numbers import format_number
from .page import Run

_TEXT = (("target", "Target"), ("engine", "Engine"), ("method", "Method"), ("seed", "Seed"))
_JSON = (("settings", "Settings"), ("versions", "Versions"), ("model", "Model"))


def describe_run(name: str, posterior: xr.DataTree) -> Run:
    """List the facts of one run: settings, seed, versions, machine, times.

    Parameters
    ----------
    name
        What the report calls the posterior.
    posterior
        The posterior.

    Returns
    -------
    Run
        Facts that were recorded; what was not is left out.
    """
    attrs = posterior.attrs
    sizes = posterior_group(posterior).sizes
    facts = [(label, str(attrs[key])) for key, label in _TEXT if attrs.get(key) not in (None, "")]
    facts.append(("Draws", f"{sizes['chain']} × {format_number(int(sizes['draw']))}"))
    facts += [(label, _listed(json_attribute(posterior, key))) for key, label in _JSON]
    facts.append(("Symmetry", _blocks(json_attribute(posterior, "symmetry"))))
    facts.append(("Machine", str(attrs.get("machine", ""))))
    facts += _costs(posterior)
    facts += _outcome(posterior)
    return Run(name, tuple((label, value) for label, value in facts if value))


def common_facts(runs: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Return the facts that all runs share; none where there is a single run."""
    if len(runs) < 2:
        return ()
    return tuple(fact for fact in runs[0].facts if all(fact in run.facts for run in runs[1:]))


def _costs(posterior: xr.DataTree) -> list[tuple[str, str]]:
    attrs = posterior.attrs
    costs = []
    if "wall_time" in attrs:
        costs.append(("Wall time", f"{format_number(float(attrs['wall_time']))} s"))
    for key, label in (("warmup_seconds", "Warmup"), ("sampling_seconds", "Sampling")):
        if seconds := json_attribute(posterior, key):
            costs.append((label, f"{', '.join(map(format_number, seconds))} s, chain by chain"))
    if "gradient_evaluations" in attrs:
        costs.append(("Gradient evaluations", format_number(int(attrs["gradient_evaluations"]))))
    return costs


def _outcome(posterior: xr.DataTree) -> list[tuple[str, str]]:
    attrs = posterior.attrs
    outcome = []
    if "max_tree_depth" in attrs:
        outcome.append(("Maximal tree depth", str(attrs["max_tree_depth"])))
    if "converged" in attrs:
        outcome.append(("Converged", "yes" if attrs["converged"] else "no"))
    if attempts := json_attribute(posterior, "attempts"):
        outcome.append(("Tried before", "; ".join(map(_listed, attempts))))
    return outcome


def _listed(value: Any) -> str:
    """Write parsed JSON in one line, a mapping as `name = value` pairs."""
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_plain(entry)}" for key, entry in value.items())
    return "" if value is None else _plain(value)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _blocks(blocks: Any) -> str:
    if blocks is None:
        return ""
    return "; ".join(map(_listed, blocks)) or "none declared"
