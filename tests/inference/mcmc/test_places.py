"""Chains are kept as they end, taken up again, stopped without loss; and nothing of anybody else's is touched."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from onebasin.base.errors import InferenceError, InUse, RunCancelled
from onebasin.inference.mcmc.chains import ChainPlace, Gathered, RunChain, Standing, run_chains
from onebasin.inference.runs.checkpoint import kept_draws, remove


def count(place: ChainPlace, cancel: threading.Event) -> None:
    """A chain of nine draws, which are their own numbers; three at a time."""
    done = place.standing.draws if place.standing else 0
    while done < 9:
        place.put(done, {"x": np.arange(done, done + 3.0)}, {"lp": np.zeros(3)})
        done += 3
        place.save(lambda done=done: Standing(done))
    place.finish(Standing(9, 1.0, 2.0))


def run(work: RunChain, folder: Path, mark: str = "a", *, chains: int = 1) -> np.ndarray:
    gathered = Gathered(chains, 9)
    run_chains(lambda: work, gathered, chains=chains, draws=9, folder=folder, fingerprint=mark)
    return gathered.draws["x"]


def test_a_second_run_on_the_folder_is_refused_and_told_who_holds_it(tmp_path):
    def second(place: ChainPlace, cancel: threading.Event) -> None:
        with pytest.raises(InUse, match=rf"`checkpoint` is .*, which process {os.getpid()} \("):
            run(count, tmp_path)
        count(place, cancel)

    assert run(second, tmp_path).tolist() == [list(range(9))]
    assert run(count, tmp_path).tolist() == [list(range(9))]


def test_another_run_is_left_alone_and_goes_on_later(tmp_path):
    def stopped(place: ChainPlace, cancel: threading.Event) -> None:
        place.put(0, {"x": np.full(5, -1.0)}, {"lp": np.zeros(5)})
        place.save(lambda: Standing(5, state={"of": np.array("a")}), now=True)
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        run(stopped, tmp_path)
    for _ in range(2):
        assert run(count, tmp_path, "b" * 64).tolist() == [list(range(9))]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chain-0", "chain-0-bbbbbbbb"]
    assert sorted(kept_draws(tmp_path)) == [5, 9]

    def goes_on(place: ChainPlace, cancel: threading.Event) -> None:
        assert place.standing is not None
        assert str(place.standing.state["of"]) == "a"
        place.put(5, {"x": np.full(4, 1.0)}, {"lp": np.zeros(4)})
        place.finish(Standing(9))

    assert run(goes_on, tmp_path).tolist() == [[-1.0] * 5 + [1.0] * 4]
    assert remove(tmp_path) == []
    assert not tmp_path.exists()


def test_what_others_put_into_the_folder_stays(tmp_path):
    run(count, tmp_path, chains=2)
    (tmp_path / "chain-0" / "notes.txt").write_text("mine")
    assert remove(tmp_path) == ["chain-0"]
    assert (tmp_path / "chain-0" / "notes.txt").read_text() == "mine"
    (tmp_path / "chain-0" / "state.npz").unlink()
    with pytest.raises(InferenceError, match="chain-0"):
        run(count, tmp_path)


def three(place: ChainPlace) -> None:
    """Three draws of a chain, at once."""
    x = np.full((3, 2), float(place.number))
    place.put(0, {"x": x}, {"diverging": np.zeros(3, dtype=bool)})
    place.finish(Standing(3, 0.5, 1.5))


def run_all(prepare, chains, folder=None):
    gathered = Gathered(chains, 3)
    how = {"chains": chains, "draws": 3, "folder": folder, "fingerprint": "a"}
    return gathered, run_chains(prepare, gathered, **how)


class Runs:
    """Counts which chains were run; the chains of `broken` raise."""

    def __init__(self, broken: tuple[int, ...] = ()) -> None:
        self.numbers: list[int] = []
        self.broken = broken

    def __call__(self, place: ChainPlace, cancel: threading.Event) -> None:
        self.numbers.append(place.number)
        if place.number in self.broken:
            raise RuntimeError("planted")
        three(place)


def test_finished_chains_are_kept_in_their_order_and_not_run_again(tmp_path):
    first = Runs(broken=(3,))
    with pytest.raises(RuntimeError, match="planted"):
        run_all(lambda: first, 4, tmp_path)
    kept = [n for n in range(4) if (tmp_path / f"chain-{n}" / "draws-000000.npz").exists()]
    assert kept
    assert 3 not in kept
    second = Runs()
    chains, ended = run_all(lambda: second, 4, tmp_path)
    assert sorted(second.numbers) == [i for i in range(4) if i not in kept]
    np.testing.assert_array_equal(chains.draws["x"][:, :, 1], np.arange(4)[:, None] * np.ones(3))
    assert (chains.draws["x"].shape, chains.stats["diverging"].shape) == ((4, 3, 2), (4, 3))
    assert chains.stats["diverging"].dtype == bool
    assert [(c.warmup_seconds, c.sampling_seconds) for c in ended] == [(0.5, 1.5)] * 4
    third = run_all(lambda: pytest.fail("not needed"), 4, tmp_path)
    assert len(third[0].draws["x"]) == 4


@pytest.mark.parametrize("name", ["state.npz", "draws-000000.npz"])
def test_damaged_chain_is_made_anew(name, tmp_path, caplog):
    run_all(Runs, 3, tmp_path)
    (tmp_path / "chain-1" / name).write_bytes(b"of somebody else")
    again = Runs()
    chains, _ = run_all(lambda: again, 3, tmp_path)
    assert again.numbers == [1]
    assert chains.draws["x"][:, 0, 0].tolist() == [0, 1, 2]
    assert str(tmp_path / "chain-1" / name) in caplog.text


def test_an_interrupt_stops_the_chains_and_keeps_the_finished(tmp_path, monkeypatch):
    finished, started, stopped = threading.Event(), threading.Event(), threading.Event()

    def work(place: ChainPlace, cancel: threading.Event) -> None:
        if place.number == 0:
            three(place)
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
        run_all(lambda: work, 2, tmp_path)
    assert stopped.is_set()
    assert kept_draws(tmp_path) == [3]


def test_the_cause_is_raised_and_not_its_consequence():
    def work(place: ChainPlace, cancel: threading.Event) -> None:
        if place.number == 1:
            raise ValueError("the cause")
        assert cancel.wait(20)
        raise RunCancelled("the consequence")

    with pytest.raises(ValueError, match="the cause"):
        run_all(lambda: work, 2)
