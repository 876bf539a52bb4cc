"""Chains are kept as they end, taken up again, and stopped without loss."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from onebasin.inference import NutsSettings
from onebasin.inference.mcmc.chains import Chain, Gathered, run_chains
from onebasin.inference.mcmc.stan import _check_complete
from onebasin.models.errors import RunCancelled
from onebasin.stan.errors import StanRunError
from onebasin.stan.output import Output


def chain(number: int) -> Chain:
    return Chain(
        {"x": np.full((3, 2), float(number))}, {"diverging": np.zeros(3, dtype=bool)}, 0.5, 1.5
    )


class Runs:
    """Counts which chains were run; the chains of `broken` raise."""

    def __init__(self, broken: tuple[int, ...] = (), error: BaseException | None = None) -> None:
        self.numbers: list[int] = []
        self.broken = broken
        self.error = error or RuntimeError("planted")

    def prepare(self):
        def run(number: int, cancel: threading.Event) -> Chain:
            self.numbers.append(number)
            if number in self.broken:
                raise self.error
            return chain(number)

        return run


def test_chains_come_in_order_of_their_numbers() -> None:
    chains = run_chains(Runs().prepare, Gathered(5), folder=None, fingerprint="a")
    assert chains.draws["x"][:, 0, 0].tolist() == [0, 1, 2, 3, 4]
    assert chains.draws["x"].shape == (5, 3, 2)
    assert chains.stats["diverging"].shape == (5, 3)
    assert chains.warmup_seconds == [0.5] * 5


def test_finished_chains_are_kept_and_not_run_again(tmp_path: Path) -> None:
    first = Runs(broken=(3,))
    with pytest.raises(RuntimeError, match="planted"):
        run_chains(first.prepare, Gathered(4), folder=tmp_path, fingerprint="a")
    kept = sorted(int(p.stem[-1]) for p in tmp_path.glob("chain-*.npz"))
    assert kept
    assert 3 not in kept
    second = Runs()
    chains = run_chains(second.prepare, Gathered(4), folder=tmp_path, fingerprint="a")
    assert sorted(second.numbers) == [i for i in range(4) if i not in kept]
    assert chains.draws["x"][:, 0, 0].tolist() == [0, 1, 2, 3]
    assert chains.stats["diverging"].dtype == bool
    assert chains.sampling_seconds == [1.5] * 4


def test_nothing_is_prepared_when_all_chains_are_there(tmp_path: Path) -> None:
    run_chains(Runs().prepare, Gathered(2), folder=tmp_path, fingerprint="a")

    def prepare():
        raise AssertionError("not needed")

    assert len(run_chains(prepare, Gathered(2), folder=tmp_path, fingerprint="a").draws["x"]) == 2


def test_chains_of_another_run_are_not_taken(tmp_path: Path) -> None:
    run_chains(Runs().prepare, Gathered(2), folder=tmp_path, fingerprint="a")
    other = Runs()
    run_chains(other.prepare, Gathered(2), folder=tmp_path, fingerprint="b")
    assert sorted(other.numbers) == [0, 1]


@pytest.mark.parametrize("content", [b"", b"of somebody else"])
def test_damaged_chain_is_made_anew(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_chains(Runs().prepare, Gathered(3), folder=tmp_path, fingerprint="a")
    (tmp_path / "chain-1.npz").write_bytes(content)
    again = Runs()
    chains = run_chains(again.prepare, Gathered(3), folder=tmp_path, fingerprint="a")
    assert again.numbers == [1]
    assert chains.draws["x"][:, 0, 0].tolist() == [0, 1, 2]
    assert [message.partition(" is damaged")[0] for message in caplog.messages] == [
        str(tmp_path / "chain-1.npz")
    ]


def test_an_interrupt_stops_the_chains_and_keeps_the_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished, started, stopped = threading.Event(), threading.Event(), threading.Event()

    def run(number: int, cancel: threading.Event) -> Chain:
        if number == 0:
            finished.set()
            return chain(0)
        started.set()
        assert cancel.wait(20), "the chain was not told to stop"
        stopped.set()
        raise RunCancelled("stopped")

    def interrupt(*args: object, **kwargs: object) -> object:
        assert finished.wait(20)
        assert started.wait(20)
        while not (tmp_path / "chain-0.npz").exists():
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr("onebasin.inference.mcmc.chains.wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_chains(lambda: run, Gathered(2), folder=tmp_path, fingerprint="a")
    assert stopped.is_set()
    assert [p.name for p in tmp_path.iterdir()] == ["chain-0.npz"]


def test_the_cause_is_raised_and_not_its_consequence() -> None:
    def run(number: int, cancel: threading.Event) -> Chain:
        if number == 1:
            raise ValueError("the cause")
        assert cancel.wait(20)
        raise RunCancelled("the consequence")

    with pytest.raises(ValueError, match="the cause"):
        run_chains(lambda: run, Gathered(2), folder=None, fingerprint="a")


@pytest.mark.parametrize(
    ("rows", "comments"), [(9, ("0.5 seconds (Sampling)",)), (10, ("0.5 seconds (Warm-up)",))]
)
def test_draws_that_stan_could_not_write_to_the_end_are_no_chain(
    rows: int, comments: tuple[str, ...]
) -> None:
    output = Output({"lp__": np.zeros(rows)}, {}, comments)
    settings = NutsSettings(draws=10)
    with pytest.raises(StanRunError, match=rf"Stan wrote {rows} of 10 draws to .*draws\.csv"):
        _check_complete(output, settings, Path("draws.csv"))
    whole = Output({"lp__": np.zeros(10)}, {}, ("0.5 seconds (Sampling)",))
    _check_complete(whole, settings, Path("draws.csv"))
