"""A toy of every study: its smallest design, what answers at once in it, and what its run has to hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.gaussian.distillation import DistillationSettings
from onebasin.inference import Advi, Ensemble, Hmc, Nuts, Symmetrised
from onebasin.models.data import load_data
from onebasin.truth.problems.images import Images

type Found = Mapping[str, Any]
SHORT = ("--chains", "2", "--warmup", "10", "--draws", "40")


@dataclass(frozen=True)
class Toy:
    """How a study is run in little time."""

    words: tuple[str, ...]  # What is typed after `onebasin study NAME`.
    shrink: Callable[[pytest.MonkeyPatch], None]
    """Make the design small; samplers answer at once already."""
    check: Callable[[Found, Found], None]  # Given what the run found, and its run.json.


def few_points(seed: int = 0, noise_sd: float = 1.0) -> Any:
    """The two-unit teacher with few test points: every point costs the time of its ESS."""
    return load_data("relu-teacher", seed=seed, noise_sd=noise_sd, num_test=6)


def relu_teacher() -> Toy:
    def shrink(patch: pytest.MonkeyPatch) -> None:
        from onebasin.studies.relu_teacher import design

        patch.setattr(design, "teacher_data", few_points)

    def check(found: Found, run: Found) -> None:
        keys = {
            f"{p}.{m}.numpyro"
            for p in ("free", "givens")
            for m in ("nuts", "meanfield", "fullrank")
        }
        assert {row["key"] for row in found["frames"]["cells"]} == keys == {*run["cells"]}
        sampled = [row for row in found["frames"]["cells"] if row["method"] == "nuts"]
        assert {row["num_obs"] for row in sampled} == {6}  # held out
        tree = xr.open_datatree("run/posteriors/givens.nuts.numpyro.nc").load()
        assert tree["constant_data"].to_dataset()["x"].shape == (100, 2)
        assert tree["observed_data"].to_dataset()["y"].shape == (100, 1)

    words = ("--parametrisations", "free,givens", "--engine", "numpyro", *SHORT)
    return Toy(words, shrink, check)


def boston() -> Toy:
    def shrink(patch: pytest.MonkeyPatch) -> None:
        from onebasin.studies.boston import design

        patch.setattr(design, "HIDDEN", 2)

    def check(found: Found, run: Found) -> None:
        from onebasin.truth.problems.relu_networks import boston_split

        rows = {row["key"]: row for row in found["frames"]["cells"]}
        assert set(rows) == {
            f"split0{k}.{p}.nuts.numpyro" for k in (1, 2) for p in ("free", "givens")
        }
        cell, split = rows["split01.free.nuts.numpyro"], boston_split(0, 1)
        whole = load_data("boston").y
        y_sd = whole[np.isin(whole, split.raw.train.y)].std()
        assert cell["mse_data_units"] / cell["mse"] == pytest.approx(y_sd**2, rel=0.1)
        shift = cell["log_score"] - cell["log_score_data_units"]
        assert shift == pytest.approx(float(np.log(split.standardiser.y_sd[0])))

    only = ("--only", "*.free.nuts.*,*.givens.nuts.*")
    return Toy(("--splits", "2", "--parametrisations", "free,givens", *SHORT, *only), shrink, check)


def quick(module: str, toy: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Put these settings in the place of a study's quick ones."""
    return lambda patch: patch.setattr(f"onebasin.studies.{module}.design.QUICK", toy)


def compact_representation() -> Toy:
    from onebasin.studies.compact_representation import design

    toy = design.CompactConfig(
        seed=0,
        size=design.Size("digits", side=2, hidden=3, train=60),
        hmc=Hmc(chains=2, warmup=20, draws=25, trajectory_length=0.3, metric="unit"),
        ensemble=Ensemble(members=3, epochs=3, batch_size=20),
        advi=Advi(iterations=20, evaluate_every=10, elbo_samples=5, draws=30),
        distillation=DistillationSettings(iterations=5, points=40, draws=10, batch_size=20),
        pairs=design.PairSettings(2, 20, 1e-5, runs=2, swaps=(0, 2), points=5),
        draws=20,
    )

    def check(found: Found, run: Found) -> None:
        rows = {row["name"]: row for row in found["frames"]["rows"]}
        assert set(rows) == {row.name for row in design.rows(toy)}
        assert rows["hmc"]["agreement"] == 1.0
        # Permuted twins are as far apart as they were before training.
        swaps = xr.open_datatree(f"run/posteriors/{design.SWAPS}.nc").load()["swaps"].to_dataset()
        np.testing.assert_array_equal(swaps["after"], [[0, 2], [0, 2]])
        np.testing.assert_array_equal(swaps["between"].values[:, [0, -1]], [[0, 2], [0, 2]])
        assert (swaps["distance_aligned"] < 0.01).all()
        assert (swaps["distance_raw"][:, 1] > 0.1).all()
        np.testing.assert_allclose(swaps["barrier_aligned"], 0, atol=1e-4)

    return Toy(("--quick",), quick("compact_representation", toy), check)


