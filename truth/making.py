"""Make a reference posterior of a problem with `python -m onebasin.truth.making NAME`.

The recipe is from posteriordb, `doc/REFERENCE_POSTERIOR_DEFINITION.md`. Ten NUTS chains run, and every tenth draw is
kept. Thinning increases while kept draws are correlated, until the criteria of posteriordb hold (`checks`). Chains are
stored in the folder `chains` next to the files. Repeat the command to resume; more thinning extends the same chains.

The posterior of a model with a symmetry is described in a canonical labelling (`Labelling`). The posterior of a model
with ordered components is made from draws of the same model without the order (`one_copy`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats.base import array_stats

from onebasin import inference
from onebasin.analysis.alignment import align
from onebasin.analysis.discovery.resolve import resolve
from onebasin.analysis.summaries.summary import deciding, rhat_of_entries
from onebasin.base.files.netcdf import write_tree
from onebasin.base.files.writing import replacing
from onebasin.base.processes.libraries import prepare_libraries
from onebasin.base.run_log import notice
from onebasin.base.text import json_safe
from onebasin.inference.runs.posterior import machine, versions
from onebasin.models.symmetry.blocks import spell, to_json
from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.references import FOLDER, names
from onebasin.posteriors.view import View, as_view

from .labelling import Labelling, one_copy
from .problems import PROBLEMS, Problem

DRAWS = 1000
"""Number of kept draws per chain (ten chains have 10,000 in all), and number of draws in the package's file."""
NUM_DRAWS, RHAT, LAG1, EFMI, MIN_CHAINS = 10_000, 1.01, 0.05, 0.2, 4  # Criteria of posteriordb.
BY_THINNING = ("ess_within_bounds", "abs_mean_lag1_ac_below_0_05", "r_hat_below_1_01")
"""Names of the checks that stronger thinning can fix."""


# Criteria


