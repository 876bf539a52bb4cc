"""`onebasin sample`: what becomes of its files, and which are refused."""

import os
from pathlib import Path

import numpy as np
import pytest

from onebasin.inference.runs.posterior import open_posterior

from ..command_fixtures import NORMAL, keep_chain


def test_existing_file_is_replaced_only_by_force(sample, sampler):
    Path("run.nc").write_text("precious")
    answer = sample()
    assert answer.code == 1
    assert "run.nc, which exists" in answer.err
    assert "--force" in answer.err
    assert sampler.calls == []
    assert Path("run.nc").read_text() == "precious"
    assert sample("--force").code == 0
    assert open_posterior("run.nc").attrs["method"] == "nuts"


def test_an_input_is_never_the_output(sample, sampler, onebasin):
    for out in ("normal.stan", "./data.json"):
        before = Path(out).read_text()
        assert onebasin("sample", "normal.stan", "data.json", "--out", out, "--force").code == 1
        assert Path(out).read_text() == before
    assert sampler.calls == []


@pytest.mark.stan
def test_an_included_file_is_never_the_output(here, onebasin):
    Path("part.stan").write_text("parameters { real x; }\n")
    Path("whole.stan").write_text("#include part.stan\nmodel { x ~ normal(0, 1); }\n")
    before = Path("part.stan").read_text()
    answer = onebasin("sample", "whole.stan", "--out", "./part.stan", "--force")
    assert answer.code == 1
    assert Path("part.stan").read_text() == before


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
    assert (answer.code, answer.err) == (0, "run.nc holds what this command makes\n")
    assert not chains.exists()
    assert Path("run.nc").read_bytes() == draws
    assert len(sampler.calls) == 1
    for words in (
        ["--seed", "4"],
        ["--seed", "3", "--draws", "7"],
        ["--seed", "3", "--chains", "2"],
    ):
        answer = sample(*words)
        assert answer.code == 1
        assert "run.nc, which exists" in answer.err
    Path("normal.stan").write_text(NORMAL.replace("10", "11"))
    assert "run.nc, which exists" in sample("--seed", "3").err
    assert len(sampler.calls) == 1
    assert Path("run.nc").read_bytes() == draws


def test_damaged_result_of_the_same_command_is_refused(sample, sampler):
    assert sample().code == 0
    content = bytearray(Path("run.nc").read_bytes())
    content[-1] ^= 1
    Path("run.nc").write_bytes(content)
    answer = sample()
    assert (answer.code, "damaged" in answer.err) == (1, True)
    assert sample("--force").code == 0
    assert sample().code == 0


def test_a_file_that_appears_meanwhile_is_not_overwritten(sample, sampler):
    sampler.before = lambda call: Path("run.nc").write_text("precious")
    answer = sample()
    assert answer.code == 1
    assert "run-1.nc" in answer.err
    assert Path("run.nc").read_text() == "precious"
    assert open_posterior("run-1.nc").attrs["method"] == "nuts"


def test_the_second_command_on_one_output_is_refused_at_once(sample, sampler):
    second = []

    def meanwhile(call):
        if not second:
            second.append(None)
            second[0] = sample("--seed", "1")

    sampler.before = meanwhile
    assert sample().code == 0
    assert second[0].code == 1
    assert f"process {os.getpid()}" in second[0].err
    assert open_posterior("run.nc").attrs["seed"] == 0
    assert not list(Path().glob(".run*"))


def test_a_full_disk_says_what_is_kept(sample, sampler, monkeypatch):
    def keep(call):
        for number in range(4):
            keep_chain(call["checkpoint"], number, call["settings"].draws)
        monkeypatch.setattr("onebasin.base.files.writing.flush", full)

    def full(*_):
        raise OSError(28, "No space left on device")

    sampler.before = keep
    answer = sample()
    assert answer.code == 1
    for word in ("No space left on device", "4,000 of 4,000 draws kept in run.nc.chains"):
        assert word in answer.err
    assert not Path("run.nc").exists()
