"""`bin/stansummary` and `bin/diagnose` of an assembled home, for cmdstanpy's `fit.summary()` and `fit.diagnose()`.

The first prints a table of statistics, the second the verdict of `onebasin diagnose`. R-hat and effective sample sizes
agree with ArviZ's (`posteriors.rhat_ess`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from onebasin.base.errors import FormatError
from onebasin.posteriors import rhat_ess
from onebasin.posteriors.tables import ChainFile, check_together


def _in_brackets(name: str) -> str:
    """Write `m.1.2` as `m[1,2]`, and the tuple element `t.1:2.3` as `t[1].2[3]`."""
    parts = []
    for word in name.split(":"):
        base, *index = word.split(".")
        parts.append(f"{base}[{','.join(index)}]" if index else base)
    return ".".join(parts)


def stansummary(arguments: Sequence[str]) -> int:
    """Print a table of statistics of the draws, in the order of the files' columns; write it as CSV if requested."""
    import pandas as pd

    parser = argparse.ArgumentParser(
        prog="stansummary", description="Statistics of the draws of chains, one Stan CSV file each."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path)
    parser.add_argument("-p", "--percentiles", default="5,50,95", help="by default 5,50,95")
    parser.add_argument("-s", "--sig_figs", type=int, choices=range(1, 19), metavar="1..18")
    parser.add_argument("-c", "--csv_filename", help="file to which the table is also written")
    given = parser.parse_args(arguments)
    files = [ChainFile.of(path) for path in given.files]
    for file in files:
        file.check()
    check_together(files)
    values = [file.frame().to_numpy(np.float64)[file.skipped :] for file in files]
    rows = np.moveaxis(np.stack(values), -1, 0)  # (column, chain, draw)
    flat = rows.reshape(len(rows), -1)
    # Quantities that are constant or not finite have no diagnostics.
    varies = np.isfinite(flat).all(axis=1) & (np.ptp(flat, axis=1) > 0)

    def of_varying(values: np.ndarray) -> np.ndarray:
        out = np.full(len(rows), np.nan)
        out[varies] = values
        return out

    found = rhat_ess.diagnostics(rows[varies])
    median = np.median(flat, axis=1)
    columns = {
        "Mean": flat.mean(axis=1),
        "MCSE": of_varying(rhat_ess.mcse_mean(rows[varies])),
        "StdDev": flat.std(axis=1, ddof=1),
        "MAD": 1.4826 * np.median(np.abs(flat - median[:, None]), axis=1),
    }
    for word in filter(str.strip, given.percentiles.split(",")):
        columns[f"{word}%"] = np.quantile(flat, float(word) / 100, axis=1)
    bulk, seconds = of_varying(found.ess_bulk), sum(f.header.seconds("Sampling") for f in files)
    columns |= {"ESS_bulk": bulk, "ESS_tail": of_varying(found.ess_tail)}
    columns |= {"ESS_bulk/s": bulk / (seconds or np.nan), "R_hat": of_varying(found.rhat)}
    names = pd.Index(map(_in_brackets, files[0].columns), name="name")
    table = pd.DataFrame(columns, index=names)
    if given.csv_filename:
        table.to_csv(given.csv_filename, float_format=f"%.{given.sig_figs or 6}g", na_rep="nan")
    digits = given.sig_figs or 2
    chains, draws = rows.shape[1:]
    sys.stdout.write(
        f"Inference for Stan model, {chains} chains: each with {draws} draws; {chains * draws} in all.\n\n"
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
