"""Running cells: what is made, what is taken again, and what a failure takes with it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import h5py
import jax
import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist

from onebasin.base.errors import AdviFailed, StudyError, WriteError
from onebasin.inference import Nuts, Symmetrised
from onebasin.inference.runs.fingerprint import fingerprint
from onebasin.models.symmetry.blocks import Exchangeable
from onebasin.models.target import Target
from onebasin.studies.lab import Cell, CellFailed, Context, Outcomes, Study
from onebasin.studies.lab.folder import FINGERPRINT
from onebasin.studies.lab.making import mark, sample, symmetrise

from ...command_fixtures import fake_posterior
from ...each import each
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
    contexts: list[Context] = field(default_factory=list)
    before: Callable[[Cell], None] = lambda cell: None

    def make(self, config: Config, cell: Cell, context: Context) -> xr.DataTree:
        self.made.append(cell.problem)
        self.contexts.append(context)
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
    return outcomes.by_key(key)["posterior"].to_dataset()["mu"].values


def test_cell_is_made_from_its_inputs_and_told_target_folder_and_progress(cook, kitchen, tmp_path):
    outcomes, said = cook(Config(power=3.0))
    assert kitchen.made == ["a", "b", "ab", "c"]
    a, b = (values(outcomes, f"{name}.nuts.stan") for name in "ab")
    np.testing.assert_array_equal(values(outcomes, "ab.blend.numpy"), (a + b) * 3.0)
    np.testing.assert_array_equal(values(outcomes, "c.blend.numpy"), (a + b) * 3.0)
    assert said[2] == "[3/4] ab, blend, numpy"
    assert outcomes.by_key("ab.blend.numpy").attrs["wall_time"] > 0
    assert not outcomes.failures
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["cells"]["a.nuts.stan"] == {"status": "done", "seconds": 1.5}
    # What making is told, and what the files carry.
    names = [context.target and context.target.name for context in kitchen.contexts]
    assert names == ["a", "b", None, None]
    folder = tmp_path / "run" / "posteriors"
    assert kitchen.contexts[2].checkpoint == folder / "ab.blend.numpy.chains"
    assert not any(context.progress for context in kitchen.contexts)
    first = next(iter(outcomes))
    with h5py.File(outcomes.paths[first]) as file:
        assert file.attrs[FINGERPRINT] == mark(first, Target("a"), {})


def test_finished_cells_are_taken_again(cook, kitchen):
    first, _ = cook()
    before = values(first, "c.blend.numpy")
    again, said = cook()
    assert kitchen.made == []
    assert said.count("    there already") == 4
    np.testing.assert_array_equal(values(again, "c.blend.numpy"), before)
    cook(Config(noise="quiet"))  # settings of the study alone
    assert kitchen.made == []


@each(
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
    assert f"    failed: {reason}" in said
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["cells"]["ab.blend.numpy"] == {"status": "failed", "message": reason}
    # What was made from an older input is gone, and what failed of itself is not tried again.
    assert {p.name for p in (tmp_path / "run/posteriors").glob("*.nc")} == {"b.nuts.stan.nc"}
    _, said = cook(Config(seed=1))
    assert kitchen.made == []
    assert "    failed before: no mode was found" in said
    # With its failure forgotten the input succeeds, and with it the others.
    kitchen.before = lambda cell: None
    (tmp_path / "run/posteriors/a.nuts.stan.failed.json").unlink()
    outcomes, _ = cook(Config(seed=1))
    assert kitchen.made == ["a", "ab", "c"]
    assert not outcomes.failures


def test_an_error_fails_its_cell_alone_and_is_tried_again(cook, kitchen, tmp_path):
    def fail(cell: Cell) -> None:
        if cell.problem == "b":
            raise RuntimeError("a bug")
        if cell.problem == "a":  # which is a result, and not tried again
            raise AdviFailed("gave up", [])

    kitchen.before = fail
    outcomes, said = cook()
    assert kitchen.made == ["a", "b", "b"]
    assert [cell.problem for cell in outcomes] == []
    assert [cell.problem for cell in outcomes.broken] == ["b"]
    assert [cell.problem for cell in outcomes.failures] == ["a", "b", "ab", "c"]
    assert "    failed, and is tried again (1 of 1): RuntimeError: a bug" in said
    kept = json.loads((tmp_path / "run/posteriors/b.nuts.stan.failed.json").read_text())
    assert kept["message"] == "RuntimeError: a bug"
    assert 'raise RuntimeError("a bug")' in kept["trace"]
    # The next run tries what was broken off, and what failed with it.
    kitchen.before = lambda cell: None
    (tmp_path / "run/posteriors/a.nuts.stan.failed.json").unlink()
    outcomes, _ = cook()
    assert kitchen.made == ["a", "b", "ab", "c"]
    assert not outcomes.failures


def test_an_error_before_the_making_stops_the_study(cook, kitchen):
    def target(config: Config, cell: Cell) -> Target | None:
        raise RuntimeError("no data")

    with pytest.raises(RuntimeError, match="no data"):
        cook(study=replace(kitchen.study(), target=target))
    assert kitchen.made == []


def test_a_full_disk_says_what_is_kept(cook, kitchen):
    def fill(cell):
        if cell.key == "ab.blend.numpy":
            raise WriteError(Path("ab.nc"), "ab.nc cannot be written (No space left on device).")

    kitchen.before = fill
    with pytest.raises(
        StudyError, match=r"^ab\.nc cannot .*device\); 2 of 4 cells are .* kept in .*\.$"
    ):
        cook()


def test_mark_follows_all_that_decides_the_draws_and_all_that_the_file_holds():
    cell, target = cells(Config())[0], Target("a")
    how = {"engine": "stan", "method": "nuts", "settings": NUTS, "seed": 0, "inputs": []}
    how |= {"symmetry": "[]", "dims": {}}
    assert mark(cell, target, {}) == fingerprint(target, **how)
    assert mark(cell, target, {}) == mark(replace(cell, problem="other"), target, {})
    for other in ({"symmetry": (Exchangeable({"mu": 0}),)}, {"dims": {"mu": ("part",)}}):
        assert mark(cell, Target("a", **other), {}) != mark(cell, target, {})
    cell, marks = cells(Config())[2], {"a.nuts.stan": "1", "b.nuts.stan": "2"}
    changes = {"inputs": cell.inputs[::-1], "settings": Blend(1.5), "seed": 1, "method": "mix"}
    own = mark(cell, None, marks)
    others = [
        mark(cell, None, marks | {"b.nuts.stan": "3"}),
        mark(cell, target, marks),
        mark(replace(cell, engine="jax"), None, marks),
        *(mark(replace(cell, **{name: value}), None, marks) for name, value in changes.items()),
    ]
    assert len({own, *others}) == 8
    assert own == mark(cell, None, dict(marks))


def test_cell_whose_model_has_no_fingerprint_is_made_anew_with_what_follows(cook, kitchen, caplog):
    def model() -> None:
        mu = jax.lax.stop_gradient(numpyro.sample("mu", dist.Normal(0.0, 1.0)))
        like = jax.ShapeDtypeStruct((), mu.dtype)
        numpyro.deterministic("same", jax.pure_callback(lambda v: v, like, mu))

    def target(config: Config, cell: Cell) -> Target | None:
        return Target("a", numpyro_model=model) if cell.problem == "a" else plain(config, cell)

    plain = kitchen.study().target
    study = replace(kitchen.study(), target=target)
    for made in (["a", "b", "ab", "c"], ["a", "ab", "c"]):
        cook(study=study)
        assert kitchen.made == made
        (message,) = caplog.messages
        assert message.startswith("The model of 'a' has no fingerprint, since it computes outside")
        caplog.clear()
    assert [context.checkpoint is None for context in kitchen.contexts[:4]] == [True, False] + [
        True
    ] * 2


@each(
    ("change", "message"),
    [
        (lambda c: (c[2], *c[:2]), "`inputs` of the cell ab.blend.numpy names 'a.nuts.stan', "),
        (lambda c: (c[0], c[2]), "no earlier cell; earlier are: a.nuts.stan"),
        (lambda c: (c[0], replace(c[0], seed=3)), "`cells` has two cells a.nuts.stan"),
    ],
)
def test_cells_out_of_order_are_refused(cook, kitchen, change, message):
    study = replace(kitchen.study(), cells=lambda config: change(cells(config)))
    with pytest.raises(ValueError, match=message):
        cook(study=study)
    assert kitchen.made == []


def test_sampling_without_a_target_is_refused(tmp_path):
    context = Context(None, tmp_path, False, lambda line: None)
    with pytest.raises(ValueError, match=r"`target` of the cell a\.nuts\.stan is None; give it a"):
        sample(cells(Config())[0], context)


def test_symmetrised_fits_choose_the_engine_that_has_a_definition(sampler, tmp_path):
    context = Context(Target("a"), tmp_path, False, lambda line: None)
    symmetrise(cells(Config())[0], context, Symmetrised())
    assert sampler.last["engine"] == "numpyro"  # and not the cell's, which is Stan


def test_study_without_make_samples_by_the_cells_method(cook, kitchen, sampler):
    study = replace(
        kitchen.study(),
        cells=lambda config: cells(config)[:2],
        target=lambda config, cell: Target(cell.problem),
        make=None,
    )
    outcomes, _ = cook(study=study)
    assert [call["seed"] for call in sampler.calls] == [0, 7]
    assert [call["target"].name for call in sampler.calls] == ["a", "b"]
    assert len(outcomes.paths) == 2
