"""Design of the study: three sizes of the experiment, the methods with their settings and data, and the cells."""

from dataclasses import dataclass, field, replace
from functools import partial

from onebasin.inference import Ensemble, Hmc, Symmetrised
from onebasin.models import BayesianNetwork, NetworkTarget
from onebasin.models.symmetry.blocks import Exchangeable, blocks_of
from onebasin.truth.problems.networks import Images, classifier, image_split

from ..lab.study import Cell
from ..options import Options
from . import two_modes, two_weights
from .two_modes import InterpolationSettings
from .two_weights import TwoWeightSettings

NAME = "permutation-invariant-vi"
MADE, NUMPYRO = "analysis", "numpyro"
"""Engines: `MADE` for computed cells, `NUMPYRO` for fitted or sampled ones."""
MAX_EXACT = 12
"""Largest number of units for which the recommended estimator ("auto") is the exact permanent."""


@dataclass(frozen=True)
class Training:
    """A way to train q: its name in keys, its label, the estimator of the mutual information, and K of InfoNCE.

    SGM is the paper's name for the symmetrised mean field.
    """

    name: str
    label: str
    mutual_information: str
    permutations: int | None = None

    @property
    def kind(self) -> str:
        """Kind of method in comparisons: "mfvi", "infonce" or "permanent"."""
        return {"none": "mfvi", "infonce": "infonce"}.get(self.mutual_information, "permanent")


MFVI = Training("mfvi", "MFVI", "none")
PERMANENTS = (
    Training("recommended", "SGM, recommended", "auto"),
    Training("fractional", "SGM, fractional", "fractional"),
)
"""Estimators that use the permanent. The recommended one is exact for few units and fractional for more."""


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit. `kept` is the number of draws stored per fit; None stores all."""

    mutual_information: str
    vi: Symmetrised
    kept: int | None = None


@dataclass(frozen=True)
class TruthSettings:
    """Settings of the reference: alignment of the HMC draws, and the maximum number for the energy distance."""

    reference: str = "mean"
    max_draws: int = 400


@dataclass(frozen=True)
class InvariantConfig:
    """Settings of the study.

    Data, fits and samplers of all methods share `seed`, so comparisons are paired. `infonce` lists the values of K, and
    `permanents` names entries of `PERMANENTS`. Predictions are averaged over the draws of `vi`. `networks` are trained
    networks for the nearest equivalent modes. HMC runs at `truth_widths`. At other widths, the file of a fit stores
    `kept` draws.
    """

    seed: int
    interpolation: InterpolationSettings
    two_weights: TwoWeightSettings
    images: Images
    widths: tuple[int, ...]
    infonce: tuple[int, ...]
    permanents: tuple[str, ...]
    vi: Symmetrised
    networks: Ensemble
    truth_widths: tuple[int, ...]
    hmc: Hmc
    truth: TruthSettings = field(default_factory=TruthSettings)
    kept: int = 10


# fmt: off
QUICK = InvariantConfig(
    seed=0,
    interpolation=two_modes.QUICK,
    two_weights=two_weights.QUICK,
    images=Images("digits", side=8, train=500),
    widths=(4, 16),
    infonce=(10,),
    permanents=("recommended",),
    vi=Symmetrised(
        fits=3, steps=500, learning_rate=0.02, samples=1, evaluate_every=250, tolerance=0.0, draws=100,
        dtype="float32",
    ),
    networks=Ensemble(members=3, epochs=50, batch_size=100, learning_rate=0.01),
    truth_widths=(4,),
    hmc=Hmc(chains=2, warmup=100, draws=100, trajectory_length=0.5, metric="unit", init_radius=1.0),
)
DEFAULT = replace(
    QUICK,
    interpolation=InterpolationSettings(),
    two_weights=TwoWeightSettings(),
    images=Images("mnist-5k", side=14, train=2000),
    widths=(8, 16, 32),
    infonce=(10, 100),
    vi=Symmetrised(
        fits=5, steps=10_000, learning_rate=0.01, samples=1, evaluate_every=1000, tolerance=0.0, draws=200,
        batch_size=500, dtype="float32",
    ),
    networks=Ensemble(members=5, epochs=200, batch_size=100, learning_rate=0.01),
    truth_widths=(8,),
    hmc=Hmc(chains=2, warmup=300, draws=400, trajectory_length=1.5, metric="unit", init_radius=1.0),
)
FULL = replace(
    DEFAULT,
    infonce=(2, 10, 100),
    permanents=tuple(method.name for method in PERMANENTS),
    images=Images("mnist", side=28, train=None),
    widths=(16, 32, 64, 128, 256, 512),
    vi=replace(DEFAULT.vi, steps=50_000, learning_rate=0.005, batch_size=128, evaluate_every=5000, draws=100),
    networks=Ensemble(members=5, epochs=30, batch_size=500, learning_rate=0.001),
    truth_widths=(16,),
    hmc=Hmc(
        chains=2, warmup=200, draws=500, trajectory_length=0.5, metric="unit", init_radius=0.05, dtype="float32",
    ),
)
# fmt: on

INTERPOLATION = f"two-modes.interpolation.{MADE}"
QUADRATURE = f"two-weights.quadrature.{MADE}"
"""Keys of the cells without a posterior: the Gaussian between two modes, and the exact results for two weights."""


def configure(options: Options) -> InvariantConfig:
    """Make the settings from the options of the command line."""
    options.refuse(NAME, "datasets", "engine", "splits", "parametrisations", "problems")
    base = QUICK if options.quick else FULL if options.full else DEFAULT
    return replace(base, seed=options.seed, hmc=options.sampler(base.hmc))


def methods(config: InvariantConfig, width: int) -> tuple[Training, ...]:
    """List the methods of a width, without "fractional" if the recommended estimator is the same."""
    infonce = (
        Training(f"infonce-{k}", f"SGM, InfoNCE, K = {k}", "infonce", k) for k in config.infonce
    )
    twice = {"fractional"} if width > MAX_EXACT and "recommended" in config.permanents else set()
    permanents = (m for m in PERMANENTS if m.name in config.permanents and m.name not in twice)
    return (MFVI, *infonce, *permanents)


def fit_settings(config: InvariantConfig, width: int, method: Training) -> FitSettings:
    """Make the settings of a classifier's fit."""
    vi = config.vi
    if method.permutations is not None:
        vi = replace(vi, permutations=method.permutations)
    kept = None if width in config.truth_widths else config.kept
    return FitSettings(method.mutual_information, vi, kept)


