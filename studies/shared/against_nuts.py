"""NUTS as the truth: how far approximations' predictions are from its, and whether its engines agree.

What is compared are means and standard deviations of f, the network's output without noise, at held-out
points.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onebasin.analysis.predictive.heldout import HeldOut, gap

from ..lab import STATEMENTS, Cell, Chapter, Field, Frame, Frames, Row, RowTable, at_most
from ..lab.options import ENGINES
from .heldout import MAX_RHAT, RHAT

BOUND = 5.0
"""Monte Carlo errors by which two engines' predictive means may differ."""
SHIFT = 0.25
"""Root mean square shift, in posterior sds, above which a predictive mean is called biased."""

DEFINITIONS = (
    (
        "f, prediction",
        "f is the network's output without noise; a prediction adds noise of the draw's own `sigma`. Means and "
        "errors are those of f.",
    ),
    (
        "Shift of the mean, sd of f",
        "Difference of the posterior means of f between ADVI and NUTS at each held-out point, over NUTS's posterior "
        "sd there, root mean square over the points; and the geometric mean of the ratio of the sds. `By chance` is "
        "the shift that Monte Carlo error alone would give.",
    ),
)


def agree(a: HeldOut, b: HeldOut) -> dict[str, Any]:
    """Hold the difference of two posteriors' predictive means against its Monte Carlo error.

    `largest` is the largest |difference| over the points and sigma, in units of that error, and `where` the quantity
    that has it; `beyond` counts those of the `num_quantities` that lie beyond the bound; `rhat` is the largest R-hat of
    either: where it is large the Monte Carlo error, and so the test, is void.
    """
    error = np.hypot(a.table["mcse_mean"], b.table["mcse_mean"])
    z = ((a.table["mean"] - b.table["mean"]) / error).abs()
    return {
        "largest": float(z.max()),
        "where": str(z.idxmax()),
        "beyond": int((z > BOUND).sum()),
        "num_quantities": len(z),
        "rhat": max(float(one.table["rhat"].max()) for one in (a, b)),
    }


def from_nuts(held_out: Mapping[Cell, HeldOut], cell: Cell) -> dict[str, float]:
    """Measure a variational cell's distance from NUTS on its problem and data, by its engine or else by the other.

    It has the columns `from_nuts_in_sds` and so on; none where NUTS did not run, or for NUTS itself.
    """
    truths = {
        c.engine: h
        for c, h in held_out.items()
        if (c.data, c.problem, c.method) == (cell.data, cell.problem, "nuts")
    }
    if cell.method == "nuts" or not truths:
        return {}
    (truth, *_) = (truths[e] for e in (cell.engine, *ENGINES) if e in truths)
    return {f"from_nuts_{name}": v for name, v in gap(held_out[cell], truth).items()}


def agreements(held_out: Mapping[Cell, HeldOut]) -> Frame:
    """Compare the engines' NUTS with each other, a row a problem that both sampled."""
    sampled = {(c.data, c.problem, c.engine): h for c, h in held_out.items() if c.method == "nuts"}
    rows = []
    for data, problem in dict.fromkeys(key[:2] for key in sampled):
        keys = [(data, problem, engine) for engine in ENGINES]
        pair = [sampled[key] for key in keys if key in sampled]
        if len(pair) == len(ENGINES):
            where = {"data": data} if data else {}
            rows.append({**where, "problem": problem, **agree(*pair)})
    return Frame.of(rows)


def void(frames: Frames, row: Row) -> bool:
    """Tell whether NUTS is no truth: its chains disagree on f for a row's problem and engine, or it did not run."""
    alike = {name: row[name] for name in ("data", "problem", "engine") if name in row}
    nuts = frames["cells"].find(**alike, method="nuts")
    return nuts is None or nuts["prediction_rhat"] is None or nuts["prediction_rhat"] > MAX_RHAT


def advi(**wanted: str) -> Callable[[Frames], Frame]:
    """Select cells that are compared with NUTS."""
    return lambda frames: frames["cells"].known("from_nuts_in_sds").where(**wanted)


_SDS, _TO_NUTS = "posterior sds, rms", "ratio to NUTS"
ENGINES_AGREE = RowTable(
    "NUTS in Stan against NUTS in NumPyro: means of f at the held-out points and of `sigma`, none of which notices "
    "swapped or rescaled units",
    (
        Field("parametrisation", "problem"),
        Field("compared", "num_quantities", unit="means"),
        Field(
            "largest difference",
            "largest",
            decimals=2,
            unit="MCSE",
            flag=at_most(BOUND),
            note=lambda row: f"at `{row['where']}`",
        ),
        Field("beyond", "beyond", unit=f"{BOUND:g} MCSE", flag=at_most(0)),
        Field("R-hat", "rhat", 3, 3, "largest", flag=at_most(RHAT, otherwise="warn")),
    ),
    over="engines",
)
FROM_NUTS = RowTable(
    "ADVI against NUTS with the same parametrisation, held-out points",
    (
        Field("posterior", "label"),
        Field(
            "shift of the mean", "from_nuts_in_sds", 3, 2, _SDS, at_most(SHIFT, otherwise="warn")
        ),
        Field("by chance", "from_nuts_floor_in_sds", decimals=2, unit=_SDS),
        Field("shift", "from_nuts_rms", decimals=3, unit="units of y, rms"),
        Field("sd of f", "from_nuts_sd_ratio", decimals=2, unit=_TO_NUTS),
        Field("predictive sd", "from_nuts_predictive_sd_ratio", decimals=2, unit=_TO_NUTS),
        Field("k-hat", "khat", decimals=2),
        Field("ELBO", "elbo", decimals=1, unit="nats, last"),
        Field("converged", "converged"),
    ),
    over=advi(),
)
VERDICTS_CHAPTER = Chapter(
    "What the paper says, and what was measured",
    "Every statement is tried in several comparisons, which are listed at the end. A data set is left out where "
    f"the chains of NUTS disagree on f (R-hat above {MAX_RHAT:g} at a held-out point): then NUTS itself is not the "
    "truth.",
    (STATEMENTS,),
)
AGREEMENT_CHAPTER = Chapter(
    "Do the engines agree?",
    "The same model was written twice. If both are right and both samplers have found the posterior, their "
    "predictive means differ by Monte Carlo error alone.",
    (ENGINES_AGREE,),
)


def engines_agree(frames: Frames) -> str:
    """Say in a sentence whether the engines' NUTS agree; nothing where one engine ran."""
    engines = frames["engines"]
    if not engines:
        return ""
    differ = [row for row in engines if row["beyond"]]
    largest = max(engines.column("largest"))
    what = "posteriors" if engines.rows[0].get("data") else "parametrisations"
    if not differ:
        return (
            f"NUTS in Stan and in NumPyro agree in every predictive mean of all {len(engines)} {what}, to within "
            f"{largest:.1f} Monte Carlo errors."
        )
    apart = sum(row["rhat"] > MAX_RHAT for row in differ)
    return (
        f"NUTS in Stan and in NumPyro differ by more than {BOUND:g} Monte Carlo errors in {len(differ)} of "
        f"{len(engines)} {what} ({', '.join(dict.fromkeys(row['problem'] for row in differ))}; at most {largest:.1f})"
        + (f", in {apart} of which chains of either disagree." if apart else ".")
    )
