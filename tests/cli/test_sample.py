"""`onebasin sample`: options, errors, Ctrl-C, its files, the groups of its posterior; any Stan program."""

import math
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from onebasin import inference
from onebasin.cli.methods import OFFERED
from onebasin.inference import Advi, Hmc, Laplace, Mclmc, Modes, Nuts, Optimize, Pathfinder
from onebasin.models.symmetry.blocks import from_json
from onebasin.models.symmetry.evidence import Evidence
from onebasin.posteriors.open import open_posterior
from onebasin.posteriors.view import as_view

from ..command_fixtures import DATA, NORMAL, keep_chain


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


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (["--chains", "3", "--metric", "dense"], Nuts(chains=3, metric="dense")),
        (["--method", "hmc", "--trajectory-length", "2.5"], Hmc(trajectory_length=2.5)),
        (
            ["--method", "hmc", "--init", "optimum", "--init-starts", "20"],
            Hmc(init="optimum", init_starts=20),
        ),
        (["--method", "mclmc", "--learning-rate", "0.1"], Mclmc(learning_rate=0.1)),
        (["--method", "modes", "--most", "3", "--starts", "9"], Modes(most=3, starts=9)),
        (["--method", "meanfield", "--elbo-samples", "7"], Advi(elbo_samples=7)),
        (["--method", "fullrank", "--tolerance", "0.1"], Advi(family="fullrank", tolerance=0.1)),
        (["--method", "advi", "--family", "fullrank"], Advi(family="fullrank")),
        (["--method", "pathfinder", "--paths", "3"], Pathfinder(paths=3)),
        (["--method", "laplace", "--starts", "2"], Laplace(starts=2)),
        (["--method", "optimize", "--jacobian"], Optimize(jacobian=True)),
    ],
)
def test_every_option_changes_the_settings(asked, words, settings):
    call = asked(*words)
    assert call["settings"] == settings
    method = words[1] if words[0] == "--method" else "nuts"
    assert call["method"].removeprefix("advi-") in (method, "fullrank")


@pytest.mark.parametrize("name", OFFERED)
def test_help_on_a_method_shows_the_fields_that_programs_have_a_use_for(
    onebasin, monkeypatch, name
):
    monkeypatch.setenv("COLUMNS", "120")
    method = OFFERED[name]
    every = {f.name.replace("_", "-") for kind in OFFERED.values() for f in fields(kind)}
    own = {f.name.replace("_", "-") for f in fields(method) if f.name not in method.networks_alone}
    shown = set(re.findall(r"--([a-z-]+)", onebasin("sample", "--method", name, "--help").out))
    assert shown & every == own


def test_an_optimum_is_shown_and_not_judged(sample, sampler):
    answer = sample("--method", "optimize", "--json")
    assert answer.code == 0
    assert answer.json["converged"] is True
    assert set(answer.json["optimum"]) == {"mu"}
    again = sample("--method", "optimize")
    assert again.code == 0
    assert again.out.rstrip().endswith("wrote run.nc")
    assert len(sampler.calls) == 1


def test_nothing_is_made_of_an_optimum(onebasin, sample, sampler):
    assert sample("--method", "optimize").code == 0
    assert sample("--method", "laplace", "--out", "other.nc").code == 0
    for words in ("diagnose run.nc", "report run.nc --out page.html", "compare run.nc other.nc"):
        answer = onebasin(*words.split())
        assert (answer.code, "point estimate" in answer.err) == (1, True), answer.err


def test_seed_progress_and_symmetry_reach_the_run(asked):
    call = asked("--seed", "7", "--no-progress", "--exchangeable", "mu,other")
    assert call["seed"] == 7
    assert call["progress"] is False
    assert call["checkpoint"] == Path("run.nc.chains")
    (block,) = call["target"].symmetry
    assert block.axes == {"mu": 0, "other": 0}


@pytest.mark.parametrize(
    ("words", "terminal", "told"),
    [("", False, True), ("--no-progress", True, False), *(("--json", t, t) for t in (True, False))],
)
def test_a_program_that_reads_json_is_told_no_progress(asked, monkeypatch, words, terminal, told):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    assert asked(*words.split())["progress"] is told


def test_interrupt_keeps_finished_chains_and_the_same_command_goes_on(sample, sampler):
    def interrupt(call):
        for number in range(4):
            keep_chain(call["checkpoint"], number, call["settings"].draws if number < 3 else 20)
        raise KeyboardInterrupt

    sampler.before = interrupt
    answer = sample()
    assert answer.code == 130
    assert "3,020 of 4,000 draws kept in run.nc.chains" in answer.err
    assert not Path("run.nc").exists()
    sampler.before = lambda call: None
    assert sample().code == 0
    assert sampler.calls[0]["checkpoint"] == sampler.calls[1]["checkpoint"]
    assert not Path("run.nc.chains").exists()


@pytest.mark.stan
def test_program_is_sampled_and_diagnosed(onebasin, program):
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
    assert "bad.stan" in answer.err and "line 1" in answer.err
    words = ("normal.stan", "data.json", "--out", "run.nc", "--exchangeable", "mu,theta")
    answer = onebasin("sample", *words)
    assert (answer.code, "theta" in answer.err) == (1, True)


def test_symmetry_that_draws_refute_is_written_said_and_ends_in_1(sample, sampler, monkeypatch):
    found = Evidence(points=5, refuted="moving mu as declared changes the log density by 3 nats")
    drawn = sampler.infer

    def refuted(*arguments, **how):
        tree = drawn(*arguments, **how)
        tree.attrs["symmetry_evidence"] = found.to_json()
        return tree

    monkeypatch.setattr(inference, "infer", refuted)
    answer = sample("--exchangeable", "mu")
    assert answer.code == 1
    assert "wrote run.nc" in answer.out
    assert "symmetry" in answer.err
    assert as_view(open_posterior("run.nc")).symmetry_evidence == found


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


def test_only_what_runs_have_kept_is_deleted(sample, sampler):
    chains = Path("run.nc.chains")
    chains.mkdir()
    (chains / "notes.txt").write_text("mine")
    np.savez(chains / "table.npz", a=np.arange(3))
    np.savez(chains / "chain-0.npz", fingerprint=np.array("of another run"))
    (chains / "chain-1.npz").touch()
    answer = sample()
    assert answer.code == 0
    assert "notes.txt, table.npz" in answer.err
    assert sorted(path.name for path in chains.iterdir()) == ["notes.txt", "table.npz"]


def test_the_same_command_finishes_what_was_left(sample, sampler):
    """Killed after the result was written: what is there is what is asked for."""
    assert sample("--seed", "3").code == 0
    draws = Path("run.nc").read_bytes()
    chains = Path("run.nc.chains")
    chains.mkdir()
    np.savez(chains / "chain-3.npz", fingerprint=np.array("of this run"))
    answer = sample("--seed", "3")
    assert (answer.code, answer.err) == (0, "run.nc already holds the result of this command\n")
    assert not chains.exists()
    assert Path("run.nc").read_bytes() == draws
    assert len(sampler.calls) == 1
    for words in ("--seed 4", "--seed 3 --draws 7", "--seed 3 --chains 2"):
        answer = sample(*words.split())
        assert answer.code == 1
        assert "run.nc, which already exists" in answer.err
    Path("normal.stan").write_text(NORMAL.replace("10", "11"))
    assert "run.nc, which already exists" in sample("--seed", "3").err
    assert len(sampler.calls) == 1
    assert Path("run.nc").read_bytes() == draws
