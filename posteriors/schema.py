"""Names of a posterior's groups, statistics and root attributes, and the encoding of attributes.

A posterior is an `xarray.DataTree`; docs/reference/posterior.md describes each name. NetCDF stores text and numbers, so
all other attributes are JSON (`encode`, `decode`). This module imports neither JAX nor xarray.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np
from pydantic import TypeAdapter, ValidationError

from onebasin.base.errors import ArgumentError
from onebasin.base.text import parse_json

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.networks.bayesian import BayesianNetwork
    from onebasin.models.symmetry.blocks import Symmetry
    from onebasin.models.symmetry.evidence import Evidence

Attributes = Mapping[Any, Any]

# Groups
POSTERIOR = "posterior"
SAMPLE_STATS = "sample_stats"
VARIATIONAL = "variational"
TRAINING = "training"
DISTILLED = "distilled"
MODES = "modes"
WEIGHTED = "weighted"
"""Draws with importance weights along the axis `sample`; `variational` has the weights."""
DRIFT = "drift"
"""Movement of short chains away from weighted draws, in standard errors."""
ADAPTATION = "adaptation"
"""Step size and inverse metric of each chain at the end of warmup."""
WARMUP_POSTERIOR = "warmup_posterior"
WARMUP_SAMPLE_STATS = "warmup_sample_stats"
STARTS = "starts"
"""Initial values of the chains, if the user gave them."""
POSTERIOR_PREDICTIVE = "posterior_predictive"
LOG_LIKELIHOOD = "log_likelihood"
LOG_PRIOR = "log_prior"
PREDICTIONS = "predictions"
PREDICTIONS_CONSTANT_DATA = "predictions_constant_data"
PRIOR = "prior"
PRIOR_PREDICTIVE = "prior_predictive"
OBSERVED_DATA = "observed_data"
CONSTANT_DATA = "constant_data"
DATA_GROUPS = (CONSTANT_DATA, OBSERVED_DATA)
DRAW_GROUPS = (LOG_LIKELIHOOD, POSTERIOR_PREDICTIVE, LOG_PRIOR)
"""Groups with functions of the draws. They may contain only some draws, which keep their numbers."""
EVERY = "every"
"""Attribute of such a group that contains only every n-th draw; its value is n."""
TOP_LEVEL = "top_level"
"""Attribute of the group `log_prior`: JSON list of the variables whose priors are at the top level of the model."""

# Dimensions of draws, and variables of the data groups
SAMPLE_DIMS = ("chain", "draw")
INPUTS = "x"
OUTPUTS = "y"

# Statistics in `sample_stats`
LP = "lp"
DIVERGING = "diverging"
TREE_DEPTH = "tree_depth"
REACHED_MAX_TREEDEPTH = "reached_max_treedepth"
N_STEPS = "n_steps"
ACCEPTANCE_RATE = "acceptance_rate"
ENERGY = "energy"
STEP_SIZE = "step_size"
ENERGY_VARIANCE = "energy_variance"
LOG_Q = "log_q"
MODE = "mode"

# Variables in `variational`
ELBO = "elbo"
ITERATION = "iteration"
LOC_TRACE = "loc_trace"
SCALE_TRACE = "scale_trace"
LOG_RATIO = "log_ratio"
"""`lp - log_q` of an approximation's original draws. The draws of `posterior` are resampled from these."""
LOG_WEIGHT = "log_weight"
"""Pareto-smoothed log weights of the group `weighted`; `log_ratio` has the raw log weights. In `sample_stats`: log
weights of the draws, up to a constant."""
SAMPLE = "sample"

# Root attributes: the model
TARGET = "target"
MODEL = "model"
SYMMETRY = "symmetry"
SYMMETRY_EVIDENCE = "symmetry_evidence"
SYMMETRY_FOUND = "symmetry_found"
"""JSON: the result of a search of the log density, if no symmetry was declared."""
KINDS = "kinds"
"""JSON: the kind of each variable of `posterior`, which is ``parameter``, ``transformed`` or ``generated``."""
PROGRAM = "program"
"""Text of the Stan program with its includes, or of the NumPyro model."""
PROGRAM_NAME = "program_name"
DATA_SHA256 = "data_sha256"
LEFT_OUT = "left_out"
"""JSON: the omitted groups, with the reason for each."""
OF_A_TARGET = (
    *(TARGET, MODEL, SYMMETRY, SYMMETRY_EVIDENCE, SYMMETRY_FOUND),
    *(KINDS, PROGRAM, PROGRAM_NAME, DATA_SHA256),
)