def _table(draws: Draws) -> pd.DataFrame:
    """Compute moments and quantiles with errors, R-hat, ESS and lag-1 autocorrelation.

    ESS, R-hat and autocorrelation of constant parameters are NaN.
    """
    quantiles = {"q5": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
    rows = {}
    for name, x in zip(draws.names, np.moveaxis(draws.values, -1, 0), strict=True):
        x = np.ascontiguousarray(x, np.float64)
        row: dict[str, float] = {"mean": x.mean(), "sd": x.std(ddof=1)}
        row |= {q: np.quantile(x, place) for q, place in quantiles.items()}
        if row["sd"] <= 1e-12 * abs(row["mean"]):
            row |= {"sd": 0.0} | {f"mcse_{word}": 0.0 for word in ("mean", "sd", *quantiles)}
            rows[name] = row | dict.fromkeys(("ess_bulk", "ess_tail", "rhat", "lag1"), np.nan)
            continue
        row |= {f"mcse_{word}": array_stats.mcse(x, method=word) for word in ("mean", "sd")}
        for q, place in quantiles.items():
            row[f"mcse_{q}"] = array_stats.mcse(x, method="quantile", prob=place)
        row["ess_bulk"] = array_stats.ess(x, method="bulk")
        row["ess_tail"] = array_stats.ess(x, method="tail", prob=(0.05, 0.95))
        gap = x - x.mean(axis=1, keepdims=True)
        lag1 = (gap[:, 1:] * gap[:, :-1]).sum(axis=1) / (gap**2).sum(axis=1)
        rows[name] = row | {"rhat": array_stats.rhat(x), "lag1": lag1.mean()}
    return pd.DataFrame.from_dict(rows, orient="index")


def _efmi(energy: np.ndarray) -> list[float]:
    """Return the E-FMI of each chain from energies (chain, draw)."""
    return [float(np.square(np.diff(e)).mean() / e.var()) if e.var() else 0.0 for e in energy]


def checks(table: pd.DataFrame, kept: np.ndarray, every: xr.Dataset) -> dict[str, bool]:
    """Apply the criteria to a table.

    `kept` has the energies of the kept draws, and `every` the statistics of all iterations. ESS must lie within four
    standard errors of the number of draws S, as for independent draws. The standard error is sqrt(7 S), and the level
    of four standard errors applies to all estimates together.
    """
    free = table[table["sd"] > 0]
    ess = free[["ess_bulk", "ess_tail"]].to_numpy()
    normal = NormalDist()
    half = -normal.inv_cdf(normal.cdf(-4) / max(ess.size, 1)) * math.sqrt(7 * kept.size)
    return {
        "ndraws_is_10k": kept.size == NUM_DRAWS,
        "nchains_is_gte_4": len(kept) >= MIN_CHAINS,
        "ess_within_bounds": bool((np.abs(ess - kept.size) < half).all()),
        "r_hat_below_1_01": bool((free["rhat"] < RHAT).all()),
        "efmi_above_0_2": min(*_efmi(kept), *_efmi(every[schema.ENERGY].values)) > EFMI,
        "abs_mean_lag1_ac_below_0_05": bool((free["lag1"].abs() < LAG1).all()),
        "no_divergent_transitions": not every[schema.DIVERGING].values.any(),
    }


def _diagnostics(table: pd.DataFrame, kept: np.ndarray, every: xr.Dataset) -> dict[str, Any]:
    """Return the diagnostics under the keys that posteriordb's files use."""
    efmi = "expected_fraction_of_missing_information"
    numbers: dict[str, Any] = {
        "effective_sample_size_bulk": table["ess_bulk"],
        "effective_sample_size_tail": table["ess_tail"],
        "r_hat": table["rhat"],
        "lag1_autocorrelation": table["lag1"],
        efmi: _efmi(kept),
        f"{efmi}_unthinned": _efmi(every[schema.ENERGY].values),
    }
    return {
        "diagnostic_information": {"names": list(table.index)},
        "ndraws": kept.size,
        "nchains": len(kept),
        "divergent_transitions": every[schema.DIVERGING].values.sum(axis=1).tolist(),
        **{word: [float(f"{value:.6g}") for value in found] for word, found in numbers.items()},
    }


# Files of a problem


def make(
    problem: Problem,
    folder: Path,
    *,
    seed: int = 1,
    draws: int = DRAWS,
    thin: int = 10,
    max_thin: int = 40,
    labelling: Labelling | None = None,
    progress: bool = False,
) -> bool:
    """Make the reference of a problem in a folder, and return whether it passes all criteria.

    Every `thin`-th draw is kept, `draws` per chain. `thin` is doubled up to `max_thin` while kept draws are correlated.
    By default, the labelling comes from the package's reference of the same name; without one, it is fitted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source = problem.quotient_of or problem
    if labelling is None and problem.name in names():
        kept = json.loads((FOLDER / problem.name / f"{problem.name}.info.json").read_text())
        labelling = Labelling.from_json(kept["labelling"]) if kept["labelling"] else None
    while True:
        settings = replace(source.settings, draws=draws * thin)
        sampled, target = source.target(), problem.target()
        engine = target.engines[0]
        run = inference.infer(
            sampled,
            settings,
            engine=engine,
            seed=seed,
            checkpoint=folder / "chains",
            predictive_mb=0,
            symmetry=False,
            progress=progress,
        )
        stats = run["sample_stats"].to_dataset()
        every = stats[[schema.ENERGY, schema.DIVERGING]].rename(draw="iteration").load()
        tree = _thinned(run, thin)
        run.close()
        view = as_view(tree)
        variables = tuple(deciding(view)[0])
        evidence: dict[str, Any] = {
            "thin": thin,
            "largest_r_hat_as_sampled": _largest_rhat(view, variables),
        }
        quotient = None
        if problem.quotient_of is not None:
            tree, quotient = one_copy(tree, sampled, target)
        view = as_view(tree)
        symmetry = resolve(view).equal_modes
        if symmetry:
            labelling = labelling or Labelling.fitted(view, symmetry)
            tree = align(view, symmetry, reference=labelling.target, restarts=4).posterior
            rest = as_view(tree).part("chain", slice(view.num_chains // 2, None))
            evidence["largest_r_hat_of_chains_without_part_in_labelling"] = _largest_rhat(
                rest, variables
            )
        view = as_view(tree)
        energy = tree["sample_stats"].to_dataset()[schema.ENERGY].values
        tables = {
            "parameters": _table(view.draws(variables)),
            "invariants": _table(_measured(view, problem)),
        }
        made = {word: checks(table, energy, every) for word, table in tables.items()}
        enough = all(made[word][check] for word in made for check in BY_THINNING)
        if enough or 2 * thin > max_thin:
            break
        notice(
            f"draws thinned by {thin} are correlated, so the chains are extended and thinned by {2 * thin}"
        )
        thin *= 2
    info = {
        "name": problem.name,
        "title": problem.title,
        "inference": {
            "method": f"{engine}_nuts",
            "method_arguments": {
                "chains": len(energy),
                "iter": settings.warmup + settings.draws,
                "warmup": settings.warmup,
                "thin": thin,
                "seed": seed,
                "control": {
                    "adapt_delta": settings.target_acceptance,
                    "max_treedepth": settings.max_tree_depth,
                },
                "settings": asdict(settings),
            },
        },
        "diagnostics": _diagnostics(tables["parameters"], energy, every),
        "diagnostics_of_invariants": _diagnostics(tables["invariants"], energy, every),
        "checks_made": made["parameters"],
        "checks_of_invariants": made["invariants"],
        "symmetry": json.loads(to_json(symmetry)),
        "symmetry_in_words": [spell(block) for block in symmetry],
        "symmetry_described": [block.describe() for block in symmetry],
        "labelling": labelling.to_json() if symmetry and labelling else None,
        "quotient": quotient,
        "dimensions": {name: list(tree["posterior"][name].shape[2:]) for name in variables},
        "evidence": evidence,
        "program_name": str(tree.attrs.get(schema.PROGRAM_NAME, "")),
        "data_sha256": str(tree.attrs.get(schema.DATA_SHA256, "")),
        "references": list(problem.references),
        "keywords": list(problem.keywords),
        "added_by": "onebasin.truth.making",
        "added_date": schema.now()[:10],
        "versions": versions(),
        "machine": machine(engine),
    }
    tree.attrs[schema.SYMMETRY] = to_json(symmetry)
    _write(folder, problem.name, tree, variables, every, tables, info)
    return all(passed for each in made.values() for passed in each.values())


def _thinned(run: xr.DataTree, thin: int) -> xr.DataTree:
    """Load every `thin`-th draw, including the last of each chain, into memory."""
    kept = {}
    for name, node in run.children.items():
        dataset = node.to_dataset()
        if "draw" in dataset.dims:
            dataset = dataset.isel(draw=slice(thin - 1, None, thin))
            dataset = dataset.assign_coords(draw=np.arange(dataset.sizes["draw"]))
        kept[str(name)] = dataset.load()
    tree = xr.DataTree.from_dict(kept)
    tree.attrs = dict(run.attrs)
    return tree


def _largest_rhat(view: View, variables: tuple[str, ...]) -> float | None:
    if view.num_chains < 2:
        return None
    found = [rhat_of_entries(values) for values in view.draws(variables).blocks()]
    return round(float(np.nanmax(np.concatenate(found))), 5)


def _measured(view: View, problem: Problem) -> Draws:
    """Compute the invariants of a problem; an invariant `f` with several numbers has names `f[0]`, `f[1]`, ..."""
    values = {name: np.asarray(view.values(name), np.float64) for name in view.variables}
    entries: list[str] = []
    columns = [np.empty((view.num_chains, view.num_draws, 0))]
    for name, function in problem.invariants.items():
        of = np.asarray(function(values), np.float64)
        flat = of.reshape(*of.shape[:2], -1)
        entries += [name] if of.ndim == 2 else [f"{name}[{i}]" for i in range(flat.shape[2])]
        columns.append(flat)
    return Draws(tuple(entries), np.concatenate(columns, axis=-1))


def _write(
    folder: Path,
    name: str,
    tree: xr.DataTree,
    variables: tuple[str, ...],
    every: xr.Dataset,
    tables: Mapping[str, pd.DataFrame],
    info: Mapping[str, Any],
) -> None:
    """Write all draws, a thousand draws, the summary, and the information with checksums of the other files."""
    posterior = tree["posterior"].to_dataset()[list(variables)]
    stats = tree["sample_stats"].to_dataset()
    whole = {"posterior": posterior, "sample_stats": stats, "trajectory": every}
    some = slice(0, None, max(1, posterior.sizes["chain"] * posterior.sizes["draw"] // DRAWS))
    chosen = [n for n in (schema.LP, schema.ENERGY, schema.DIVERGING) if n in stats]
    few = {
        "posterior": posterior.isel(draw=some).astype(np.float32),
        "sample_stats": stats[chosen].isel(draw=some),
    }
    few |= {g: tree[g].to_dataset() for g in schema.DATA_GROUPS if g in tree.children}
    left_out = (schema.COMMAND, schema.WALL_TIME, schema.FINGERPRINT)
    sums = {}
    for part, groups in (("full.nc", whole), ("draws.nc", few)):
        for dataset in groups.values():
            for variable in dataset.variables.values():
                packing = {"zlib": True, "complevel": 6, "shuffle": True}
                variable.encoding = packing if variable.ndim else {}
        written = xr.DataTree.from_dict(groups)
        written.attrs = {k: v for k, v in tree.attrs.items() if k not in left_out}
        write_tree(written, folder / f"{name}.{part}")
        sums[part] = hashlib.sha256((folder / f"{name}.{part}").read_bytes()).hexdigest()
    rows = {
        word: {
            str(row): [float(f"{value:.10g}") for value in values]
            for row, values in zip(table.index, table.to_numpy(), strict=True)
        }
        for word, table in tables.items()
    }
    summary = json.dumps(json_safe({"columns": list(tables["parameters"].columns), **rows}))
    # One row per line keeps the file small and its diffs readable.
    summary = summary.replace('], "', '],\n"').replace('{"', '{\n"') + "\n"
    sums["summary.json"] = hashlib.sha256(summary.encode()).hexdigest()
    text = json.dumps(json_safe({**info, "sha256": sums}), indent=1, ensure_ascii=False) + "\n"
    for part, content in (("summary.json", summary), ("info.json", text)):
        with replacing(folder / f"{name}.{part}") as file:
            file.write_text(content, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return exit code 1 if the reference fails a criterion."""
    parser = argparse.ArgumentParser(
        prog="python -m onebasin.truth.making",
        description="Make a reference posterior. Repeat the command to resume.",
    )
    parser.add_argument("name", metavar="NAME", choices=PROBLEMS, help=", ".join(PROBLEMS))
    parser.add_argument("--seed", type=int, default=1, help="seed of the chains")
    parser.add_argument("--out", type=Path, help="output folder, by default NAME-seedSEED")
    given = parser.parse_args(arguments)
    prepare_libraries()
    folder = given.out or Path(f"{given.name}-seed{given.seed}")
    passes = make(PROBLEMS[given.name], folder, seed=given.seed, progress=True)
    outcome = "passes" if passes else "fails: see `checks_made` in its .info.json"
    sys.stdout.write(f"wrote {folder}; the reference {outcome}\n")
    return 0 if passes else 1


if __name__ == "__main__":
    raise SystemExit(main())
