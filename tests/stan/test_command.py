"""Command lines, word for word: CmdStan takes a misspelt one for an error, a missing one for its default."""

from pathlib import Path

from onebasin.stan import command

FILES = command.Files(data=Path("/d.json"), output=Path("/o.csv"))
COMMON = "data file=/d.json output file=/o.csv sig_figs=18"


def words(arguments):
    return " ".join(arguments)


def test_nuts():
    start = command.CommandStart(seed=3, chain=2, init=0.5)
    arguments = command.sample(
        command.nuts(max_tree_depth=9),
        FILES,
        start,
        draws=10,
        warmup=20,
        target_acceptance=0.9,
        metric="dense",
        refresh=5,
    )
    assert words(arguments) == (
        f"id=2 random seed=3 init=0.5 {COMMON} refresh=5 method=sample num_samples=10 num_warmup=20 "
        "adapt delta=0.9 algorithm=hmc engine=nuts max_depth=9 metric=dense_e"
    )


def test_going_on_from_an_earlier_warmup():
    arguments = command.sample(
        command.nuts(max_tree_depth=9),
        FILES,
        command.CommandStart(seed=3, chain=2, init=Path("/i.json")),
        draws=10,
        warmup=0,
        target_acceptance=0.9,
        metric="diag",
        refresh=5,
        adapt=False,
        adapted=command.Adapted(step_size=0.25, metric=Path("/m.json")),
    )
    assert words(arguments) == (
        f"id=2 random seed=3 init=/i.json {COMMON} refresh=5 method=sample num_samples=10 num_warmup=0 "
        "adapt delta=0.9 engaged=0 algorithm=hmc engine=nuts max_depth=9 metric=diag_e "
        "metric_file=/m.json stepsize=0.25"
    )
    assert command.Adapted(step_size=1.0, metric=None).arguments() == ["stepsize=1.0"]


def test_threads_and_a_warmup_that_is_written():
    arguments = command.sample(
        command.nuts(max_tree_depth=9),
        FILES,
        command.CommandStart(seed=3),
        draws=10,
        warmup=20,
        target_acceptance=0.9,
        metric="diag",
        refresh=5,
        threads=2,
        save_warmup=True,
    )
    assert words(arguments).startswith("num_threads=2 random seed=3 ")
    assert "num_samples=10 num_warmup=20 save_warmup=1 adapt delta=0.9" in words(arguments)


def test_static_hmc():
    assert words(command.static_hmc(trajectory_length=0.1)) == "engine=static int_time=0.1"


def test_a_draw_of_the_start():
    arguments = command.draw_start(FILES, command.CommandStart(seed=1, init=Path("/i.json")))
    assert words(arguments) == (
        "random seed=1 init=/i.json method=sample num_samples=1 num_warmup=0 "
        f"algorithm=fixed_param {COMMON}"
    )


def test_optimise_uses_the_jacobian():
    arguments = command.optimise(FILES, command.CommandStart(seed=1, init=2.0), iterations=7)
    assert words(arguments) == (
        f"random seed=1 init=2.0 {COMMON} method=optimize jacobian=1 algorithm=lbfgs iter=7"
    )


def test_laplace_and_pathfinder():
    arguments = command.laplace(FILES, Path("/m.json"), seed=2, draws=30)
    assert words(arguments) == (
        f"random seed=2 {COMMON} method=laplace mode=/m.json jacobian=1 draws=30"
    )
    arguments = command.pathfinder(
        FILES,
        command.CommandStart(seed=1, init=2.0),
        paths=3,
        draws=40,
        path_draws=50,
        iterations=60,
        elbo_samples=7,
        history=5,
        save_paths=True,
    )
    assert words(arguments) == (
        f"random seed=1 init=2.0 {COMMON} method=pathfinder history_size=5 num_psis_draws=40 num_paths=3 "
        "save_single_paths=1 max_lbfgs_iters=60 num_draws=50 num_elbo_draws=7"
    )


def variational(eta):
    return command.variational(
        "fullrank",
        command.Files(data=Path("/d"), output=Path("/o"), diagnostics=Path("/e"), digits=12),
        command.CommandStart(seed=4),
        iterations=100,
        gradient_samples=2,
        elbo_samples=3,
        evaluate_every=5,
        tolerance=0.01,
        draws=6,
        eta=eta,
    )


def test_variational_searches_its_step_size_or_keeps_the_one_given():
    common = (
        "random seed=4 data file=/d output file=/o diagnostic_file=/e sig_figs=12 "
        "method=variational algorithm=fullrank iter=100 grad_samples=2 elbo_samples=3{} "
        "tol_rel_obj=0.01 eval_elbo=5 output_samples=6 adapt engaged={}"
    )
    assert words(variational(None)) == common.format("", 1)
    assert words(variational(0.1)) == common.format(" eta=0.1", 0)


def test_log_prob_names_the_space():
    near, far = Path("/near"), Path("/far")
    assert words(command.log_prob(FILES, near, constrained=True, jacobian=False)) == (
        f"method=log_prob constrained_params=/near jacobian=0 {COMMON}"
    )
    assert words(command.log_prob(FILES, far, constrained=False, jacobian=True)) == (
        f"method=log_prob unconstrained_params=/far jacobian=1 {COMMON}"
    )