# Root attributes: the method, its settings and the machine
ENGINE = "engine"
ENGINE_BUILD = "engine_build"
ENGINE_NOTE = "engine_note"
METHOD = "method"
SETTINGS = "settings"
SEED = "seed"
START = "start"
FINGERPRINT = "fingerprint"
VERSIONS = "versions"
MACHINE = "machine"
COMMAND = "command"
CREATED_AT = "created_at"
"""Time in UTC, in ISO 8601; the name is ArviZ's."""

# Root attributes: the course of the run
WALL_TIME = "wall_time"
WARMUP_SECONDS = "warmup_seconds"
SAMPLING_SECONDS = "sampling_seconds"
GRADIENT_EVALUATIONS = "gradient_evaluations"
WARMUP_GRADIENTS = "warmup_gradient_evaluations"
"""Number of gradient evaluations during warmup, if the engine counts them."""
LOG_DENSITY_EVALUATIONS = "log_density_evaluations"
"""Number of evaluations of the log density without its gradient."""
FIT_START = "fit_start"
"""A sentence that says whether the chains started from a fit, and why."""
FIT_GRADIENTS = "fit_gradient_evaluations"
FIT_LOG_DENSITIES = "fit_log_density_evaluations"
"""Number of evaluations for that fit; `gradient_evaluations` does not include them."""
WORTH = "worth"
"""The number of independent draws that the importance weights are worth."""
OPTIMUM_NOTE = "optimum_note"
"""The reason why an optimum is not a maximum."""
WEIGHTS_NOTE = "weights_note"
"""The reason why importance weights did not correct a fit; absent if the user turned them off."""
MAX_TREE_DEPTH = "max_tree_depth"
ATTEMPTS = "attempts"
JOINED = "joined"
"""JSON: the file, chains, seed, command, time and machine of each joined run."""
RESTARTS = "restarts"
"""JSON: for each chain, the draws (from 0) at which a new random stream began; absent if there are none."""
STEIN_IDENTITIES = "stein_identities"
"""JSON: deviations from Stein identities of the density, for draws of unadjusted dynamics."""
CONVERGED = "converged"
OF_A_RUN = (
    *(COMMAND, CREATED_AT, LEFT_OUT, WALL_TIME, WARMUP_SECONDS, SAMPLING_SECONDS, FIT_START),
    *(FIT_GRADIENTS, FIT_LOG_DENSITIES, MAX_TREE_DEPTH, ATTEMPTS, RESTARTS, STEIN_IDENTITIES),
    CONVERGED,
)

# Root attributes of symmetrised variational inference
LOG_GROUP_ORDER = "log_group_order"

# Group and root attributes of an aligned posterior; `ALIGNMENT` names both the group and the JSON of the rule
ALIGNMENT = "alignment"
ALIGNMENT_RULE = "alignment_rule"
ALIGNMENT_SWEEPS = "alignment_sweeps"
ALIGNMENT_CONVERGED = "alignment_converged"


def now() -> str:
    """Return the current time for `created_at`, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def encode(value: Any) -> Any:
    """Encode a value as an attribute: text and numbers stay unchanged, other values become JSON."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str | Real):
        return value
    return json.dumps(value)


Kind = Literal["parameter", "transformed", "generated"]
_LISTS = (WARMUP_SECONDS, SAMPLING_SECONDS)


class _Found(TypedDict, total=False):
    exchangeable: list[str]
    blocks: list[dict[str, Any]]


_SHAPES: Mapping[str, Any] = {
    **dict.fromkeys((SETTINGS, VERSIONS, LEFT_OUT, ALIGNMENT), dict[str, Any]),
    **dict.fromkeys(_LISTS, list[float]),
    **dict.fromkeys((ATTEMPTS, JOINED, SYMMETRY), list[dict[str, Any]]),
    KINDS: dict[str, Kind],
    SYMMETRY_FOUND: _Found,
    RESTARTS: list[list[int]],
}
"""The types of JSON attributes."""


