"""`bin/stansummary` and `bin/diagnose` of an assembled home, with the options, columns and messages that CmdStan has.

cmdstanpy calls them in `fit.summary()` and `fit.diagnose()`. Draws are of Stan's CSV files, one a chain, warmup left
out. R-hat and effective sample sizes are those of ArviZ (`posteriors.rhat_ess`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onebasin.base.errors import FormatError
from onebasin.posteriors import rhat_ess
from onebasin.posteriors.stan_csv import ChainFile, check_together

LEAST_EBFMI = 0.3
LEAST_ESS_PER_DRAW = 0.001
LARGEST_RHAT = 1.01499
"""The largest number that is not more than 1.01 when rounded."""


@dataclass(frozen=True)
class _ChainDraws:
    names: tuple[str, ...]
    values: rhat_ess.Rows  # (column, chain, draw)
    depths: tuple[int, ...]  # Tree-depth limit of each chain.
    seconds: float  # Sampling time of all chains; NaN if a file does not say it.


def _read(paths: Sequence[str]) -> _ChainDraws:
    files = [ChainFile.of(Path(path)) for path in paths]
    for file in files:
        file.check()
    check_together(files)
    values = [np.concatenate(list(file.tables()))[file.skipped :] for file in files]
    return _ChainDraws(
        files[0].columns,
        np.moveaxis(np.stack(values), -1, 0),
        tuple(file.header.count("max_depth") or 10 for file in files),
        sum(file.header.seconds("Sampling") for file in files),
    )


def _varying(rows: rhat_ess.Rows) -> np.ndarray:
    """Tell which quantities are finite and vary; the others have no diagnostics."""
    flat = rows.reshape(len(rows), -1)
    return np.isfinite(flat).all(axis=1) & (np.ptp(flat, axis=1) > 0)


def _index_last_fastest(names: Sequence[str]) -> list[int]:
    """Places of columns with the last index running fastest; in the files the first one does."""
    first: dict[str, int] = {}
    keys = []
    for place, name in enumerate(names):
        words = [word.split(".") for word in name.split(":")]
        base = words[0][0]
        numbers = [int(n) for word in (words[0][1:], *words[1:]) for n in word if n.isdigit()]
        keys.append((first.setdefault(base, place), numbers, place))
    return [place for *_, place in sorted(keys)]


def _in_brackets(name: str) -> str:
    """Write `m.1.2` as `m[1,2]`, and a tuple's part `t.1:2.3` as `t[1].2[3]`."""
    parts = []
    for word in name.split(":"):
        base, *index = word.split(".")
        parts.append(f"{base}[{','.join(index)}]" if index else base)
    return ".".join(parts)


