"""`onebasin sample`: options, errors, Ctrl-C; any Stan program."""

import math
import re
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest

from onebasin.cli import sampling
from onebasin.cli.methods import OFFERED
from onebasin.inference import Advi, Hmc, Laplace, Mclmc, Modes, Nuts, Optimize, Pathfinder
from onebasin.inference.runs.posterior import open_posterior
from onebasin.models.symmetry.blocks import from_json
from onebasin.models.symmetry.evidence import Evidence
from onebasin.posteriors.view import as_view

from ..command_fixtures import DATA, keep_chain
from ..each import each


def test_program_and_data_go_to_the_sampler(sample, sampler, program):
    answer = sample("--json")
    assert answer.code == 0
    call = sampler.last
    assert call["method"] == "nuts"
    assert call["engine"] == "stanli"
    assert call["settings"] == Nuts()
    assert call["seed"] == 0
    assert call["target"].stan_program.path == program
    assert dict(call["target"].stan_program.data) == DATA
    assert answer.json["file"] == "run.nc"
    assert answer.json["summary"]["num_chains"] == 4
    said = open_posterior("run.nc").attrs
    assert said["target"] == "normal"
    assert said["command"].startswith("onebasin sample normal.stan data.json --out run.nc")
    answer = sample("--engine", "nutpie", "--force")
    assert answer.code == 0
    assert (sampler.last["engine"], sampler.last["method"]) == ("nutpie", "nuts")
    assert "R-hat" in answer.out
    assert answer.out.rstrip().endswith("wrote run.nc")


@each(
    ("words", "settings"),
    [
        (["--chains", "3"], Nuts(chains=3)),
        (["--warmup", "70"], Nuts(warmup=70)),
        (["--draws", "80"], Nuts(draws=80)),
        (["--metric", "dense"], Nuts(metric="dense")),
        (["--target-acceptance", "0.95"], Nuts(target_acceptance=0.95)),
        (["--max-tree-depth", "7"], Nuts(max_tree_depth=7)),
        (["--method", "hmc", "--trajectory-length", "2.5"], Hmc(trajectory_length=2.5)),
        (["--method", "hmc", "--chains", "2"], Hmc(chains=2)),
        (["--init", "optimum"], Nuts(init="optimum")),
        (
            ["--method", "hmc", "--init", "optimum", "--init-starts", "20"],
            Hmc(init="optimum", init_starts=20),
        ),
        (["--init-radius", "0.5"], Nuts(init_radius=0.5)),
        (["--method", "mclmc", "--learning-rate", "0.1"], Mclmc(learning_rate=0.1)),
        (["--method", "modes", "--most", "3", "--starts", "9"], Modes(most=3, starts=9)),
        (["--method", "meanfield", "--elbo-samples", "7"], Advi(elbo_samples=7)),
        (["--method", "meanfield", "--draws", "90"], Advi(draws=90)),
        (["--method", "meanfield", "--iterations", "50"], Advi(iterations=50)),
        (["--method", "fullrank", "--tolerance", "0.1"], Advi(family="fullrank", tolerance=0.1)),
        (["--method", "advi", "--family", "fullrank"], Advi(family="fullrank")),
        (["--method", "pathfinder", "--paths", "3"], Pathfinder(paths=3)),
        (["--method", "pathfinder", "--path-draws", "9"], Pathfinder(path_draws=9)),
        (["--method", "laplace", "--draws", "70"], Laplace(draws=70)),
        (["--method", "laplace", "--starts", "2"], Laplace(starts=2)),
        (["--method", "optimize", "--jacobian"], Optimize(jacobian=True)),
        (["--method", "optimize", "--no-jacobian"], Optimize()),
        (["--method", "optimize", "--iterations", "50"], Optimize(iterations=50)),
    ],
)
def test_every_option_changes_the_settings(asked, words, settings):
    call = asked(*words)
    assert call["settings"] == settings
    method = words[1] if words[0] == "--method" else "nuts"
    assert call["method"].removeprefix("advi-") in (method, "fullrank")


COMMON = {
    *(
        "details",
        "method",
        "engine",
        "seed",
        "out",
        "exchangeable",
        "symmetry",
        "no-symmetry",
        "force",
        "json",
    ),
    *(
        "progress",
        "no-progress",
        "help",
        "log-likelihood",
        "predictive",
        "observed",
        "predictive-mb",
        "timeout",
    ),
}