def permutation_invariant_vi() -> Toy:
    from onebasin.studies.permutation_invariant_vi import design
    from onebasin.studies.permutation_invariant_vi.two_modes import Descent, InterpolationSettings
    from onebasin.studies.permutation_invariant_vi.two_weights import METHODS, TwoWeightSettings

    vi = Symmetrised(
        fits=3, steps=4, learning_rate=0.01, samples=1, evaluate_every=2, tolerance=0.0, draws=12,
        report_draws=8, report_permutations=3, elbo_samples=2,
    )  # fmt: skip
    toy = design.InvariantConfig(
        seed=0,
        interpolation=InterpolationSettings(
            sigmas=(1.0,), points=4, descent=Descent(5, 0.05, 20), ratios=(1.0, 3.0), seeds=2,
        ),
        two_weights=TwoWeightSettings(
            alphas=(0.5,), noises=(1.0,), num_obs=8, num_test=20, data_sets=2,
            fits=3, steps=4, permutations=2, draws=20,
        ),
        images=Images("digits", side=4, train=60),
        widths=(2, 3),
        infonce=(2,),
        permanents=("recommended",),
        vi=vi,
        networks=Ensemble(members=2, epochs=2, batch_size=20),
        truth_widths=(2,),
        hmc=Hmc(chains=2, warmup=10, draws=20, trajectory_length=0.2, metric="unit"),
        kept=2,
    )  # fmt: skip

    def check(found: Found, run: Found) -> None:
        frames = found["frames"]
        names = {"mfvi", "infonce-2", "recommended"}
        fits = {(row["width"], row["method"]) for row in frames["fits"]}
        assert fits == {(width, name) for width in (2, 3) for name in names}
        rows = {(row["source"], row["width"]) for row in frames["nearest"]}
        assert {("hmc", 2), ("networks", 3), ("mfvi", 3), ("prior", 2)} <= rows
        assert {row["draws"] for row in frames["truth"]} == {"hmc", "halves", "prior"} | names
        scored = {(row["alpha"], row["method"]) for row in frames["weight_fits"]}
        assert scored == {(0.5, label) for label in METHODS}
        folder = Path("run/posteriors")
        tree = xr.open_datatree(folder / "width-3.recommended.numpyro.nc").load()
        assert tree["posterior"].sizes["draw"] == toy.kept
        kept = xr.open_datatree(folder / "width-2.mfvi.numpyro.nc").load()
        assert kept["posterior"].sizes["draw"] == vi.draws
        for name, centre in kept["centre"].to_dataset().items():
            apart = kept["posterior"][name].mean("draw") - centre
            # Means of 12 draws: six standard errors
            assert (np.abs(apart) < 6 * kept["spread"][name] / np.sqrt(vi.draws)).all()

    return Toy(("--quick",), quick("permutation_invariant_vi", toy), check)


def orthogonal_skips() -> Toy:
    from onebasin.studies.orthogonal_skips import design

    toy = replace(
        design.QUICK,
        hidden=(3, 3),
        vi=replace(design.QUICK.vi, iterations=40, evaluate_every=10, elbo_samples=8, draws=20),
        nuts=Nuts(chains=2, warmup=20, draws=20, max_tree_depth=3),
        gap=design.GapSettings(points=2, draws=4, permutations=2),
    )

    def check(found: Found, run: Found) -> None:
        assert len(found["frames"]["cells"]) == 4
        ends = [row for row in found["frames"]["gaps"] if row["end"]]
        assert [row["layer"] for row in ends] == ["all", "hidden1", "hidden2"]
        for row in ends:
            assert -0.5 <= row["lower"] <= row["upper"] + 0.5
            assert row["upper"] <= row["log_order"] + 0.5

    return Toy(("--quick", "--problems", "plain,both"), quick("orthogonal_skips", toy), check)


TOYS: Mapping[str, Callable[[], Toy]] = {
    "relu-teacher": relu_teacher,
    "boston": boston,
    "compact-representation": compact_representation,
    "permutation-invariant-vi": permutation_invariant_vi,
    "orthogonal-skips": orthogonal_skips,
}
