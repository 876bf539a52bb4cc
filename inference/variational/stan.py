"""Stan's ADVI, with a fixed sequence of attempts if it fails.

Stan's algorithm searches for its step size eta among 100, 10, 1, 0.1 and 0.01. It ends with an error if all of them
diverge, or if a Cholesky factor of the full-rank family becomes NaN. Then the attempts in `ATTEMPTS` follow in order:
another start, a smaller fixed eta, and both with a start closer to the origin. All attempts are recorded. A fit that
merely ran out of iterations is kept with `converged` = 0. A given start is the same in all attempts, as an init file.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import AdviFailed, ArgumentError, StanRunError
from onebasin.base.files.writing import working_folder
from onebasin.stan.program import name_draws
from onebasin.stan.run import CommandStart, Files, Output, command_line, make_ready, read, run

from ..contracts.method import Found, Job
from ..mcmc.stan import SIGNIFICANT_FIGURES, init_values, write
from .engine import elbo_trace, found_by_advi
from .methods import Advi

OURS: Mapping[str, tuple[Any, ...]] = {
    "anneal": (0.0,),
    "schedule": ("exponential",),
    "init": ("random",),
    "trace_parameters": (False,),
}
"""Settings that only the NumPyro engine supports, with the values that are allowed for Stan."""

NOT_CONVERGED = "The algorithm may not have converged."
_ITERATION = re.compile(r"^\s*(\d+)\s+[-\d.e+]+\s", re.MULTILINE)


@dataclass(frozen=True)
class Attempt:
    """One way to run Stan's ADVI; the start is uniform within `init_radius`."""

    eta: float | None = None  # Fixed step size; if None, Stan searches for one.
    init_radius: float = 2.0
    seed_offset: int = 0  # Added to the seed for another start.


ATTEMPTS = (
    Attempt(),
    Attempt(seed_offset=1),
    Attempt(eta=0.1, seed_offset=2),
    Attempt(eta=0.01, init_radius=0.5, seed_offset=3),
)


def fit(job: Job[Advi]) -> Found:
    """Fit the approximation."""
    target, settings, bars = job.target, job.method, job.bars
    _check(settings)
    tried: list[dict[str, Any]] = []
    converged = True
    bar = bars.add(f"ADVI {settings.family}", settings.iterations)

    def watch(printed: str) -> None:
        nonlocal converged
        converged &= NOT_CONVERGED not in printed
        if numbers := _ITERATION.findall(printed):
            bars.move(bar, int(numbers[-1]))

    with working_folder("advi") as place:
        ready = make_ready(target, place, engine=job.engine, progress=bars.say)
        init = None
        if job.start is not None:
            init = write(place, init_values(target, ready.info, job.start))
        for number, attempt in enumerate(ATTEMPTS):
            folder = place / str(number)
            folder.mkdir()
            try:
                files = Files(
                    data=ready.data,
                    output=folder / "draws.csv",
                    diagnostics=folder / "elbo.csv",
                    digits=SIGNIFICANT_FIGURES,
                )
                start = CommandStart(
                    seed=(job.seed + attempt.seed_offset) % 2**32, init=init or attempt.init_radius
                )
                arguments = command_line(
                    files,
                    start,
                    "variational",
                    algorithm=settings.family,
                    iter=settings.iterations,
                    grad_samples=settings.gradient_samples,
                    elbo_samples=settings.elbo_samples,
                    **({} if attempt.eta is None else {"eta": attempt.eta}),
                    tol_rel_obj=settings.tolerance,
                    eval_elbo=settings.evaluate_every,
                    output_samples=settings.draws,
                )
                arguments += ["adapt", f"engaged={int(attempt.eta is None)}"]
                converged = True
                printed = run(ready, arguments, folder, watch=watch)
                output = read(files.output, printed=printed)
                return _read(job, output, folder, converged, tried, attempt)
            except StanRunError as error:
                # Find the line with the reason.
                lines = str(error).splitlines()
                causes = (s.strip() for s in lines if "rror" in s or "xception" in s)
                tried.append({**asdict(attempt), "error": next(causes, lines[-1]).rstrip(".")})
    raise AdviFailed(
        f"Stan's {settings.family} ADVI failed on {target.name!r} (attempts: {len(tried)}, from different starting "
        f"points and with ever smaller eta). The last error was: {tried[-1]['error']}. Use `dadvi` or `nuts`.",
        tried,
    )


def _check(settings: Advi) -> None:
    """Reject settings that Stan's algorithm does not support."""
    if settings.batch_size is not None:
        raise ArgumentError(
            f"`batch_size` is {settings.batch_size}, but Stan's ADVI uses all data for every gradient. Use "
            "batch_size=None, or engine='numpyro'."
        )
    if settings.tolerance == 0:
        raise ArgumentError(
            "`tolerance` is 0, but Stan's ADVI needs a positive number. Give a small number such as 1e-9, or use "
            "engine='numpyro'."
        )
    for name, allowed in OURS.items():
        if (given := getattr(settings, name)) not in allowed:
            raise ArgumentError(
                f"`{name}` is {given!r}, which Stan's ADVI does not support. Use engine='numpyro' or "
                f"{name}={allowed[0]!r}."
            )


def _read(
    job: Job[Advi],
    output: Output,
    folder: Path,
    converged: bool,
    tried: list[dict[str, Any]],
    attempt: Attempt,
) -> Found:
    # The first row of Stan's file is the mean.
    variables = {name: values[1:] for name, values in output.variables.items()}
    draws = name_draws(job.target, variables)
    if not all(np.isfinite(values).all() for values in draws.values()):
        raise StanRunError("Some draws of the fit are not finite.")
    # The columns of the diagnostic file are iteration, seconds and ELBO.
    lines = (folder / "elbo.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines if line[:1].isdigit()]
    iteration, elbo = [int(row[0]) for row in rows], [float(row[2]) for row in rows]
    return found_by_advi(
        job,
        draws,
        {"lp": output.method["log_p__"][1:], "log_q": output.method["log_g__"][1:]},
        xr.Dataset(elbo_trace(iteration, elbo)),
        converged=converged,
        steps=iteration[-1] if iteration else 0,
        attempts=[*tried, {**asdict(attempt), "error": ""}],
    )
