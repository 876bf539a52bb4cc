"""Compare chains that start from a fit with chains that warm up: `python -m benchmarks.fits.nuts --out RESULTS.json`.

The gain is the smallest bulk ESS of a parameter per gradient, relative to the default. Gradients are counted over
warmup, draws and fit; a log density counts as 0.4 gradients. Only the number of warmup iterations is known. Each counts
as much as a draw, although it takes more gradients. `--samplers` compares different samplers.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from onebasin.base.processes.libraries import prepare_libraries

from .__main__ import programs

DENSITY = 0.4
"""Cost of a log density, in gradients."""
SAMPLERS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("nuts", {}),
    "fit": ("nuts", {"init": "fit"}),
    "dense": ("nuts", {"metric": "dense"}),
    "mclmc": ("mclmc", {}),
    "adjusted": ("mclmc", {"adjusted": True}),
}


def measured(tree: Any) -> dict[str, Any]:
    """Return the ESS, R-hat, divergences and gradients of a run."""
    import onebasin as ob

    settings, diagnosis = json.loads(tree.attrs["settings"]), ob.diagnose(tree)
    warmed = "adaptation" not in tree.children or not tree.attrs.get("fit_start", "").startswith(
        "Chains start"
    )
    kept = settings["draws"] * settings.get("thin", 1)
    iterations = 1 + (settings.get("warmup", 0) / kept if warmed else 0)
    price = tree.attrs.get("fit_gradient_evaluations", 0)
    price += DENSITY * tree.attrs.get("fit_log_density_evaluations", 0)
    stats = tree["sample_stats"]
    return {
        "ess": diagnosis.ess_bulk.value,
        "tail": diagnosis.ess_tail.value,
        "rhat": diagnosis.rhat.value,
        "divergences": int(stats["diverging"].sum()) if "diverging" in stats else 0,
        "gradients": iterations * tree.attrs["gradient_evaluations"] + price,
        "price": price,
        "why": tree.attrs.get("fit_start", ""),
    }


def main() -> None:
    """Run the comparison, print one line per program and seed, and write all numbers."""
    import onebasin as ob

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--engine")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--samplers", nargs="+", default=["fit"], choices=list(SAMPLERS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    prepare_libraries()
    rows = []
    for name, target in programs(options.words):
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            found = {}
            for sampler in ("default", *options.samplers):
                method, how = SAMPLERS[sampler]
                try:
                    tree = ob.infer(
                        target, method, engine=options.engine, seed=seed, predictive_mb=0, **how
                    )
                except ob.OnebasinError as error:
                    print(f"{name:24} {seed} {sampler} failed: {str(error)[:120]}", flush=True)
                    break
                found[sampler] = measured(tree)
            for sampler in options.samplers:
                if sampler in found:
                    row = compared(found["default"], found[sampler])
                    rows.append({"name": name, "seed": seed, "sampler": sampler, **row})
                    print(line(rows[-1]), flush=True)
    for sampler in options.samplers:
        gains = sorted(row["gain"] for row in rows if row["sampler"] == sampler)
        if gains:
            print(
                f"{sampler}: gain {gains[0]:.2f} to {gains[-1]:.2f}, median {statistics.median(gains):.2f}"
            )
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def compared(default: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return both runs, with the gain of the second."""
    gains = {
        key: other[name] / other["gradients"] / (default[name] / default["gradients"])
        for key, name in (("gain", "ess"), ("gain_of_tail", "tail"))
    }
    return {**gains, "default": default, "other": other}


def line(row: dict[str, Any]) -> str:
    """Format one comparison as a line."""
    one, other = row["default"], row["other"]
    both = (
        f"R-hat {one['rhat']:.3f} {other['rhat']:.3f} divergences {one['divergences']} {other['divergences']} "
        f"ESS {one['ess']:.0f} {other['ess']:.0f} gradients {one['gradients']:.0f} {other['gradients']:.0f}"
    )
    head = f"{row['name']:24} {row['seed']} {row['sampler']:8}"
    return f"{head} gain {row['gain']:6.2f} tail {row['gain_of_tail']:6.2f} {both} {other['why']}"


if __name__ == "__main__":
    main()
