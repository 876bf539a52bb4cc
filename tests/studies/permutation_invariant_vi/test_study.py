"""The study of a Gaussian averaged over permutations: design, comparison with HMC, toy runs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from onebasin import inference
from onebasin.inference import EnsembleSettings, HmcSettings, SymmetrisedSettings
from onebasin.inference.posterior import build
from onebasin.models import BayesianNetwork, Categorical, Network
from onebasin.studies.lab import Options
from onebasin.studies.lab.images import Images, image_split
from onebasin.studies.permutation_invariant_vi import STUDY, design
from onebasin.studies.permutation_invariant_vi.classifiers.truth import (
    hold_against,
    make_truth,
    weight_distance,
)
from onebasin.studies.permutation_invariant_vi.design import configure
from onebasin.studies.permutation_invariant_vi.making import moments
from onebasin.studies.permutation_invariant_vi.two_modes import measures as interpolation
from onebasin.studies.permutation_invariant_vi.two_modes import settings as interpolation_settings
from onebasin.studies.permutation_invariant_vi.two_modes.settings import Descent
from onebasin.studies.permutation_invariant_vi.two_weights import optima as quadrature
from onebasin.studies.permutation_invariant_vi.two_weights.design import METHODS, TwoWeightSettings

MODEL = BayesianNetwork(Network(3, (4,), 2, "relu"), Categorical())
TOY_VI = SymmetrisedSettings(
    fits=3, steps=4, learning_rate=0.01, samples=1, evaluate_every=2, tolerance=0.0, draws=12,
    report_draws=8, report_permutations=3, elbo_samples=2,
)  # fmt: skip
TOY = design.Config(
    seed=0,
    interpolation=interpolation_settings.InterpolationSettings(
        sigmas=(1.0,), points=4, descent=Descent(5, 0.05, 20), ratios=(1.0, 3.0), seeds=2,
        noisy=(Descent(5, 0.05, 20), Descent(2, 0.1, 10)), noisy_ratios=(2.2, 3.0), noisy_seeds=2, times=(1.0, 3.0),
    ),
    two_weights=TwoWeightSettings(
        alphas=(0.5,), noises=(1.0,), num_obs=8, num_test=20, data_sets=2, curve_points=2,
        fits=3, steps=4, permutations=2, draws=20,
    ),
    images=Images("digits", side=4, train=60),
    widths=(2, 3),
    infonce=(2,),
    permanents=("recommended", "barber-agakov"),
    vi=TOY_VI,
    networks=EnsembleSettings(members=2, epochs=2, batch_size=20),
    truth_widths=(2,),
    hmc=HmcSettings(chains=2, warmup=10, draws=20, trajectory_length=0.2, metric="unit"),
    kept=2,
)  # fmt: skip


@pytest.mark.parametrize("options", [Options(quick=True), Options(), Options(full=True)])
def test_every_alpha_has_a_cell_for_every_method(options):
    config = configure(options)
    found = [cell for cell in STUDY.cells(config) if cell.key.startswith("alpha-")]
    assert len(found) == len(METHODS) * len(config.two_weights.alphas)


def test_every_fit_of_a_width_has_the_seed_and_settings_of_the_others():
    config = configure(Options(seed=3))
    for width in config.widths:
        cells = [
            cell
            for cell in STUDY.cells(config)
            if cell.problem == f"width-{width}" and isinstance(cell.settings, design.FitSettings)
        ]
        assert len(cells) == len(design.methods(config, width))
        assert {cell.seed for cell in cells} == {3}
        assert {replace(cell.settings.vi, permutations=2) for cell in cells} == {
            replace(config.vi, permutations=2)
        }


def test_methods_are_not_run_twice_under_two_names():
    every = ("recommended", "fractional", "barber-agakov")
    config = replace(configure(Options()), infonce=(2, 10), permanents=every)
    few, many = ([m.name for m in design.methods(config, width)] for width in (8, 16))
    assert few == ["mfvi", "infonce-2", "infonce-10", *every]
    assert many == [name for name in few if name != "fractional"]
    alone = design.methods(replace(config, permanents=("fractional",)), 16)
    assert alone[-1].name == "fractional"
    ks = [design.fit_settings(config, 8, m).vi.permutations for m in design.methods(config, 8)[1:3]]
    assert ks == [2, 10]


def test_full_size_is_the_papers_and_options_of_other_studies_are_refused():
    full = configure(Options(full=True))
    assert (full.images.data, full.images.side, max(full.widths)) == ("mnist", 28, 512)
    assert configure(Options(quick=True, draws=7)).hmc.draws == 7
    with pytest.raises(ValueError, match="`--engine` does not apply to the study permutation-inv"):
        configure(Options(engine="stan"))


def some_images():
    return image_split(Images("digits", side=4, train=60), 0).test


def draws_tree(rng, model, chains, draws, centre, sd):
    variables = {
        name: (
            ("chain", "draw", *model.network.dims[name]),
            centre[name] + sd * rng.normal(size=(chains, draws, *shape)),
        )
        for name, shape in model.network.shapes.items()
    }
    stats = xr.Dataset({"lp": (("chain", "draw"), np.zeros((chains, draws)))})
    flat = np.full((chains, some_images().num_obs, 10), math.log(0.1))
    predictive = xr.Dataset({"log_probability": (("chain", "obs", "class"), flat)})
    groups = {"posterior": xr.Dataset(variables), "sample_stats": stats, "predictive": predictive}
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {"model": model.describe()}
    return tree


def test_permuted_draws_of_the_same_distribution_are_at_no_distance(rng):
    model = BayesianNetwork(Network(16, (3,), 10, "relu"), Categorical())
    centre = {n: rng.normal(size=s) for n, s in model.network.shapes.items()}
    tree = draws_tree(rng, model, 2, 100, centre, 0.1)
    settings = design.TruthSettings()
    truth = make_truth(tree, settings, some_images())
    assert truth.attrs["spread_left"] < 1.01
    order = np.array([2, 0, 1])
    moved = dict(centre)
    moved |= {"W1": centre["W1"][:, order], "b1": centre["b1"][order], "W2": centre["W2"][order]}
    fitted = draws_tree(rng, model, 2, 100, moved, 0.1)
    found = hold_against(fitted, truth, settings)["weights"].to_dataset()
    assert (np.abs(found["energy"]) < 0.02).all()
    assert (found["mean"] < 0.25).all()  # sqrt(1 / 100 + 1 / 200) = 0.12 by chance
    np.testing.assert_allclose(found["sd_ratio"], 1.0, atol=0.05)
    uniform = np.abs(truth["predictive"]["probability"].sel(part="all") - 0.1).sum("class") / 2
    apart = hold_against(fitted, truth, settings)["predictive"]["total_variation"]
    np.testing.assert_allclose(apart, float(uniform.mean()), rtol=1e-10)
    halves = truth["weights"].to_dataset().sel(pair="halves")
    assert abs(float(halves["energy"])) < 0.02
    assert float(truth["weights"].to_dataset().sel(pair="prior")["energy"]) > 1.0
    far = draws_tree(rng, model, 1, 100, {n: v + 0.1 for n, v in moved.items()}, 0.2)
    found = hold_against(far, truth, settings)["weights"].to_dataset()
    np.testing.assert_allclose(found["mean"], 1.0, atol=0.15)
    np.testing.assert_allclose(found["sd_ratio"], 2.0, atol=0.1)
    np.testing.assert_allclose(found["sd"], math.log(2), atol=0.05)


def test_weight_distance_counts_no_draw_twice(rng):
    draws = rng.normal(size=(1, 30, 4))
    found = weight_distance(draws, draws, design.TruthSettings())
    assert (found["mean"], found["sd"], found["sd_ratio"]) == (0.0, 0.0, 1.0)


def test_moments_of_q_are_laid_out_by_variable(rng):
    shapes = MODEL.network.shapes
    size = sum(int(np.prod(s)) for s in shapes.values())
    loc = np.arange(2 * size, dtype=float).reshape(2, size)
    variational = xr.Dataset({"loc": (("chain", "param"), loc), "scale": (("chain", "param"), loc)})
    found = moments(MODEL, xr.DataTree.from_dict({"variational": variational}))["centre"]
    assert found["W1"].values[0].ravel().tolist() == list(range(12))
    assert found["W2"].values[0].ravel().tolist() == list(range(12, 20))
    assert found["b1"].values[1].tolist() == [size + 20.0, size + 21, size + 22, size + 23]


def stand_in(
    target, *, family, mutual_information, settings, seed, checkpoint, predictive_mb, progress
):
    """Answer as `inference.symmetrised_vi` does, at once: draws of independent normals."""
    assert family == "meanfield"
    rng = np.random.default_rng([seed, len(mutual_information), settings.permutations])
    shapes = dict(sorted(target.model.network.shapes.items()))
    lead = (settings.fits, settings.draws)
    loc = {n: 0.5 * rng.normal(size=(settings.fits, *s)) for n, s in shapes.items()}
    draws = {n: loc[n][:, None] + 0.1 * rng.normal(size=(*lead, *s)) for n, s in shapes.items()}
    vector = np.concatenate([v.reshape(settings.fits, -1) for v in loc.values()], axis=1)
    elbo = rng.normal(size=settings.fits) - 100
    final = {
        "final_elbo": elbo, "final_elbo_mcse": 0.1 + 0 * elbo,
        "information_lower": 0.1 + 0 * elbo, "information_lower_mcse": 0.01 + 0 * elbo,
        "information_upper": 0.2 + 0 * elbo, "information_upper_mcse": 0.01 + 0 * elbo,
        "symmetrised_elbo_lower": elbo + 0.1, "symmetrised_elbo_upper": elbo + 0.2,
    }  # fmt: skip
    variational = xr.Dataset(
        {name: ("chain", value) for name, value in final.items()}
        | {"loc": (("chain", "param"), vector), "scale": (("chain", "param"), 0.1 + 0 * vector)}
    )
    how = {"engine": "numpyro", "method": "symmetrised-vi", "seed": seed, "wall_time": 1.0}
    width = target.model.network.hidden[0]
    how |= {"mutual_information": mutual_information, "log_group_order": math.lgamma(width + 1)}
    stats = {name: rng.normal(size=lead) for name in ("lp", "log_q")}
    return build(target, draws, stats, how, variational=variational)


WORDS = ("study", "permutation-invariant-vi", "--quick", "--out", "run", "--no-progress", "--json")


def run_toy(onebasin, here):
    answer = onebasin(*WORDS)
    assert answer.code == 0, answer.err
    frames = answer.json["frames"]
    fitted = {(row["width"], row["method"]) for row in frames["fits"]}
    assert (2, "recommended") in fitted
    assert (3, "barber-agakov") in fitted
    assert len(fitted) == 8
    rows = {(row["source"], row["width"]) for row in frames["nearest"]}
    assert {("hmc", 2), ("networks", 3), ("mfvi", 3), ("prior", 2)} <= rows
    compared = {row["draws"] for row in frames["truth"]}
    fitted = {"mfvi", "infonce-2", "recommended", "barber-agakov"}
    assert compared == {"hmc", "halves", "prior"} | fitted
    scored = {(row["alpha"], row["method"]) for row in frames["weight_fits"]}
    assert scored == {(0.5, label) for label in METHODS}
    page = (here / "run" / "report.html").read_text()
    assert "Table 1 remade" in page
    assert "Theorem 3.1" in page
    return answer


def quick_ensemble(target, settings, *, seed, **how):
    """Answer as an ensemble does, at once."""
    rng = np.random.default_rng(seed)
    shapes = target.model.network.shapes
    draws = {n: rng.normal(size=(1, settings.members, *s)) for n, s in shapes.items()}
    how = {"engine": "numpyro", "method": "ensemble", "seed": seed, "wall_time": 1.0}
    return build(target, draws, {"lp": np.zeros((1, settings.members))}, how)


@pytest.mark.slow
def test_toy_run_from_the_command_line(onebasin, here, sampler, monkeypatch):
    """Everything that takes long stands still; the parts without images have tests of their own."""
    def infer(target, method, **how):
        if isinstance(method, inference.Symmetrised):
            return stand_in(target, method, **how)
        quick = quick_ensemble if isinstance(method, inference.Ensemble) else sampler.infer
        return quick(target, method, **how)

    monkeypatch.setattr(inference, "infer", infer)
    monkeypatch.setattr(interpolation, "run", lambda settings: {})
    monkeypatch.setattr(design, "QUICK", TOY)
    answer = run_toy(onebasin, here)
    assert sampler.last["settings"] == TOY.hmc
    assert "thresholds" not in answer.json["frames"]
    # Concluding again solves nothing: what takes long is in cells.
    monkeypatch.setattr(quadrature, "run", None)
    assert onebasin(*WORDS).json["frames"] == answer.json["frames"]


@pytest.mark.slow
def test_toy_run_with_the_method_itself(onebasin, here, monkeypatch):
    monkeypatch.setattr(design, "QUICK", TOY)
    answer = run_toy(onebasin, here)
    again = onebasin(*WORDS)
    assert again.err.count("there already") == len(STUDY.cells(TOY))
    assert again.json["frames"] == answer.json["frames"]
    tree = xr.open_datatree(here / "run" / "posteriors" / "width-3.recommended.numpyro.nc").load()
    assert tree["posterior"].sizes["draw"] == TOY.kept
    kept = xr.open_datatree(here / "run" / "posteriors" / "width-2.mfvi.numpyro.nc").load()
    assert kept["posterior"].sizes["draw"] == TOY_VI.draws
    for name, centre in kept["centre"].to_dataset().items():
        apart = kept["posterior"][name].mean("draw") - centre
        # Means of 12 draws: six standard errors
        assert (np.abs(apart) < 6 * kept["spread"][name] / math.sqrt(TOY_VI.draws)).all()