def stansummary(arguments: Sequence[str]) -> int:
    """Print a table of statistics of the draws, and write it as CSV."""
    import pandas as pd

    parser = argparse.ArgumentParser(
        prog="stansummary", description="Statistics of the draws of chains, one Stan CSV file each."
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-p", "--percentiles", default="5,50,95", help="by default 5,50,95")
    parser.add_argument("-s", "--sig_figs", type=int, choices=range(1, 19), metavar="1..18")
    parser.add_argument("-c", "--csv_filename", help="file to which the table is written too")
    parser.add_argument("-i", "--include_param", action="append", help="a column; repeatable")
    given = parser.parse_args(arguments)
    try:
        places = {word: float(word) / 100 for word in given.percentiles.split(",") if word.strip()}
    except ValueError:
        parser.error(f"--percentiles is {given.percentiles}: give numbers from 0 to 100.")
    if not all(0 < place < 1 for place in places.values()):
        parser.error(f"--percentiles is {given.percentiles}: give numbers from 0 to 100.")
    draws = _read(given.files)
    order = _index_last_fastest(draws.names)
    names = [_in_brackets(draws.names[place]) for place in order]
    if given.include_param:
        if unknown := [name for name in given.include_param if name not in names]:
            parser.error(f"--include_param: there is no column {unknown[0]}.")
        order = [p for p, name in zip(order, names, strict=True) if name in given.include_param]
        names = [name for name in names if name in given.include_param]
    rows = draws.values[order]
    flat = rows.reshape(len(rows), -1)
    varies = _varying(rows)
    columns = {"Mean": flat.mean(axis=1), "MCSE": np.full(len(rows), np.nan)}
    columns["StdDev"] = flat.std(axis=1, ddof=1)
    columns["MAD"] = 1.4826 * np.median(np.abs(flat - np.median(flat, axis=1)[:, None]), axis=1)
    columns |= {f"{word}%": np.quantile(flat, place, axis=1) for word, place in places.items()}
    columns |= {name: np.full(len(rows), np.nan) for name in ("ESS_bulk", "ESS_tail")}
    columns |= {"ESS_bulk/s": np.full(len(rows), np.nan), "R_hat": np.full(len(rows), np.nan)}
    columns["MCSE"][varies] = rhat_ess.mcse_mean(rows[varies])
    found = rhat_ess.diagnostics(rows[varies])
    columns["ESS_bulk"][varies], columns["ESS_tail"][varies] = found.ess_bulk, found.ess_tail
    columns["R_hat"][varies] = found.rhat
    if draws.seconds > 0:
        columns["ESS_bulk/s"] = columns["ESS_bulk"] / draws.seconds
    table = pd.DataFrame(columns, index=pd.Index(names, name="name"))
    if given.csv_filename:
        table.to_csv(given.csv_filename, float_format=f"%.{given.sig_figs or 6}g", na_rep="nan")
    digits = given.sig_figs or 2
    chain, length = rows.shape[1:]
    sys.stdout.write(
        f"Inference for Stan model, {chain} chains: each with {length} draws; {chain * length} in all.\n\n"
        f"{table.to_string(float_format=lambda value: f'{value:.{digits}g}', index_names=False)}\n"
    )
    return 0


def diagnose(arguments: Sequence[str]) -> int:
    """Print what is wrong with chains."""
    parser = argparse.ArgumentParser(
        prog="diagnose",
        description="Look for signs that chains, one Stan CSV file each, did not explore the posterior.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    draws = _read(parser.parse_args(arguments).files)
    checks = [*_sampler_checks(draws), *_convergence_checks(draws)]
    text = "\n".join(f"{heading}{wrong or fine}" for heading, wrong, fine in checks)
    none = "" if any(wrong for _, wrong, _ in checks) else ", no problems detected"
    sys.stdout.write(f"{text}\nProcessing complete{none}.\n")
    return 0


def _sampler_checks(draws: _ChainDraws) -> Iterator[tuple[str, str, str]]:
    """Yield a heading, what is wrong (empty if nothing is), and what is said otherwise."""
    own = dict(zip(draws.names, draws.values, strict=True))
    if (depths := own.get("treedepth__")) is not None:
        hit = [(depths[c] >= limit).sum() for c, limit in enumerate(draws.depths)]
        wrong = ""
        for limit in sorted({*draws.depths}):
            count = sum(int(n) for n, of in zip(hit, draws.depths, strict=True) if of == limit)
            wrong += (
                f"{_share(count, depths.size)} transitions hit the maximum treedepth limit of {limit}, or 2^{limit} "
                "leapfrog steps.\nTrajectories that are prematurely terminated due to this limit will result in slow "
                "exploration.\nFor optimal performance, increase this limit.\n"
            ) * bool(count)
        fine = "Treedepth satisfactory for all transitions.\n"
        yield "Checking sampler transitions treedepth.\n", wrong, fine
    if (divergent := own.get("divergent__")) is not None:
        count = int(np.count_nonzero(divergent))
        wrong = (
            f"{_share(count, divergent.size)} transitions ended with a divergence.\nThese divergent transitions "
            "indicate that HMC is not fully able to explore the posterior distribution.\nTry increasing adapt delta "
            "closer to 1.\nIf this doesn't remove all divergences, try to reparameterize the model.\n"
        ) * bool(count)
        fine = "No divergent transitions found.\n"
        yield "Checking sampler transitions for divergences.\n", wrong, fine
    if (energy := own.get("energy__")) is not None:
        flat, wrong = energy.ravel(), ""  # one chain after the other, as CmdStan has them
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.square(np.diff(flat)).mean() / flat.var(ddof=1)
        if np.isnan(value):
            wrong = "The E-BFMI cannot be computed: the energies do not vary, or are not finite.\n"
        elif value < LEAST_EBFMI:
            wrong = (
                f"The E-BFMI, {value:.2f}, is below the nominal threshold of {LEAST_EBFMI:.2f} which suggests that HMC "
                "may have trouble exploring the target distribution.\nIf possible, try to reparameterize the model.\n"
            )
        heading = "Checking E-BFMI - sampler transitions HMC potential energy.\n"
        yield heading, wrong, "E-BFMI satisfactory.\n"


def _share(count: int, of: int) -> str:
    return f"{count} of {of} ({100 * count / of:.2f}%)"


def _convergence_checks(draws: _ChainDraws) -> Iterator[tuple[str, str, str]]:
    named = [place for place, name in enumerate(draws.names) if "__" not in name]
    rows = draws.values[named]
    varies = _varying(rows)
    names = [draws.names[place] for place, kept in zip(named, varies, strict=True) if kept]
    found = rhat_ess.diagnostics(rows[varies])
    halves = np.reshape(
        rows[varies][..., : rows.shape[2] // 2 * 2], (len(names), -1, rows.shape[2] // 2)
    )
    rhat = found.rhat if rows.shape[1] > 1 else rhat_ess.rhat(halves)
    ess = np.minimum(found.ess_bulk, found.ess_tail) / rows[0].size if len(rows) else rhat
    low = [name for name, few in zip(names, ess < LEAST_ESS_PER_DRAW, strict=True) if few]
    wrong = (
        f"The following parameters had fewer than {LEAST_ESS_PER_DRAW} effective draws per transition:\n  "
        f"{', '.join(low)}\nSuch low values indicate that the effective sample size estimators may be biased high and "
        "actual performance may be substantially lower than quoted.\n"
    ) * bool(low)
    fine = "Rank-normalized split effective sample size satisfactory for all parameters.\n"
    yield "", wrong, fine
    high = [name for name, much in zip(names, rhat > LARGEST_RHAT, strict=True) if much]
    wrong = (
        f"The following parameters had rank-normalized split R-hat greater than 1.01:\n  {', '.join(high)}\n"
        "Such high values indicate incomplete mixing and biased estimation.\nYou should consider regularizing your "
        "model with additional prior information or a more effective parameterization.\n"
    ) * bool(high)
    yield "", wrong, "Rank-normalized split R-hat values satisfactory for all parameters.\n"


TOOLS = {"stansummary": stansummary, "diagnose": diagnose}

if __name__ == "__main__":
    try:
        raise SystemExit(TOOLS[sys.argv[1]](sys.argv[2:]))
    except (FormatError, OSError) as error:
        raise SystemExit(str(error)) from None