@each("name", OFFERED)
def test_help_on_a_method_shows_the_fields_that_programs_have_a_use_for(
    onebasin, monkeypatch, name
):
    """One word for one thing, and nothing else."""
    monkeypatch.setenv("COLUMNS", "120")
    method = OFFERED[name]
    own = {f.name.replace("_", "-") for f in fields(method) if f.name not in method.networks_alone}
    own |= {"adapt-from"} if method.takes_adaptation else set()
    shown = set(re.findall(r"--([a-z-]+)", onebasin("sample", "--method", name, "--help").out))
    assert (
        shown - {"no-jacobian", "no-adjusted", "no-weights", "no-adapt", "no-save-warmup"}
        == own | COMMON
    )


def test_help_without_a_method_is_short_and_says_how_to_see_the_rest(onebasin, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    short, long = (onebasin("sample", *words, "--help").out for words in ((), ("--method=nuts",)))
    assert len(short.splitlines()) < 60
    assert "--max-tree-depth" in long and "--max-tree-depth" not in short
    assert all(word in short for word in ("--chains", "--warmup", "--draws", "Add --method"))


def test_the_output_is_named_after_the_program_by_default(onebasin, program, sampler):
    assert onebasin("sample", "normal.stan", "data.json").out.rstrip().endswith("wrote normal.nc")
    assert open_posterior("normal.nc").attrs["target"] == "normal"


def test_options_for_networks_are_none_of_sample(onebasin):
    for name in ("batch_size", "trace_parameters"):
        answer = onebasin("sample", "a.stan", "--out", "b.nc", f"--{name.replace('_', '-')}", "1")
        assert "No such option" in answer.err


def test_an_optimum_is_shown_and_not_judged(sample, sampler):
    answer = sample("--method", "optimize", "--json")
    assert answer.code == 0
    assert answer.json["converged"] is True
    assert set(answer.json["optimum"]) == {"mu"}
    again = sample("--method", "optimize")
    assert again.code == 0
    assert "this is one value and no posterior" in again.out
    assert again.out.rstrip().endswith("wrote run.nc")
    assert len(sampler.calls) == 1


def test_nothing_is_made_of_an_optimum(onebasin, sample, sampler):
    assert sample("--method", "optimize").code == 0
    assert sample("--method", "laplace", "--out", "other.nc").code == 0
    for words, said in (
        ("diagnose run.nc", "point estimate"),
        ("report run.nc --out page.html", "point estimate"),
        ("align run.nc --out a.nc --exchangeable mu", "`--exchangeable`"),
        ("compare run.nc other.nc", "point estimate"),
    ):
        answer = onebasin(*words.split())
        assert (answer.code, said in answer.err) == (1, True), answer.err


def test_seed_progress_and_symmetry_reach_the_run(asked, monkeypatch):
    monkeypatch.setattr(sampling, "_check_symmetry", lambda *_: None)
    call = asked("--seed", "7", "--no-progress", "--exchangeable", "mu,other")
    assert call["seed"] == 7
    assert call["progress"] is False
    assert call["checkpoint"] == Path("run.nc.chains")
    (block,) = call["target"].symmetry
    assert block.axes == {"mu": 0, "other": 0}


@each(
    ("words", "terminal", "told"),
    [
        ([], False, True),
        (["--no-progress"], False, False),
        (["--no-progress"], True, False),
        (["--json"], False, False),
        (["--json"], True, True),
    ],
)
def test_a_program_that_reads_json_is_told_no_progress(asked, monkeypatch, words, terminal, told):
    monkeypatch.setattr("onebasin.cli.console.is_terminal", lambda: terminal)
    assert asked(*words)["progress"] is told


def test_interrupt_keeps_finished_chains_and_the_same_command_goes_on(sample, sampler):
    def interrupt(call):
        if call["method"] == "nuts":
            for number in range(4):
                keep_chain(call["checkpoint"], number, call["settings"].draws if number < 3 else 20)
        raise KeyboardInterrupt

    sampler.before = interrupt
    answer = sample("--method", "meanfield")
    assert answer.code == 130
    assert "keeps nothing before it ends" in answer.err
    answer = sample()
    assert answer.code == 130
    assert answer.err == (
        "onebasin: interrupted; 3 of 4 chains are finished, 3,020 of 4,000 draws kept in run.nc.chains: repeat "
        "the command to resume\n"
    )
    assert not Path("run.nc").exists()
    sampler.before = lambda call: None
    assert sample().code == 0
    assert sampler.calls[1]["checkpoint"] == sampler.calls[2]["checkpoint"]
    assert not Path("run.nc.chains").exists()


@pytest.mark.stan
@pytest.mark.usefixtures("cmdstan_is_there")
def test_program_is_sampled_diagnosed_and_reported(onebasin, program):
    answer = onebasin(
        "sample", "normal.stan", "data.json", "--out", "run.nc", "--chains", "2", "--warmup", "200",
        "--draws", "300", "--exchangeable", "other", "--json",
    )  # fmt: skip
    assert (answer.code, answer.err) == (0, "")
    rows = {row["parameter"]: row for row in answer.json["parameters"]}
    assert set(rows) == {"mu", "other[0]", "other[1]"}
    # Precision 1 / 100 of the prior and 1 of each of four observations.
    mean, sd = 12 / 4.01, 1 / math.sqrt(4.01)
    assert answer.json["summary"]["ess_bulk_value"] > 100
    assert abs(rows["mu"]["mean"] - mean) < 5 * rows["mu"]["mcse_mean"]
    assert rows["mu"]["sd"] == pytest.approx(sd, rel=0.25)
    (block,) = from_json(open_posterior("run.nc").attrs["symmetry"])
    assert block.axes == {"other": 0}
    # Alike without being modes: two independent standard normals.
    assert answer.json["aligned"]["shrinkage"] < 0.9
    again = onebasin("diagnose", "run.nc", "--var", "mu", "--json").json
    assert again["parameters"] == [{**rows["mu"], "parameter": "mu"}]
    assert onebasin("report", "run.nc", "--out", "report.html").code == 0


@pytest.mark.stan
@pytest.mark.cmdstan
@pytest.mark.usefixtures("cmdstan_is_there")
def test_a_program_that_the_interpreter_refuses_is_compiled_and_the_file_says_why(
    onebasin, program
):
    Path("counts.stan").write_text(
        "parameters { real mu; }\nmodel { mu ~ std_normal(); }\n"
        "generated quantities { int k = multinomial_rng([0.5, 0.5]', 3)[1]; }\n"
    )
    words = ("--chains", "1", "--warmup", "50", "--draws", "50")
    answer = onebasin("sample", "counts.stan", "--out", "run.nc", *words)
    assert answer.code == 0, answer.err
    told = [line for line in answer.err.splitlines() if "compiled with CmdStan" in line]
    attributes = open_posterior("run.nc").attrs
    assert told == [attributes["engine_note"].removesuffix(".")]
    assert "multinomial_rng" in told[0]
    assert (attributes["engine"], "engine_build" in attributes) == ("cmdstan", False)


@pytest.mark.stan
def test_what_a_program_does_not_declare_is_named(onebasin, program):
    Path("bad.stan").write_text("parameters { real mu }\nmodel { }\n")
    answer = onebasin("sample", "bad.stan", "--out", "run.nc")
    assert answer.code == 1
    assert answer.err.startswith("onebasin: bad.stan does not parse:")
    assert "line 1" in answer.err
    assert "Traceback" not in answer.err
    Path("short.json").write_text('{"n": 4}')
    answer = onebasin("sample", "normal.stan", "short.json", "--out", "run.nc")
    assert answer.code == 1
    assert answer.err == (
        "onebasin: `DATA.json` lacks y, which normal.stan declares; it holds n.\n"
    )
    words = ("normal.stan", "data.json", "--out", "run.nc", "--exchangeable", "mu,theta")
    answer = onebasin("sample", *words)
    assert answer.code == 1
    assert "names theta, which normal.stan does not declare; it has: mu, other." in answer.err


def test_symmetry_that_draws_refute_is_written_said_and_ends_in_1(
    sample, sampler, program, monkeypatch
):
    found = Evidence(points=5, refuted="moving mu as declared changes the log density by 3 nats")
    trial = SimpleNamespace(at_draws=lambda tree: found)
    monkeypatch.setattr(sampling, "_check_symmetry", lambda *_: trial)
    answer = sample("--exchangeable", "mu")
    assert answer.code == 1
    assert "wrote run.nc" in answer.out
    assert "onebasin: The declared symmetry does not hold at this posterior's draws" in answer.err
    assert "the draws are valid, but nothing is aligned by it" in answer.err
    assert as_view(open_posterior("run.nc")).symmetry_evidence == found
    assert "does not hold" in sample("--force", "--json", "--exchangeable", "mu").json["notes"][-1]


def test_initial_values_and_an_earlier_run_are_files(sample, sampler, here):
    """Their contents decide whether the output is what the command makes."""
    (here / "init.json").write_text('{"mu": 0.5}')
    words = ("--init", "init.json", "--adapt-from", "init.json")
    assert sample(*words).code == 0
    assert sampler.last["start"] == sampler.last["adapt_from"] == Path("init.json")
    assert sampler.last["settings"] == Nuts()
    assert sample(*words).code == 0
    assert len(sampler.calls) == 1
    (here / "init.json").write_text('{"mu": 0.25}')
    assert sample(*words).code != 0
