"""CSV files of known draws in the format of CmdStan 2.39."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onebasin.base.errors import PosteriorFileError
from onebasin.posteriors.open import open_posterior

STATS = "lp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__"
NAMES = "mu.1,mu.2,sigma"

HEADER = """\
# stan_version_major = 2
# stan_version_minor = 39
# stan_version_patch = 0
# model = {model}_model
# start_datetime = 2026-01-31 12:00:00 UTC
# method = sample (Default)
#   sample
#     num_samples = {draws}
#     num_warmup = {warmup}
#     save_warmup = {saved}
#     thin = 1 (Default)
#     adapt
#       engaged = true (Default)
#       delta = 0.9
#     algorithm = hmc (Default)
#       hmc
#         engine = nuts (Default)
#           nuts
#             max_depth = 9
#         metric = diag_e (Default)
#         stepsize = 1 (Default)
# id = {chain}
# data
#   file = data.json
# random
#   seed = 7
# output
#   file = out.csv
"""
TIMES = "# \n#  Elapsed Time: 0.25 seconds (Warm-up)\n#                0.5 seconds (Sampling)\n# \n"


def numbers(chain: int, rows: int, width: int = 10) -> np.ndarray:
    """Return the rows of a chain, statistics first; depths, steps and divergences are whole numbers."""
    table = np.random.default_rng(chain).normal(size=(rows, width))
    table[:, 3] = 2 + (table[:, 3] > 0)
    table[:, 4] = 2 ** table[:, 3] - 1
    table[:, 5] = table[:, 5] > 1.5
    return table


def lines(table: np.ndarray) -> list[str]:
    """Format rows as text without rounding."""
    return [",".join(map(repr, row)) + "\n" for row in table.tolist()]


def text(
    chain: int = 1,
    *,
    draws: int = 40,
    warmup: int = 10,
    keep_warmup: bool = False,
    model: str = "mix",
    names: str = NAMES,
) -> str:
    """One file."""
    width = len(f"{STATS},{names}".split(","))
    rows = lines(numbers(chain, draws + warmup * keep_warmup, width))
    adapted = "# Adaptation terminated\n# Step size = 0.8\n"
    rows.insert(warmup * keep_warmup, adapted)
    said = HEADER.format(
        model=model, draws=draws, warmup=warmup, saved=int(keep_warmup), chain=chain
    )
    return said + f"{STATS},{names}\n" + "".join(rows) + TIMES


def write(folder: Path, stem: str = "chain", chains: int = 4, **how: object) -> list[Path]:
    """Write the chains of a run."""
    paths = [folder / f"{stem}_{number + 1}.csv" for number in range(chains)]
    for number, path in enumerate(paths):
        path.write_text(text(number + 1, **how))  # type: ignore[arg-type]
    return paths


def refusal(*paths: Path) -> str:
    """Return the error for files that are not a posterior, after checking that it is one line with our introduction."""
    with pytest.raises(PosteriorFileError) as caught:
        open_posterior(paths[0] if len(paths) == 1 else list(paths))
    message = str(caught.value)
    assert message.startswith("`path` must name a posterior, but ") and "\n" not in message
    return message
