"""Command lines, word for word: CmdStan takes a misspelt one for an error, a missing one for its default."""

from pathlib import Path

import pytest

from onebasin.stan import command

FILES = command.Files(data=Path("/d.json"), output=Path("/o.csv"))
COMMON = "data file=/d.json output file=/o.csv sig_figs=18"


ADVI = (
    "random seed=4 data file=/d output file=/o diagnostic_file=/e sig_figs=12 "
    "method=variational algorithm=fullrank iter=100 grad_samples=2 elbo_samples=3{} "
    "tol_rel_obj=0.01 eval_elbo=5 output_samples=6 adapt engaged={}"
)
SEED_3 = command.CommandStart(seed=3)
SAMPLE = {"draws": 10, "warmup": 20, "target_acceptance": 0.9, "metric": "diag", "refresh": 5}
NUTS = command.nuts(max_tree_depth=9)


def sample(start, **how):
    return command.sample(NUTS, FILES, start, **{**SAMPLE, **how})


def variational(eta):
    files = command.Files(data=Path("/d"), output=Path("/o"), diagnostics=Path("/e"), digits=12)
    samples = {"gradient_samples": 2, "elbo_samples": 3, "draws": 6}
    how = {"iterations": 100, "evaluate_every": 5, "tolerance": 0.01, "eta": eta, **samples}
    return command.variational("fullrank", files, command.CommandStart(seed=4), **how)


def pathfinder():
    how = {"paths": 3, "draws": 40, "path_draws": 50, "iterations": 60, "elbo_samples": 7}
    start = command.CommandStart(seed=1, init=2.0)
    return command.pathfinder(FILES, start, **how, history=5, save_paths=True)


CASES = {
    "nuts": (
        sample(command.CommandStart(seed=3, chain=2, init=0.5), metric="dense"),
        f"id=2 random seed=3 init=0.5 {COMMON} refresh=5 method=sample num_samples=10 num_warmup=20 "
        "adapt delta=0.9 algorithm=hmc engine=nuts max_depth=9 metric=dense_e",
    ),
    "going on from an earlier warmup": (
        sample(
            command.CommandStart(seed=3, chain=2, init=Path("/i.json")),
            **{"warmup": 0, "adapt": False},
            adapted=command.Adapted(step_size=0.25, metric=Path("/m.json")),
        ),
        f"id=2 random seed=3 init=/i.json {COMMON} refresh=5 method=sample num_samples=10 num_warmup=0 "
        "adapt delta=0.9 engaged=0 algorithm=hmc engine=nuts max_depth=9 metric=diag_e "
        "metric_file=/m.json stepsize=0.25",
    ),
    "a step size alone": (
        command.Adapted(step_size=1.0, metric=None).arguments(), "stepsize=1.0",
    ),
    "threads and a warmup that is written": (
        sample(SEED_3, threads=2, save_warmup=True),
        f"num_threads=2 random seed=3 {COMMON} refresh=5 method=sample num_samples=10 num_warmup=20 "
        "save_warmup=1 adapt delta=0.9 algorithm=hmc engine=nuts max_depth=9 metric=diag_e",
    ),
    "static": (command.static_hmc(trajectory_length=0.1), "engine=static int_time=0.1"),
    "optimise, with the Jacobian": (
        command.optimise(FILES, command.CommandStart(seed=1, init=2.0), iterations=7),
        f"random seed=1 init=2.0 {COMMON} method=optimize jacobian=1 algorithm=lbfgs iter=7",
    ),
    "laplace": (
        command.laplace(FILES, Path("/m.json"), seed=2, draws=30),
        f"random seed=2 {COMMON} method=laplace mode=/m.json jacobian=1 draws=30",
    ),
    "pathfinder": (
        pathfinder(),
        f"random seed=1 init=2.0 {COMMON} method=pathfinder history_size=5 num_psis_draws=40 num_paths=3 "
        "save_single_paths=1 max_lbfgs_iters=60 num_draws=50 num_elbo_draws=7",
    ),
    "variational, searching its step size": (variational(None), ADVI.format("", 1)),
    "variational with a step size": (variational(0.1), ADVI.format(" eta=0.1", 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_words_are_those_of_cmdstan(name):
    arguments, words = CASES[name]
    assert " ".join(arguments) == words
