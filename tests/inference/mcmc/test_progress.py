"""What is told of chains on their way: phase, step size, divergences, time; bars in terminals, few lines elsewhere."""

from types import SimpleNamespace

import pytest

import onebasin as ob
from onebasin.base.progress import ChainBar, ProgressBars, _moves
from onebasin.inference.mcmc.stan import BUFFERED, ChainWatch, NotWritten

from ..known import known_target

HEADER = "# method = sample\nlp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__,x\n"


class Seen(ProgressBars):
    """Bars that keep what they are told."""

    moving = True

    def __init__(self, moving: bool = True) -> None:
        super().__init__(False)
        self.moving, self.told, self.noted = moving, [], []

    def add(self, description: str, total: int, *, timed: bool = True) -> int:
        self.told.append((0, description))
        return super().add(description, total, timed=timed)

    def move(self, bar: int, completed: int, description: str | None = None) -> None:
        self.told.append((completed, description))

    def note(self, message: str) -> None:
        self.noted.append(message)


def test_a_bar_names_phase_step_size_and_divergences():
    seen = Seen()
    bar = ChainBar(seen, 1, 100, 200)
    bar.show(50, step_size=0.51234, divergences=3)
    bar.show(150, step_size=0.25, divergences=0, acceptance=0.876)
    bar.end(1.25, step_size=0.25, divergences=4, acceptance=0.8)
    assert seen.told == [
        (0, "chain 1 warmup"),
        (50, "chain 1 warmup   step 0.512, 3 divergent"),
        (150, "chain 1 sampling step 0.25, accept 0.88, 0 divergent"),
        (300, "chain 1 sampling step 0.25, accept 0.80, 4 divergent"),
    ]
    assert seen.noted == ["chain 1 is finished after 1.2 s: step 0.25, accept 0.80, 4 divergent"]


def test_draws_of_cmdstan_are_counted_as_they_are_written(tmp_path):
    seen, csv = Seen(), tmp_path / "draws.csv"
    watch = ChainWatch(ChainBar(seen, 0, 100, 100), csv, warmup=100)
    watch("Iteration:  50 / 200 [ 25%]  (Warmup)\n")
    csv.write_text(HEADER + "# Step size = 0.5\n-1,1,0.5,2,3,1,2,0\n-1,0.5,0.5,2,3,0,2,")
    watch("Iteration: 120 / 200 [ 60%]  (Sampling)\n")
    csv.write_text(csv.read_text() + "7\n-1,1,0.5,2,3,1,2,0\n# Elapsed\n")
    watch("Iteration: 130 / 200\nIteration: 140 / 200 [ 70%]  (Sampling)\n")
    watch("something else\n")
    assert [text for _, text in seen.told[1:]] == [
        "chain 0 warmup",
        "chain 0 sampling step 0.5, accept 1.00, 1 divergent",
        "chain 0 sampling step 0.5, accept 0.83, 2 divergent",
    ]
    assert seen.told[-1][0] == 140


def test_a_program_whose_draws_reach_no_file_is_stopped(tmp_path):
    """A full disk, which CmdStan does not notice; a warmup writes nothing, and rows wait in a buffer for a while."""
    csv = tmp_path / "draws.csv"
    csv.write_text(HEADER)
    warmed = []
    bar = ChainBar(Seen(moving=False), 0, 50, 100)
    watch = ChainWatch(bar, csv, warmup=50, warmed=warmed.append)
    for iteration in range(1, 51):
        watch(f"Iteration: {iteration} / 150 (Warmup)\n")
    assert warmed == []
    waiting = BUFFERED // len("0,0,0,0,0,0,0,0\n")
    for iteration in (51, 51 + waiting, 51 + 2 * waiting):
        csv.write_text(csv.read_text() + "-1,1,0.5,2,3,1,2,0\n")
        for later in (0, 1, waiting):
            watch(f"Iteration: {iteration + later} / 99999 (Sampling)\n")
    assert len(warmed) == 1
    with pytest.raises(NotWritten):
        watch(f"Iteration: {iteration + waiting + 1} / 99999 (Sampling)\n")


@pytest.mark.parametrize(
    ("environment", "terminal", "moves"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "CI": "false"}, True, True),
        ({"TERM": "xterm", "CI": "true"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_bars_move_only_where_somebody_sees_them(environment, terminal, moves):
    assert _moves(terminal, environment) is moves


def _clock(monkeypatch) -> list[float]:
    now = [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("onebasin.base.progress.time", clock)
    return now


@pytest.mark.parametrize("engine", ["numpyro", pytest.param("stan", marks=pytest.mark.stan)])
def test_elsewhere_than_in_a_terminal_a_chain_is_a_line(engine, capfd):
    settings = ob.Nuts(chains=2, warmup=60, draws=60)
    capfd.readouterr()
    tree = ob.infer(known_target(engine), engine=engine, method=settings, progress=True)
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("chain ")]
    assert len(lines) == 2
    for number in range(2):
        step = float(tree.sample_stats["step_size"][number, -1])
        divergent = int(tree.sample_stats["diverging"][number].sum())
        accept = float(tree.sample_stats["acceptance_rate"][number].mean())
        (line,) = (line for line in lines if line.startswith(f"chain {number} "))
        assert line.endswith(f": step {step:.3g}, accept {accept:.2f}, {divergent} divergent")
