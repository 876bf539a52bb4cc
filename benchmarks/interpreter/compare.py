"""Compare the results of both engines for one program."""

from __future__ import annotations

from typing import Any

import numpy as np

from .evaluate import STREAMS

SAME = 1e-8
"""Largest relative difference of values that differ only by rounding."""
UNAVAILABLE = "are unavailable"
"""Part of stanli's warning about missing transformed parameters and generated quantities."""


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference, relative to `b` if that is above 1; NaN equals NaN."""
    if a.shape != b.shape:
        return float("inf")
    if not a.size:
        return 0.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        far = np.where(same, 0.0, np.abs(a - b) / np.maximum(1.0, np.abs(b)))
    return float(np.max(np.where(np.isnan(far), np.inf, far)))


def state_of(facts: dict[str, Any]) -> str:
    """Return how much of a program stanli supports.

    Returns
    -------
    str
        ``whole``, ``slow`` (parts run in a slow path), ``parameters`` (only parameters and the log density are
        available), or ``rejected``.
    """
    if facts["error"]:
        return "rejected"
    if UNAVAILABLE in facts["warning"]:
        return "parameters"
    return "slow" if facts["warning"] else "whole"


def densities(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> dict[str, Any]:
    """Compare log densities and gradients with CmdStan's (`theirs`).

    Returns
    -------
    dict
        Counts of points and largest relative differences. `log_density_alone` refers to the function without a
        gradient. `constant` is the median difference of log densities, and `beyond_constant` the largest relative
        difference beyond it.
    """
    a, b = np.isfinite(ours["values"]), np.isfinite(theirs["values"])
    both = a & b
    left, right = ours["gradients"][both], theirs["gradients"][both]
    scale = np.maximum(1.0, np.max(np.abs(right), axis=1, initial=0.0, keepdims=True))
    finite = np.isfinite(left) == np.isfinite(right)
    constant = (
        float(np.median(ours["values"][both] - theirs["values"][both])) if both.any() else 0.0
    )
    return {
        "points": int(both.sum()),
        "rejected_by_both": int((~a & ~b).sum()),
        "rejected_by_one": int((a ^ b).sum()),
        "log_density": relative(ours["values"][both], theirs["values"][both]),
        "log_density_alone": relative(ours["alone"][both], theirs["alone"][both]),
        "constant": constant,
        "beyond_constant": relative(ours["values"][both] - constant, theirs["values"][both]),
        "gradient": relative(left / scale, right / scale) if finite.all() else float("inf"),
    }


def quantities(
    ours: tuple[dict[str, Any], dict[str, np.ndarray]],
    theirs: tuple[dict[str, Any], dict[str, np.ndarray]],
) -> dict[str, Any]:
    """Compare constrained values, transformed parameters and generated quantities with CmdStan's (`theirs`)."""
    (facts, arrays), (base, reference) = ours, theirs
    names = "equal" if facts["generated"] == base["generated"] else "differ"
    if any(len(facts[block]) != len(base[block]) for block in ("parameters", "generated")):
        return {"names": names}
    a, b = arrays[f"rows_{STREAMS[0]}"], reference[f"rows_{STREAMS[0]}"]
    other = reference[f"rows_{STREAMS[1]}"]
    random = np.any((b != other) & ~(np.isnan(b) & np.isnan(other)), axis=0)
    inner, outer = len(base["parameters"]), len(base["transformed"])
    fixed = np.where(~random)[0]
    fixed = fixed[fixed >= outer]
    first = {
        "names": names,
        "parameters": relative(a[:, :inner], b[:, :inner]),
        "transformed": relative(a[:, inner:outer], b[:, inner:outer]),
        "fixed": relative(a[:, fixed], b[:, fixed]),
        "random": "none",
        "unconstrain": relative(arrays["back"], reference["back"]),
    }
    if random.any():
        equal = relative(a[:, random], b[:, random]) <= SAME
        first["random"] = "equal" if equal else "differ"
        bad = [n for i, n in enumerate(base["generated"]) if random[i] and not _same(a, b, i)]
        first["random_differ"] = sorted({n.split(".")[0] for n in bad})
    wrong = [i for i in (*range(outer), *fixed) if not _same(a, b, i)]
    first["fixed_differ"] = sorted({base["generated"][i].split(".")[0] for i in wrong})
    return first


def _same(a: np.ndarray, b: np.ndarray, i: int) -> bool:
    return relative(a[:, i], b[:, i]) <= SAME


def agrees(row: dict[str, Any]) -> bool:
    """Return whether an accepted program has the same density, gradient and quantities in both engines."""
    return (
        row["rejected_by_one"] == 0
        and max(row["log_density"], row["log_density_alone"]) <= SAME
        and row["gradient"] <= 1e-7
        and row["quantities"]["names"] == "equal"
        and not row["quantities"]["fixed_differ"]
        and row["quantities"].get("random") != "differ"
    )