def width_problem(width: int) -> str:
    """Return the problem label of the classifier with this width."""
    return f"width-{width}"


def alpha_problem(alpha: float) -> str:
    """Return the problem label of the two-weight network at this alpha, without dots: they separate parts of a key."""
    return f"alpha-{alpha:g}".replace(".", "_")


def against(method: Training) -> str:
    """Return the method label of the cell that compares the fits of a method with the HMC draws."""
    return f"against-hmc-{method.name}"


def cells(config: InvariantConfig) -> tuple[Cell, ...]:
    """List all cells in the order in which they run. The case of a cell is its alpha or its width.

    The parts without images come first, then the classifiers, width by width. Each width has trained networks and the
    fits of every method. Widths with HMC also have its draws, the aligned draws, and a comparison for every method.
    """
    seed, vi = config.seed, two_weights.fit_settings(config.two_weights)
    made = {INTERPOLATION: config.interpolation, QUADRATURE: config.two_weights}
    found = [Cell.of(key, settings, seed) for key, settings in made.items()]
    for alpha in config.two_weights.alphas:
        cell = partial(Cell, alpha_problem(alpha), seed=seed, case=alpha)
        for label, how in two_weights.METHODS.items():
            found.append(cell(label, NUMPYRO, FitSettings(how, vi)))
    for width in config.widths:
        cell = partial(Cell, width_problem(width), seed=seed, case=width)
        found.append(cell("ensemble", NUMPYRO, config.networks))
        fits = {
            method: cell(method.name, NUMPYRO, fit_settings(config, width, method))
            for method in methods(config, width)
        }
        found += fits.values()
        if width in config.truth_widths:
            hmc = cell("hmc", NUMPYRO, config.hmc)
            truth = cell("truth", MADE, config.truth, inputs=(hmc.key,))
            found += [hmc, truth]
            for method, fit in fits.items():
                inputs = (fit.key, truth.key)
                found.append(cell(against(method), MADE, config.truth, inputs=inputs))
    return tuple(found)


def target(config: InvariantConfig, cell: Cell) -> NetworkTarget | None:
    """Condition the network of a cell on its training data; return None for a computed cell."""
    if cell.case is None:
        return None
    if not cell.problem.startswith("width-"):
        return two_weights.target(config.two_weights, cell.case)
    train = image_split(config.images, config.seed).train
    name = f"{NAME}-{config.images.data}"
    return classifier(config.images, cell.case).condition(train.x, train.y, name=name)


def units(model: BayesianNetwork) -> Exchangeable:
    """Return the symmetry block of the hidden units in a network with one hidden layer."""
    (block,) = blocks_of(model.symmetry, Exchangeable)
    return block
