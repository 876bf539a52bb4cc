"""The words of a posterior: names of its groups, statistics and root attributes, and how attributes are written.

A posterior is an `xarray.DataTree`; docs/reference/posterior.md says what each word means. Who writes posteriors
and who reads them both take the words from here. NetCDF keeps text and numbers, so that anything else is JSON text
(`encode`, `decode`). This module loads neither JAX nor xarray.
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
"""Draws with importance weights, on the axis `sample`; the weights are in `variational`."""
DRIFT = "drift"
"""By how many standard errors short chains moved from weighted draws."""
ADAPTATION = "adaptation"
"""Step size and inverse metric of each chain, as its warmup ended."""
WARMUP_POSTERIOR = "warmup_posterior"
WARMUP_SAMPLE_STATS = "warmup_sample_stats"
STARTS = "starts"
"""Values at which the chains began, where they were given."""
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
"""Functions of the draws, whose axis `draw` may hold some of them alone, under their numbers."""
EVERY = "every"
"""Attribute of such a group: every how many-th draw it holds, where not all."""

TOP_LEVEL = "top_level"
"""Attribute of the group `log_prior`: JSON of the variables whose priors are at the top level of the model."""

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
"""`lp - log_q` of an approximation's own draws, where those of `posterior` are resampled from them."""
LOG_WEIGHT = "log_weight"
"""Pareto-smoothed log weights of the group `weighted`, which `log_ratio` has as sampled. In `sample_stats` those of
draws, up to a constant."""
SAMPLE = "sample"

# Root attributes: of what
TARGET = "target"
MODEL = "model"
SYMMETRY = "symmetry"
SYMMETRY_EVIDENCE = "symmetry_evidence"
SYMMETRY_FOUND = "symmetry_found"
"""JSON of what a search of the log density found, where nothing was declared."""
KINDS = "kinds"
"""JSON: of every variable of `posterior` whether it is a ``parameter``, ``transformed`` or ``generated``."""
PROGRAM = "program"
"""Text of the Stan program, with what it includes, or of the NumPyro model."""
PROGRAM_NAME = "program_name"
DATA_SHA256 = "data_sha256"
LEFT_OUT = "left_out"
"""JSON: group that the posterior could have and has not, and why."""
OF_A_TARGET = (
    *(TARGET, MODEL, SYMMETRY, SYMMETRY_EVIDENCE, SYMMETRY_FOUND),
    *(KINDS, PROGRAM, PROGRAM_NAME, DATA_SHA256),
)

# Root attributes: how, where and with what
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
"""When, in UTC, as ISO 8601 writes it: ArviZ's word."""

# Root attributes: how the run went
WALL_TIME = "wall_time"
WARMUP_SECONDS = "warmup_seconds"
SAMPLING_SECONDS = "sampling_seconds"
GRADIENT_EVALUATIONS = "gradient_evaluations"
WARMUP_GRADIENTS = "warmup_gradient_evaluations"
"""Gradients of the warmup, where the engine counts them."""
LOG_DENSITY_EVALUATIONS = "log_density_evaluations"
"""Evaluations of the log density alone."""
FIT_START = "fit_start"
"""A sentence that says whether chains began from a fit, and why."""
FIT_GRADIENTS = "fit_gradient_evaluations"
FIT_LOG_DENSITIES = "fit_log_density_evaluations"
"""Evaluations for that fit, which `gradient_evaluations` does not count."""
WORTH = "worth"
"""Independent draws that importance weights are worth."""
OPTIMUM_NOTE = "optimum_note"
"""Why an optimum is not a maximum."""
WEIGHTS_NOTE = "weights_note"
"""Why a fit was not corrected by importance weights, although nobody asked for a plain one."""
MAX_TREE_DEPTH = "max_tree_depth"
ATTEMPTS = "attempts"
JOINED = "joined"
"""JSON: of every run that was joined with others its file, chains, seed, command, time and machine."""
RESTARTS = "restarts"
"""Draws at which a new random stream began, by chain, from 0, as JSON; absent where each chain has one stream."""
STEIN_IDENTITIES = "stein_identities"
"""JSON: how far draws of unadjusted dynamics are from satisfying what draws of the density must."""
CONVERGED = "converged"
OF_A_RUN = (
    *(COMMAND, CREATED_AT, LEFT_OUT, WALL_TIME, WARMUP_SECONDS, SAMPLING_SECONDS, FIT_START),
    *(FIT_GRADIENTS, FIT_LOG_DENSITIES, MAX_TREE_DEPTH, ATTEMPTS, RESTARTS, STEIN_IDENTITIES),
    CONVERGED,
)

