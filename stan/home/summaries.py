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
    given = parser.parse_args(arguments)
    places = {word: float(word) / 100 for word in given.percentiles.split(",") if word.strip()}
    draws = _read(given.files)
    order = _index_last_fastest(draws.names)
    names = [_in_brackets(draws.names[place]) for place in order]
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
    text = "\n".join(wrong or fine for wrong, fine in checks)
    none = "" if any(wrong for wrong, _ in checks) else ", no problems detected"
    sys.stdout.write(f"{text}\nProcessing complete{none}.\n")
    return 0


def _sampler_checks(draws: _ChainDraws) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the sampler, empty if nothing is, and what is said otherwise."""
    own = dict(zip(draws.names, draws.values, strict=True))
    if (depths := own.get("treedepth__")) is not None:
        hit = sum(int((of >= most).sum()) for of, most in zip(depths, draws.depths, strict=True))
        most = max(draws.depths)
        wrong = (
            f"{_share(hit, depths.size)} transitions hit the maximum treedepth limit of {most}, or 2^{most} leapfrog "
            "steps, which makes exploration slow.\nIncrease this limit.\n"
        )
        yield wrong * bool(hit), "Treedepth satisfactory for all transitions.\n"
    if (divergent := own.get("divergent__")) is not None:
        count = int(np.count_nonzero(divergent))
        wrong = (
            f"{_share(count, divergent.size)} transitions ended with a divergence: HMC cannot fully explore the "
            "posterior distribution.\nTry increasing adapt delta closer to 1, else reparameterize the model.\n"
        )
        yield wrong * bool(count), "No divergent transitions found.\n"
    if (energy := own.get("energy__")) is not None:
        flat, wrong = energy.ravel(), ""  # one chain after the other, as CmdStan has them
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.square(np.diff(flat)).mean() / flat.var(ddof=1)
        if np.isnan(value):
            wrong = "The E-BFMI cannot be computed: the energies do not vary, or are not finite.\n"
        elif value < LEAST_EBFMI:
            wrong = (
                f"The E-BFMI, {value:.2f}, is below the nominal threshold of {LEAST_EBFMI:.2f}: HMC may have trouble "
                "exploring the target distribution.\nIf possible, reparameterize the model.\n"
            )
        yield wrong, "E-BFMI satisfactory.\n"


def _share(count: int, of: int) -> str:
    return f"{count} of {of} ({100 * count / of:.2f}%)"


def _convergence_checks(draws: _ChainDraws) -> Iterator[tuple[str, str]]:
    named = [place for place, name in enumerate(draws.names) if "__" not in name]
    rows = draws.values[named]
    varies = _varying(rows)
    names = np.array(draws.names, dtype=object)[named][varies]
    rows = rows[varies]
    found = rhat_ess.diagnostics(rows)
    rhat = found.rhat
    if rows.shape[1] == 1:  # of the halves of a single chain
        half = rows.shape[2] // 2
        rhat = rhat_ess.rhat(rows[..., : 2 * half].reshape(len(rows), 2, half))
    few = np.minimum(found.ess_bulk, found.ess_tail) < LEAST_ESS_PER_DRAW * rows[:1].size
    wrong = (
        f"The following parameters had fewer than {LEAST_ESS_PER_DRAW} effective draws per transition:\n  "
        f"{', '.join(names[few])}\nTheir effective sample sizes may be estimated too high.\n"
    )
    fine = "Rank-normalized split effective sample size satisfactory for all parameters.\n"
    yield wrong * bool(few.any()), fine
    much = rhat > LARGEST_RHAT
    wrong = (
        f"The following parameters had rank-normalized split R-hat greater than 1.01:\n  {', '.join(names[much])}\n"
        "Chains have not mixed, and estimates are biased: give more prior information, or reparameterize the model.\n"
    )
    yield (
        wrong * bool(much.any()),
        "Rank-normalized split R-hat values satisfactory for all parameters.\n",
    )


TOOLS = {"stansummary": stansummary, "diagnose": diagnose}

if __name__ == "__main__":
    try:
        raise SystemExit(TOOLS[sys.argv[1]](sys.argv[2:]))
    except (FormatError, OSError) as error:
        raise SystemExit(str(error)) from None
