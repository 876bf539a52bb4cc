"""`bin/stansummary` and `bin/diagnose` of an assembled home: CmdStan's table of statistics, and the verdict of ours.

cmdstanpy calls them in `fit.summary()` and `fit.diagnose()`. Draws are of Stan's CSV files, one a chain, warmup left
out. R-hat and effective sample sizes are those of ArviZ (`posteriors.rhat_ess`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onebasin.base.errors import FormatError
from onebasin.posteriors import rhat_ess
from onebasin.posteriors.tables import ChainFile, check_together


@dataclass(frozen=True)
class _ChainDraws:
    names: tuple[str, ...]
    values: rhat_ess.Rows  # (column, chain, draw)
    seconds: float  # Sampling time of all chains; NaN if a file does not say it.


def _read(paths: Sequence[str]) -> _ChainDraws:
    files = [ChainFile.of(Path(path)) for path in paths]
    for file in files:
        file.check()
    check_together(files)
    values = [file.frame().to_numpy(np.float64)[file.skipped :] for file in files]
    return _ChainDraws(
        files[0].columns,
        np.moveaxis(np.stack(values), -1, 0),
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
    """Print the verdict on chains, as `onebasin diagnose` does."""
    program = "import sys; from onebasin.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-P", "-c", program, "diagnose", *arguments]
    return subprocess.run(command, check=False).returncode


TOOLS = {"stansummary": stansummary, "diagnose": diagnose}

if __name__ == "__main__":
    try:
        raise SystemExit(TOOLS[sys.argv[1]](sys.argv[2:]))
    except (FormatError, OSError) as error:
        raise SystemExit(str(error)) from None