# Root attributes of symmetrised variational inference
LOG_GROUP_ORDER = "log_group_order"

# Group and root attributes of an aligned posterior; `ALIGNMENT` names the group and the rule's JSON
ALIGNMENT = "alignment"
ALIGNMENT_RULE = "alignment_rule"
ALIGNMENT_SWEEPS = "alignment_sweeps"
ALIGNMENT_CONVERGED = "alignment_converged"


def now() -> str:
    """The time for `created_at`, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def encode(value: Any) -> Any:
    """Give a value as NetCDF can keep it in an attribute: text and numbers as they are, the rest as JSON text."""
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
"""The type of the JSON of an attribute."""


def plain(value: Any) -> Any:
    """Give an attribute as it was written: NumPy's arrays and numbers as lists and numbers of Python's."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def decode(attributes: Attributes, name: str, kind: Any = None) -> Any:
    """Read an attribute that `encode` made JSON text of, as a `kind` if given; None if it is missing or empty.

    Raise an error if the attribute is not JSON, or if the JSON has the wrong type.
    """
    text = plain(attributes.get(name))
    if text is None or text == "":
        return None
    try:
        value = parse_json(text) if isinstance(text, str) else text
        value = [value] if name in _LISTS and isinstance(value, Real) else value
        made = TypeAdapter(kind or _SHAPES.get(name, Any)).validate_python(value)
    except (json.JSONDecodeError, ValidationError) as error:
        fault = "is not JSON" if isinstance(error, json.JSONDecodeError) else "says something else"
        raise ArgumentError(
            f"`posterior` has an attribute `{name}` that {fault}: got {str(text)[:60]!r}. Delete it, "
            "or use the posterior as originally written."
        ) from error
    return made if kind else value


def number(attributes: Attributes, name: str) -> float | None:
    """Read an attribute that is a number; None if it is missing or not finite, rejected where it is none."""
    kept = plain(attributes.get(name))
    if kept is None or kept == "":
        return None
    try:
        value = float(kept)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"`posterior` has an attribute `{name}` that is no number: got {str(kept)[:60]!r}. Write a number, "
            "or delete it."
        ) from error
    return value if math.isfinite(value) else None


def encode_symmetry(symmetry: Symmetry) -> str:
    """Give the attribute `symmetry`."""
    from onebasin.models.symmetry.blocks import to_json

    return to_json(symmetry)


def symmetry_of(attributes: Attributes) -> Symmetry:
    """Rebuild the symmetry that attributes declare; empty if they declare none."""
    text = attributes.get(SYMMETRY)
    if not text:
        return ()
    from onebasin.models.symmetry.blocks import from_json  # loads JAX, which others do without

    return from_json(text)


def stan_program_of(attributes: Attributes) -> str:
    """Return the name of the Stan program that a posterior records; empty for other models."""
    name = str(plain(attributes.get(PROGRAM_NAME, "")))
    return name if name.endswith(".stan") else ""


def evidence_of(attributes: Attributes) -> Evidence | None:
    """Return the recorded check of the symmetry; None if the attributes hold none."""
    text = attributes.get(SYMMETRY_EVIDENCE)
    if not isinstance(text, str) or not text:
        return None
    from onebasin.models.symmetry.evidence import Evidence

    return Evidence.from_json(text)


def found_symmetry_of(attributes: Attributes) -> dict[str, Any]:
    """Return what the search before the run found; empty if the attributes hold nothing that can be read of one."""
    try:
        return decode(attributes, SYMMETRY_FOUND) or {}
    except ValueError:
        return {}


def network_of(attributes: Attributes) -> BayesianNetwork | None:
    """Rebuild the network that attributes describe; None if they describe none."""
    text = attributes.get(MODEL)
    if not text:
        return None
    from onebasin.models.networks.bayesian import BayesianNetwork  # loads JAX, as above

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
"""Names that statistics had, have with single samplers, or have in CmdStan's files."""


def adopted(tree: xr.DataTree) -> xr.DataTree:
    """Return a posterior in our words: the tree itself where there is nothing to rename."""
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
