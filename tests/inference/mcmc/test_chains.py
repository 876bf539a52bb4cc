"""Chains are kept as they end, taken up again, and stopped without loss."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onebasin.base.errors import RunCancelled
from onebasin.inference.mcmc.chains import RunChain, run_chains
from onebasin.inference.mcmc.places import ChainPlace, Gathered, Standing
from onebasin.inference.runs.kept import kept_draws

from ...each import each


def put(place: ChainPlace) -> None:
    """Three draws of a chain, at once."""
    x = np.full((3, 2), float(place.number))
    place.put(0, {"x": x}, {"diverging": np.zeros(3, dtype=bool)})
    place.finish(Standing(3, 0.5, 1.5))


def run(
    prepare: Callable[[], RunChain], chains: int, folder: Path | None = None, mark: str = "a"
) -> tuple[Gathered, list[Standing]]:
    gathered = Gathered(chains, 3)
    how = {"chains": chains, "draws": 3, "folder": folder, "fingerprint": mark}
    return gathered, run_chains(prepare, gathered, **how)


class Runs:
    """Counts which chains were run; the chains of `broken` raise."""

    def __init__(self, broken: tuple[int, ...] = (), error: BaseException | None = None) -> None:
        self.numbers: list[int] = []
        self.broken = broken
        self.error = error or RuntimeError("planted")

    def prepare(self):
        def run(place: ChainPlace, cancel: threading.Event) -> None:
            self.numbers.append(place.number)
            if place.number in self.broken:
                raise self.error
            put(place)

        return run


def test_chains_come_in_order_of_their_numbers():
    chains, ended = run(Runs().prepare, 5)
    assert chains.draws["x"][:, 0, 0].tolist() == [0, 1, 2, 3, 4]
    assert chains.draws["x"].shape == (5, 3, 2)
    assert chains.stats["diverging"].shape == (5, 3)
    assert [chain.warmup_seconds for chain in ended] == [0.5] * 5


def test_finished_chains_are_kept_and_not_run_again(tmp_path):
    first = Runs(broken=(3,))
    with pytest.raises(RuntimeError, match="planted"):
        run(first.prepare, 4, tmp_path)
    kept = [n for n in range(4) if (tmp_path / f"chain-{n}" / "draws-000000.npz").exists()]
    assert kept
    assert 3 not in kept
    second = Runs()
    chains, ended = run(second.prepare, 4, tmp_path)
    assert sorted(second.numbers) == [i for i in range(4) if i not in kept]
    assert chains.draws["x"][:, 0, 0].tolist() == [0, 1, 2, 3]
    assert chains.stats["diverging"].dtype == bool
    assert [chain.sampling_seconds for chain in ended] == [1.5] * 4

    def prepare():
        raise AssertionError("not needed")

    assert len(run(prepare, 4, tmp_path)[0].draws["x"]) == 4


@each("name", ["state.npz", "draws-000000.npz"])
@each("content", [b"", b"of somebody else"])
def test_damaged_chain_is_made_anew(content, name, tmp_path, caplog):
    run(Runs().prepare, 3, tmp_path)
    (tmp_path / "chain-1" / name).write_bytes(content)
    again = Runs()
    chains, _ = run(again.prepare, 3, tmp_path)
    assert again.numbers == [1]
    assert chains.draws["x"][:, 0, 0].tolist() == [0, 1, 2]
    assert [message.partition(" is damaged")[0] for message in caplog.messages] == [
        str(tmp_path / "chain-1" / name)
    ]


def test_an_interrupt_stops_the_chains_and_keeps_the_finished(tmp_path, monkeypatch):
    finished, started, stopped = threading.Event(), threading.Event(), threading.Event()

    def work(place: ChainPlace, cancel: threading.Event) -> None:
        if place.number == 0:
            put(place)
            finished.set()
            return
        started.set()
        assert cancel.wait(20), "the chain was not told to stop"
        stopped.set()
        raise RunCancelled("stopped")

    def interrupt(*args: object, **kwargs: object) -> object:
        assert finished.wait(20)
        assert started.wait(20)
        raise KeyboardInterrupt

    monkeypatch.setattr("onebasin.inference.mcmc.chains.wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(lambda: work, 2, tmp_path)
    assert stopped.is_set()
    assert kept_draws(tmp_path) == [3]


def test_the_cause_is_raised_and_not_its_consequence():
    def work(place: ChainPlace, cancel: threading.Event) -> None:
        if place.number == 1:
            raise ValueError("the cause")
        assert cancel.wait(20)
        raise RunCancelled("the consequence")

    with pytest.raises(ValueError, match="the cause"):
        run(lambda: work, 2)
