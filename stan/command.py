"""CmdStan's command lines: what a compiled program is called with, method by method.

Words and order are CmdStan's; a fixed order keeps command lines comparable. Paths have to be absolute, since a program
runs in its own folder. cmdstanpy composes most of these, but has no static HMC, loses a variational fit whose step
size was given, and cannot stop a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

METRICS = {"diag": "diag_e", "dense": "dense_e", "unit": "unit_e"}
"""Our words for an inverse mass matrix, and CmdStan's."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files that a run reads and writes."""

    data: Path  # The program's data (JSON).
    output: Path  # The CSV file for what comes out.
    diagnostics: Path | None = None  # CSV file for a method's trace.
    digits: int = 18  # Significant figures of the numbers written; 18 keep every bit.

    def arguments(self) -> list[str]:
        """The words that name them."""
        trace = [] if self.diagnostics is None else [f"diagnostic_file={self.diagnostics}"]
        out = ["output", f"file={self.output}", *trace, f"sig_figs={self.digits}"]
        return ["data", f"file={self.data}", *out]


@dataclass(frozen=True, kw_only=True)
class CommandStart:
    """The state that a run begins from."""

    seed: int  # Of the random numbers.
    chain: int | None = None
    """A number from 1: chains of one seed draw from different places of its stream."""
    # A file of values, or the radius around 0 in the unconstrained space within which they are drawn; CmdStan's own
    # radius of 2 where it is None.
    init: Path | float | None = None

    def arguments(self) -> list[str]:
        """The words that say so."""
        number = [] if self.chain is None else [f"id={self.chain}"]
        init = [] if self.init is None else [f"init={self.init}"]
        return [*number, "random", f"seed={self.seed}", *init]


@dataclass(frozen=True, kw_only=True)
class Adapted:
    """The result of an earlier warmup."""

    step_size: float | None = None
    """Of every draw, or from which the adaptation begins; Stan's own where it is None."""
    metric: Path | None = None  # A JSON file of the inverse metric; None where it is the unit.

    def arguments(self) -> list[str]:
        """The words that say so."""
        file = [] if self.metric is None else [f"metric_file={self.metric}"]
        return [*file, *([] if self.step_size is None else [f"stepsize={self.step_size!r}"])]


def nuts(*, max_tree_depth: int) -> list[str]:
    """Give the engine of `sample` that is NUTS."""
    return ["engine=nuts", f"max_depth={max_tree_depth}"]


def static_hmc(*, trajectory_length: float) -> list[str]:
    """Give the engine of `sample` that is HMC of a fixed trajectory length."""
    return ["engine=static", f"int_time={trajectory_length!r}"]


def sample(
    engine: list[str],
    files: Files,
    start: CommandStart,
    *,
    draws: int,
    warmup: int,
    target_acceptance: float,
    metric: str,
    refresh: int,
    threads: int = 1,
    adapt: bool = True,
    adapted: Adapted | None = None,
    save_warmup: bool = False,
) -> list[str]:
    """Sample with HMC; `refresh` iterations pass between two lines of progress.

    What is `adapted` already is where the warmup begins; a metric stays as it is.
    """
    how = [] if adapt else ["engaged=0"]
    if adapt and adapted is not None and adapted.metric is not None:
        # No window in which one is estimated.
        how = ["init_buffer=0", f"term_buffer={warmup}", "window=0"]
    return [
        *([] if threads == 1 else [f"num_threads={threads}"]),
        *start.arguments(),
        *files.arguments(),
        f"refresh={refresh}",
        *("method=sample", f"num_samples={draws}", f"num_warmup={warmup}"),
        *(["save_warmup=1"] if save_warmup else []),
        *("adapt", f"delta={target_acceptance!r}", *how),
        *("algorithm=hmc", *engine, f"metric={METRICS[metric]}"),
        *(adapted.arguments() if adapted else []),
    ]


def optimise(
    files: Files, start: CommandStart, *, iterations: int, jacobian: bool = True
) -> list[str]:
    """Find an optimum by L-BFGS: with the log Jacobian, of the density that samplers move in."""
    method = ["method=optimize", f"jacobian={int(jacobian)}", "algorithm=lbfgs"]
    return [*start.arguments(), *files.arguments(), *method, f"iter={iterations}"]


def laplace(files: Files, mode: Path, *, seed: int, draws: int) -> list[str]:
    """Draw from the Gaussian with the curvature at a mode, the parameters of a JSON file."""
    method = ["method=laplace", f"mode={mode}", "jacobian=1", f"draws={draws}"]
    return [*CommandStart(seed=seed).arguments(), *files.arguments(), *method]


def pathfinder(
    files: Files,
    start: CommandStart,
    *,
    paths: int,
    draws: int,
    path_draws: int,
    iterations: int,
    elbo_samples: int,
    history: int,
    save_paths: bool,
) -> list[str]:
    """Run Pathfinder; with `save_paths`, each path's own draws are written next to the output."""
    return [
        *start.arguments(),
        *files.arguments(),
        *("method=pathfinder", f"history_size={history}", f"num_psis_draws={draws}"),
        *(f"num_paths={paths}", f"save_single_paths={int(save_paths)}"),
        *(f"max_lbfgs_iters={iterations}", f"num_draws={path_draws}"),
        f"num_elbo_draws={elbo_samples}",
    ]


def variational(
    family: str,
    files: Files,
    start: CommandStart,
    *,
    iterations: int,
    gradient_samples: int,
    elbo_samples: int,
    evaluate_every: int,
    tolerance: float,
    draws: int,
    eta: float | None,
) -> list[str]:
    """Fit ADVI of a family, ``meanfield`` or ``fullrank``; the step size `eta` is searched for where it is None."""
    step = [] if eta is None else [f"eta={eta!r}"]
    return [
        *start.arguments(),
        *files.arguments(),
        *("method=variational", f"algorithm={family}", f"iter={iterations}"),
        *(f"grad_samples={gradient_samples}", f"elbo_samples={elbo_samples}", *step),
        *(f"tol_rel_obj={tolerance!r}", f"eval_elbo={evaluate_every}", f"output_samples={draws}"),
        *("adapt", f"engaged={int(eta is None)}"),
    ]
