"""Make a reference posterior: `python -m onebasin.truth.making NAME` for one of the problems.

The recipe is that of posteriordb: ten chains of NUTS, of which every tenth draw is kept, or fewer while kept draws are
correlated, until its criteria hold (`checks`). Chains are kept in the folder `chains` next to the files: repeat the
command to resume, and more thinning continues the same chains. Source: posteriordb,
`doc/REFERENCE_POSTERIOR_DEFINITION.md`.

The posterior of a model with a symmetry is described in a canonical labelling (`Labelling`). That of a model with its
components in order is made of draws of the same model without the order (`one_copy`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import jax
import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats.base import array_stats

from onebasin import inference
from onebasin.analysis.alignment import align
from onebasin.analysis.alignment.reference import AlignmentTarget
from onebasin.analysis.discovery.resolve import resolve
from onebasin.analysis.summaries.judged_draws import deciding, rhat_of_entries
from onebasin.base.errors import StudyError
from onebasin.base.files.netcdf import write_tree
from onebasin.base.files.writing import replacing
from onebasin.base.jsonable import json_safe
from onebasin.base.precision import precision
from onebasin.base.processes.libraries import prepare_jax, quieten_stan
from onebasin.base.run_log import notice
from onebasin.inference import log_density
from onebasin.inference.density.numpyro import NumpyroDensity
from onebasin.inference.density.symmetry import TOLERANCE
from onebasin.inference.runs import provenance
from onebasin.inference.runs.posterior import build
from onebasin.inference.runs.provenance import origin_of
from onebasin.models import Symmetry, Target
from onebasin.models.symmetry import words
from onebasin.models.symmetry.blocks import Block, axes_of, discrete, equal_modes, to_json
from onebasin.models.symmetry.closest import canonical, ordered_by
from onebasin.models.symmetry.elements import Permuted, Swapped
from onebasin.models.symmetry.group import Group
from onebasin.models.symmetry.plain import plain_view
from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws, event_shapes
from onebasin.posteriors.references import FOLDER, names
from onebasin.posteriors.view import View, as_view

from .problems import PROBLEMS, Problem

DRAWS = 1000
"""Draws kept of each of ten chains, 10,000 in all; and draws of all chains in the file of the package."""
NUM_DRAWS, RHAT, LAG1, EFMI, MIN_CHAINS = 10_000, 1.01, 0.05, 0.2, 4  # posteriordb's criteria.
BY_THINNING = ("ess_within_bounds", "abs_mean_lag1_ac_below_0_05", "r_hat_below_1_01")
"""Checks that more thinning can fix."""
Arrays = dict[str, np.ndarray]


# The canonical labelling: centres and scales, fixed once, with which every draw is matched.


@dataclass(frozen=True, eq=False)
class Labelling:
    """Replace a draw by the one of its equal copies that minimises sum(((x - centre) / scale)^2) over moved entries.

    Centres and scales are the moments of the diagonal Gaussian that `align` fits to the first half of the chains,
    rounded to five digits and in canonical order. They are part of the reference: the draws of another seed are matched
    with the same numbers.
    """

    centre: Mapping[str, np.ndarray]  # (*event) of every variable that the symmetry moves.
    scale: Mapping[str, np.ndarray]
    canonical: str  # The order of the centres, in words.

    def to_json(self) -> dict[str, Any]:
        """Return the labelling as the file's information records it."""
        return {
            "rule": "Every draw is replaced by the one of its equal copies that minimises the sum, over all entries "
            "that the symmetry moves, of ((value - centre) / scale)^2; centre and scale are fixed numbers, fitted to "
            "the first half of the chains of the first reference.",
            "canonical": self.canonical,
            "centre": {name: value.tolist() for name, value in self.centre.items()},
            "scale": {name: value.tolist() for name, value in self.scale.items()},
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Labelling:
        """Read it back."""
        centre, scale = (
            {name: np.asarray(value, np.float64) for name, value in said[word].items()}
            for word in ("centre", "scale")
        )
        return cls(centre, scale, str(said["canonical"]))

    @classmethod
    def fitted(cls, view: View, symmetry: Symmetry) -> Labelling:
        """Fit centres and scales to the first half of the chains."""
        half = view.part("chain", slice(0, max(1, view.num_chains // 2)))
        target = align(half, symmetry, restarts=2).target
        centre = {name: np.array(value, np.float64) for name, value in target.centre.items()}
        scale = {
            name: np.broadcast_to(
                target.units.unit[name] / np.sqrt(np.asarray(target.reference.weight[name])),
                centre[name].shape,
            ).copy()
            for name in centre
        }
        said = []
        for block in plain_view(discrete(symmetry), event_shapes(view.posterior)).blocks:
            centre, scale, rule = _ordered(block, centre, scale)
            said.append(rule)
        for arrays in (centre, scale):
            for name, values in arrays.items():
                rounded = [float(f"{value:.4e}") for value in values.ravel()]
                arrays[name] = np.array(rounded).reshape(values.shape)
        return cls(centre, scale, "; ".join(said))


def _ordered(block: Block[Any], centre: Arrays, scale: Arrays) -> tuple[Arrays, Arrays, str]:
    """Move centres and scales by one element: signs first, then places."""
    if not block.axes:  # whole variables that change sign or become complements
        name = (*block.flipped, *block.complemented)[0]
        values = centre[name].ravel()
        if block.flipped:
            turn = values[np.abs(values).argmax()] < 0
            said = f"the sign of {', '.join(block.flipped)} by which the largest centre of {name} is positive"
        else:
            turn = values.mean() > 0.5
            said = f"{', '.join(block.complemented)} by which the mean of {name}'s centres is at most 1/2"
        return _moved(block, Swapped(np.array([turn])), centre), scale, said
    name = (*block.flipped, *block.axes)[0]
    axis = axes_of(block.axes[name])[0]
    rows = np.moveaxis(centre[name], axis, 0).reshape(centre[name].shape[axis], -1)
    signs = None
    said = f"places of {', '.join(block.axes)} in increasing order of the mean of {name}'s centres"
    if block.flipped:
        largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)[:, 0]
        signs = np.where(largest < 0, -1.0, 1.0)
        rows = rows * signs[:, None]
        said = f"signs by which the largest centre of each part of {name} is positive, then {said}"
    order = np.argsort(rows.mean(axis=1), kind="stable")
    part = Permuted(order[None], None if signs is None else signs[order][None])
    scaled = block.of_variances(part)
    return _moved(block, part, centre), _moved(*scaled, scale) if scaled else scale, said


def _moved(block: Block[Any], part: Any, values: Arrays) -> Arrays:
    """Move one point, its variables without axes of draws."""
    moved = block.act({name: value[None] for name, value in values.items()}, *part)
    return {name: np.asarray(value)[0] for name, value in moved.items()}


# One copy of a posterior: draws of a model with a symmetry as draws of the same model with its components in order.


def one_copy(
    run: xr.DataTree, sampled: Target, target: Target
) -> tuple[xr.DataTree, dict[str, Any]]:
    """Put every draw of `sampled` in order, as a posterior of `target`, which has the same variables; say how.

    Let G be the finite group of the first model's symmetry, let both have normalised priors p and q, and the same
    likelihood. Points in order have probability 1 / |G| under p. So if q = |G| p at all of them, q has no mass
    elsewhere, and drawing from the second posterior is drawing from the first and putting components in order. That is
    checked at every draw: it is a `StudyError` if it does not hold. Chains so run where there is no wall at equal
    biases. `lp` is that of the target, every other statistic that of the chains.
    """
    symmetry = equal_modes(sampled.symmetry)
    posterior = run[schema.POSTERIOR].to_dataset()
    lead = (posterior.sizes["chain"], posterior.sizes["draw"])
    values = {
        str(name): array.values.reshape(-1, *array.shape[2:])
        for name, array in posterior.data_vars.items()
    }
    moved = canonical(symmetry, values)
    draws = {n: v.reshape(*lead, *v.shape[1:]) for n, v in moved.items()}
    stats = {str(n): a.values for n, a in run[schema.SAMPLE_STATS].to_dataset().data_vars.items()}
    with precision("float64"):
        # With the Jacobian of the target's own charts, as a chain of it would record.
        density = NumpyroDensity.of(target)
        vectors = jax.vmap(density.unconstrain)({name: moved[name] for name in density.names})
        lp = np.asarray(jax.jit(jax.vmap(density.log_density))(vectors), np.float64)
    stats[schema.LP] = lp.reshape(lead)
    tree = build(target, draws, stats, {}, origin=origin_of(target, "numpyro"), predictive_mb=0)
    tree.attrs = {**run.attrs, **tree.attrs}
    difference = (log_density(target, tree) - log_density(sampled, tree)).values
    log_copies = Group(symmetry, {n: v.shape[1:] for n, v in moved.items()}).log_order
    if not np.all(np.abs(difference - log_copies) <= TOLERANCE):
        raise StudyError(
            f"`quotient_of` of {target.name} is {sampled.name}, but at draws of that model with their components in "
            f"order the log densities differ by {difference.min():.6g} to {difference.max():.6g} nats instead of "
            f"{log_copies:.6g}, the logarithm of the number of equal copies; state the two with the same likelihood, "
            "and with priors that are normalised."
        )
    increasing = [ordered_by(block, moved) for block in symmetry if block.axes]
    unlike = [(moved[n] != v).reshape(len(v), -1).any(axis=1) for n, v in values.items()]
    return tree, {
        "rule": f"Every draw of {sampled.name} is replaced by the one of its equal copies in which "
        f"{' and '.join(increasing)} increases.",
        "of": sampled.name,
        "symmetry": [words.spell(block) for block in symmetry],
        "increasing": increasing,
        "share_moved": round(float(np.any(unlike, axis=0).mean()), 5),
        "log_copies": float(log_copies),
        "log_density_difference": [float(difference.min()), float(difference.max())],
    }


# The criteria.


def _table(draws: Draws) -> pd.DataFrame:
    """Moments and quantiles with their errors, R-hat, ESS and lag-1 autocorrelation; none of what does not vary."""
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
    """E-FMI of each chain's energies (chain, draw)."""
    return [float(np.square(np.diff(e)).mean() / e.var()) if e.var() else 0.0 for e in energy]


def checks(table: pd.DataFrame, kept: np.ndarray, every: xr.Dataset) -> dict[str, bool]:
    """Apply the criteria to a table; `kept` are energies of the kept draws, `every` statistics of all iterations.

    ESS has to lie within four standard errors, sqrt(7 S), of the number of draws S, as that of independent draws does;
    the level of four standard errors is that of all estimates together.
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
    """Return the diagnostics under the keys of posteriordb's files."""

    def short(numbers: Sequence[float]) -> list[float]:
        return [float(f"{value:.6g}") for value in numbers]

    return {
        "diagnostic_information": {"names": list(table.index)},
        "ndraws": kept.size,
        "nchains": len(kept),
        "effective_sample_size_bulk": short(list(table["ess_bulk"])),
        "effective_sample_size_tail": short(list(table["ess_tail"])),
        "r_hat": short(list(table["rhat"])),
        "lag1_autocorrelation": short(list(table["lag1"])),
        "divergent_transitions": every[schema.DIVERGING].values.sum(axis=1).tolist(),
        "expected_fraction_of_missing_information": short(_efmi(kept)),
        "expected_fraction_of_missing_information_unthinned": short(
            _efmi(every[schema.ENERGY].values)
        ),
    }


# From a problem to files.


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
    """Make the reference of a problem in a folder; tell whether it passes all criteria.

    One draw in `thin` is kept, `draws` of each chain. `thin` is doubled up to `max_thin` while kept draws are
    correlated. The labelling is by default that of the package's reference of the same name, else it is fitted.
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
            rule = AlignmentTarget.of(labelling.centre, labelling.scale)
            tree = align(view, symmetry, reference=rule, restarts=4).posterior
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
        notice(f"one draw in {thin} is not enough; the chains continue, to keep one in {2 * thin}")
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
        "symmetry_in_words": [words.spell(block) for block in symmetry],
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
        "versions": provenance.versions(),
        "machine": provenance.machine(engine),
    }
    tree.attrs[schema.SYMMETRY] = to_json(symmetry)
    _write(folder, problem.name, tree, variables, every, tables, info)
    return all(passed for each in made.values() for passed in each.values())


def _thinned(run: xr.DataTree, thin: int) -> xr.DataTree:
    """Every `thin`-th draw, the last of each chain among them, in memory."""
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
    """Compute the problem's invariants, of several numbers named `f[0]`, `f[1]`, ..."""
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
    """Write all draws, a thousand of them, the summary, and the information with checksums of these."""
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
    # A row a line: small, and its changes can be read.
    summary = summary.replace('], "', '],\n"').replace('{"', '{\n"') + "\n"
    sums["summary.json"] = hashlib.sha256(summary.encode()).hexdigest()
    text = json.dumps(json_safe({**info, "sha256": sums}), indent=1, ensure_ascii=False) + "\n"
    for part, content in (("summary.json", summary), ("info.json", text)):
        with replacing(folder / f"{name}.{part}") as file:
            file.write_text(content, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line; the exit code is 1 if the reference does not pass."""
    parser = argparse.ArgumentParser(
        prog="python -m onebasin.truth.making",
        description="Make a reference posterior. Repeat the command to resume.",
    )
    parser.add_argument("name", metavar="NAME", choices=PROBLEMS, help=", ".join(PROBLEMS))
    parser.add_argument("--seed", type=int, default=1, help="seed of the chains")
    parser.add_argument("--out", type=Path, help="folder of its files, by default NAME-seedSEED")
    given = parser.parse_args(arguments)
    prepare_jax()
    quieten_stan()
    folder = given.out or Path(f"{given.name}-seed{given.seed}")
    passes = make(PROBLEMS[given.name], folder, seed=given.seed, progress=True)
    outcome = "it passes" if passes else "it does not pass: see `checks_made` in its information"
    sys.stdout.write(f"wrote {folder}; {outcome}\n")
    return 0 if passes else 1


if __name__ == "__main__":
    raise SystemExit(main())
