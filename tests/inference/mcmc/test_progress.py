"""What is told of chains on their way: phase, step size, divergences; bars in terminals, few lines elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import onebasin as ob
from onebasin.inference.mcmc.stan_progress import ChainWatch
from onebasin.inference.progress import ChainBar, ProgressBars

from ..known import known_target

HEADER = "# method = sample\nlp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__,x\n"


class Seen(ProgressBars):
    """Bars that keep what they are told."""

    moving = True

    def __init__(self, moving: bool = True) -> None:
        super().__init__(False)
        self.moving, self.told, self.noted = moving, [], []

    def add(self, description: str, total: int) -> int:
        self.told.append((0, description))
        return 0

    def move(self, bar: int, completed: int, description: str | None = None) -> None:
        self.told.append((completed, description))

    def note(self, message: str) -> None:
        self.noted.append(message)


def test_a_bar_names_phase_step_size_and_divergences():
    seen = Seen()
    bar = ChainBar(seen, 1, 100, 200)
    bar.show(50, step_size=0.51234, divergences=3)
    bar.show(150, step_size=0.25, divergences=0)
    bar.end(1.25, step_size=0.25, divergences=4)
    assert seen.told == [
        (0, "chain 2 warmup"),
        (50, "chain 2 warmup   step 0.512, 3 divergent"),
        (150, "chain 2 sampling step 0.25, 0 divergent"),
        (300, "chain 2 sampling step 0.25, 4 divergent"),
    ]
    assert seen.noted == ["chain 2 is finished after 1.2 s: step 0.25, 4 divergent"]


def test_draws_of_cmdstan_are_counted_as_they_are_written(tmp_path: Path):
    seen, csv = Seen(), tmp_path / "draws.csv"
    watch = ChainWatch(ChainBar(seen, 0, 100, 100), csv)
    watch("Iteration:  50 / 200 [ 25%]  (Warmup)\n")
    csv.write_text(HEADER + "# Step size = 0.5\n-1,1,0.5,2,3,1,2,0\n-1,1,0.5,2,3,0,2,")
    watch("Iteration: 120 / 200 [ 60%]  (Sampling)\n")
    csv.write_text(csv.read_text() + "7\n-1,1,0.5,2,3,1,2,0\n# Elapsed\n")
    watch("Iteration: 130 / 200\nIteration: 140 / 200 [ 70%]  (Sampling)\n")
    watch("something else\n")
    assert [text for _, text in seen.told[1:]] == [
        "chain 1 warmup",
        "chain 1 sampling step 0.5, 1 divergent",
        "chain 1 sampling step 0.5, 2 divergent",
    ]
    assert seen.told[-1][0] == 140


def test_nothing_is_read_for_a_bar_that_nobody_sees(tmp_path: Path):
    seen = Seen(moving=False)
    ChainWatch(ChainBar(seen, 0, 1, 1), tmp_path)(
        "Iteration: 1 / 2\n"
    )  # a folder: reading it fails
    assert len(seen.told) == 1


@pytest.mark.parametrize("engine", ["numpyro", pytest.param("stan", marks=pytest.mark.stan)])
def test_elsewhere_than_in_a_terminal_a_chain_is_a_line(engine, capfd):
    settings = ob.NutsSettings(chains=2, warmup=100, draws=60)
    for progress in (False, True):
        capfd.readouterr()
        tree = ob.nuts(known_target(engine), engine=engine, settings=settings, progress=progress)
        lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("chain ")]
        assert len(lines) == (2 if progress else 0)
    for number in range(2):
        step = float(tree.sample_stats["step_size"][number, -1])
        divergent = int(tree.sample_stats["diverging"][number].sum())
        (line,) = (line for line in lines if line.startswith(f"chain {number + 1} "))
        assert line.endswith(f": step {step:.3g}, {divergent} divergent")


@pytest.mark.parametrize("engine", ["numpyro", pytest.param("stan", marks=pytest.mark.stan)])
def test_in_a_terminal_bars_tell_of_the_chain(engine, monkeypatch):
    told: list[str] = []
    monkeypatch.setattr(ProgressBars, "moving", True)
    monkeypatch.setattr(ProgressBars, "move", lambda self, bar, done, text=None: told.append(text))
    settings = ob.NutsSettings(chains=1, warmup=100, draws=60)
    ob.nuts(known_target(engine), engine=engine, settings=settings, progress=True)
    if engine == "numpyro":  # Stan's chain may have ended before anybody looks at what it prints
        assert any(text.startswith("chain 1 warmup") for text in told)
    assert "step" in told[-1] and "divergent" in told[-1]
    assert told[-1].startswith("chain 1 sampling")