def plain(value: Any) -> Any:
    """Convert NumPy arrays and numbers to Python lists and numbers."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def decode(attributes: Attributes, name: str, kind: Any = None) -> Any:
    """Parse a JSON attribute, as type `kind` if given; return None if it is missing, raise if it is malformed."""
    text = plain(attributes.get(name))
    if text is None or text == "":
        return None
    try:
        value = parse_json(text) if isinstance(text, str) else text
        value = [value] if name in _LISTS and isinstance(value, Real) else value
        made = TypeAdapter(kind or _SHAPES.get(name, Any)).validate_python(value)
    except (json.JSONDecodeError, ValidationError) as error:
        fault = "is not JSON" if isinstance(error, json.JSONDecodeError) else "has a wrong type"
        raise ArgumentError(
            f"The attribute `{name}` of `posterior` {fault} ({str(text)[:60]!r}). Delete the attribute, or use the "
            "original posterior."
        ) from error
    return made if kind else value


def number(attributes: Attributes, name: str) -> float | None:
    """Read a numeric attribute; return None if it is missing or not finite, raise if it is not a number."""
    kept = plain(attributes.get(name))
    if kept is None or kept == "":
        return None
    try:
        value = float(kept)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"The attribute `{name}` of `posterior` must be a number; got {str(kept)[:60]!r}. Correct or delete the "
            "attribute."
        ) from error
    return value if math.isfinite(value) else None


def encode_symmetry(symmetry: Symmetry) -> str:
    """Encode a symmetry for the attribute `symmetry`."""
    from onebasin.models.symmetry.blocks import to_json

    return to_json(symmetry)


def symmetry_of(attributes: Attributes) -> Symmetry:
    """Rebuild the symmetry that the attributes declare; empty if they declare none."""
    text = attributes.get(SYMMETRY)
    if not text:
        return ()
    from onebasin.models.symmetry.blocks import from_json

    return from_json(text)


def stan_program_of(attributes: Attributes) -> str:
    """Return the name of the Stan program that a posterior records; empty for other models."""
    name = str(plain(attributes.get(PROGRAM_NAME, "")))
    return name if name.endswith(".stan") else ""


def evidence_of(attributes: Attributes) -> Evidence | None:
    """Return the recorded check of the symmetry; None if there is no record."""
    text = attributes.get(SYMMETRY_EVIDENCE)
    if not isinstance(text, str) or not text:
        return None
    from onebasin.models.symmetry.evidence import Evidence

    return Evidence.from_json(text)


def found_symmetry_of(attributes: Attributes) -> dict[str, Any]:
    """Return the result of the symmetry search before the run; empty if it is missing or unreadable."""
    try:
        return decode(attributes, SYMMETRY_FOUND) or {}
    except ValueError:
        return {}


def network_of(attributes: Attributes) -> BayesianNetwork | None:
    """Rebuild the network that the attributes describe; None if they describe none."""
    text = attributes.get(MODEL)
    if not text:
        return None
    from onebasin.models.networks.bayesian import BayesianNetwork  # loads JAX

    return BayesianNetwork.from_description(text)


_FORMER = {
    LP: "lp__ logp model_logp",
    DIVERGING: "divergent divergent__ divergence divergences is_divergent",
    TREE_DEPTH: "treedepth treedepth__ depth",
    N_STEPS: "n_leapfrog n_leapfrog__ num_steps num_integration_steps",
    ACCEPTANCE_RATE: "accept_stat accept_stat__ accept_prob mean_tree_accept",
    ENERGY: "energy__",
    LOG_WEIGHT: "log_weight__",
    STEP_SIZE: "stepsize stepsize__",
}
OLDER = {older: word for word, names in _FORMER.items() for older in names.split()}
"""Alternative names of statistics: older names, those of other samplers, and CmdStan's columns."""


def adopted(tree: xr.DataTree) -> xr.DataTree:
    """Return a posterior with onebasin's names of statistics; the tree itself if nothing changes."""
    if SAMPLE_STATS not in tree.children:
        return tree
    import xarray as xr

    stats = tree[SAMPLE_STATS].to_dataset()
    renamed: dict[str, str] = {}
    for name in stats.data_vars:
        word = OLDER.get(str(name))
        if word is not None and word not in stats and word not in renamed.values():
            renamed[str(name)] = word
    moves = LOG_LIKELIHOOD in stats.data_vars and LOG_LIKELIHOOD not in tree.children
    if not renamed and not moves:
        return tree
    groups = {name: child.to_dataset() for name, child in tree.children.items()}
    if moves:
        moved = [LOG_LIKELIHOOD]
        groups[LOG_LIKELIHOOD] = stats[moved].rename({LOG_LIKELIHOOD: "obs"})
        used = {dim for name in stats.data_vars if name not in moved for dim in stats[name].dims}
        stats = stats.drop_dims([dim for dim in stats.dims if dim not in used])
        stats = stats.drop_vars(moved, errors="ignore")
    groups[SAMPLE_STATS] = stats.rename(renamed)
    made = xr.DataTree.from_dict(groups)
    made.attrs = dict(tree.attrs)
    made.set_close(tree.close)
    return made
