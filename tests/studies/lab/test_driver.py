"""Running cells: what is made, what is taken again, and what a failure takes with it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
import xarray as xr

from onebasin.inference import Nuts
from onebasin.models.target import Target
from onebasin.studies.lab import Cell, CellFailed, Context, Outcomes, Study

from ...command_fixtures import fake_posterior
from .toy_cells import run_in, silent

NUTS = Nuts(chains=2, warmup=10, draws=20)


@dataclass(frozen=True)
class Blend:
    """Settings of a method of the study's own."""

    power: float = 1.0


@dataclass(frozen=True)
class Config:
    seed: int = 0
    power: float = 1.0
    noise: str = "loud"


def cells(config: Config) -> tuple[Cell, ...]:
    first = Cell("a", "nuts", "stan", NUTS, config.seed)
    second = Cell("b", "nuts", "stan", NUTS, 7)
    both = Cell("ab", "blend", "numpy", Blend(config.power), 0, inputs=(first.key, second.key))
    last = Cell("c", "blend", "numpy", Blend(), 0, inputs=(both.key,))
    return first, second, both, last


@dataclass
class Kitchen:
    """A study whose last two cells are made from those before, and what it was asked to make."""

    made: list[str] = field(default_factory=list)
    before: Callable[[Cell], None] = lambda cell: None

    def make(self, config: Config, cell: Cell, context: Context) -> xr.DataTree:
        self.made.append(cell.problem)
        self.before(cell)
        if not cell.inputs:
            return fake_posterior(context.target, "nuts", "stan", cell.settings, cell.seed)
        inputs = [tree["posterior"].to_dataset() for tree in context.inputs]
        blend = sum(inputs) * cell.settings.power
        return xr.DataTree.from_dict({"posterior": blend})

    def study(self) -> Study:
        def target(config: Config, cell: Cell) -> Target | None:
            return None if cell.inputs else Target(cell.problem)

        return silent(Config, cells, target, self.make)


@pytest.fixture
def kitchen() -> Kitchen:
    return Kitchen()


@pytest.fixture
def cook(kitchen, tmp_path):
    """Run the study in one folder; returns outcomes and what was said."""

    def run(config: Config | None = None, study: Study | None = None) -> tuple[Outcomes, list[str]]:
        kitchen.made.clear()
        return run_in(tmp_path / "run", study or kitchen.study(), config or Config())

    return run


def values(outcomes: Outcomes, key: str) -> np.ndarray:
    (cell,) = (cell for cell in outcomes if cell.key == key)
    return outcomes.tree(cell)["posterior"].to_dataset()["mu"].values


def test_cell_is_made_from_its_inputs(cook, kitchen, tmp_path):
    outcomes, said = cook(Config(power=3.0))
    assert kitchen.made == ["a", "b", "ab", "c"]
    a, b = (values(outcomes, f"{name}.nuts.stan") for name in "ab")
    np.testing.assert_array_equal(values(outcomes, "ab.blend.numpy"), (a + b) * 3.0)
    np.testing.assert_array_equal(values(outcomes, "c.blend.numpy"), (a + b) * 3.0)
    assert "[3/4] ab, blend, numpy" in said
    assert not outcomes.failures
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["cells"]["a.nuts.stan"] == {"status": "done", "seconds": 1.5}


def test_finished_cells_are_taken_again(cook, kitchen):
    first, _ = cook()
    before = values(first, "c.blend.numpy")
    again, said = cook()
    assert kitchen.made == []
    assert sum(line.endswith(": there already") for line in said) == 4
    np.testing.assert_array_equal(values(again, "c.blend.numpy"), before)
    cook(Config(noise="quiet"))  # settings of the study alone
    assert kitchen.made == []


@pytest.mark.parametrize(
    ("config", "remade"),
    [
        (Config(seed=1), ["a", "ab", "c"]),  # an input changed: all that hangs on it
        (Config(power=2.0), ["ab", "c"]),  # its own settings
    ],
)
def test_changed_input_makes_anew_what_depends_on_it(cook, kitchen, config, remade):
    cook()
    changed, _ = cook(config)
    assert kitchen.made == remade
    a, b = (values(changed, f"{name}.nuts.stan") for name in "ab")
    np.testing.assert_array_equal(values(changed, "c.blend.numpy"), (a + b) * config.power)


def test_failed_input_fails_what_depends_on_it_until_it_succeeds(cook, kitchen, tmp_path):
    cook()

    def fail(cell: Cell) -> None:
        if cell.problem == "a":
            raise CellFailed("no mode was found")

    kitchen.before = fail
    outcomes, said = cook(Config(seed=1))
    assert kitchen.made == ["a"]
    assert [cell.problem for cell in outcomes] == ["b"]
    reason = "made from a.nuts.stan, which failed: no mode was found"
    assert list(outcomes.failures.values()) == [
        "no mode was found",
        reason,
        f"made from ab.blend.numpy, which failed: {reason}",
    ]
    assert f"[3/4] ab, blend, numpy: failed: {reason}" in said
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["cells"]["ab.blend.numpy"] == {"status": "failed", "message": reason}
    # What was made from an older input is gone, and what failed of itself is not tried again.
    assert {p.name for p in (tmp_path / "run/posteriors").glob("*.nc")} == {"b.nuts.stan.nc"}
    _, said = cook(Config(seed=1))
    assert kitchen.made == []
    assert "[1/4] a, NUTS, Stan: failed before: no mode was found" in said
    # With its failure forgotten the input succeeds, and with it the others.
    kitchen.before = lambda cell: None
    (tmp_path / "run/posteriors/a.nuts.stan.failed.json").unlink()
    outcomes, _ = cook(Config(seed=1))
    assert kitchen.made == ["a", "ab", "c"]
    assert not outcomes.failures
