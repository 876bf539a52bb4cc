"""The design: three sizes of the experiment, the methods, their settings and data, and the cells."""

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
"""Engines: of a cell that is computed from others or from nothing, and of one that is fitted or sampled."""
MAX_EXACT = 12
"""Up to that many units the recommended estimator is the exact permanent, as "auto" has it."""


@dataclass(frozen=True)
class Training:
    """A way to train q: its name in keys and for a reader, what trains the term, and K of InfoNCE.

    The paper's SGM is the symmetrised mean field.
    """

    name: str
    label: str
    mutual_information: str
    permutations: int | None = None

    @property
    def kind(self) -> str:
        """The kind in comparisons: "mfvi", "infonce" or "permanent"."""
        return {"none": "mfvi", "infonce": "infonce"}.get(self.mutual_information, "permanent")


MFVI = Training("mfvi", "MFVI", "none")
PERMANENTS = (
    Training("recommended", "SGM, recommended", "auto"),
    Training("fractional", "SGM, fractional", "fractional"),
)
"""Estimators that rest on the permanent; the recommended one is exact for few units, else fractional."""


@dataclass(frozen=True)
class FitSettings:
    """Settings of a cell's approximation, and the number of a fit's draws that stay in the file; None for all."""

    mutual_information: str
    vi: Symmetrised
    kept: int | None = None


@dataclass(frozen=True)
class TruthSettings:
    """Settings of aligning HMC's draws (`analysis.align`); the energy distance is taken of `max_draws` at most."""

    reference: str = "mean"
    max_draws: int = 400


@dataclass(frozen=True)
class InvariantConfig:
    """The study's settings.

    The seed is that of data, fits and samplers, the same for all methods, whose comparisons are paired. `infonce` are
    its K, `permanents` names of `PERMANENTS`; predictions are averaged over the draws of `vi`; `networks` are trained
    ones, whose nearest equivalent modes are looked at. HMC is run at `truth_widths`; at the others `kept` draws of a
    fit are kept.
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
"""Keys of the cells without posteriors: of the Gaussian between two modes, and of what is known of two weights."""


def configure(options: Options) -> InvariantConfig:
    """Make the settings from what the command line was given."""
    options.refuse(NAME, "datasets", "engine", "splits", "parametrisations", "problems")
    base = QUICK if options.quick else FULL if options.full else DEFAULT
    return replace(base, seed=options.seed, hmc=options.sampler(base.hmc))


def methods(config: InvariantConfig, width: int) -> tuple[Training, ...]:
    """List the methods of a width; the fractional one is left out where it is the recommended one."""
    infonce = (
        Training(f"infonce-{k}", f"SGM, InfoNCE, K = {k}", "infonce", k) for k in config.infonce
    )
    twice = {"fractional"} if width > MAX_EXACT and "recommended" in config.permanents else set()
    permanents = (m for m in PERMANENTS if m.name in config.permanents and m.name not in twice)
    return (MFVI, *infonce, *permanents)


def fit_settings(config: InvariantConfig, width: int, method: Training) -> FitSettings:
    """Settings of a classifier's fit."""
    vi = config.vi
    if method.permutations is not None:
        vi = replace(vi, permutations=method.permutations)
    kept = None if width in config.truth_widths else config.kept
    return FitSettings(method.mutual_information, vi, kept)


def width_problem(width: int) -> str:
    """Label of the classifier of a width."""
    return f"width-{width}"


def alpha_problem(alpha: float) -> str:
    """Label of the network of two weights at an alpha; a key has no dots but those between its parts."""
    return f"alpha-{alpha:g}".replace(".", "_")


def against(method: Training) -> str:
    """Method of the cell that compares a method's fits with HMC's draws."""
    return f"against-hmc-{method.name}"


def cells(config: InvariantConfig) -> tuple[Cell, ...]:
    """List all cells in the order in which they run; their case is their alpha or their width.

    First the parts without images, then the classifiers, width by width: trained networks, every method's fits, and,
    where HMC is affordable, its draws, the same aligned, and how far each method's fits are from them in weights.
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
    """Condition the cell's network on its training data; the parts that are computed have none."""
    if cell.case is None:
        return None
    if not cell.problem.startswith("width-"):
        return two_weights.target(config.two_weights, cell.case)
    train = image_split(config.images, config.seed).train
    name = f"{NAME}-{config.images.data}"
    return classifier(config.images, cell.case).condition(train.x, train.y, name=name)


def units(model: BayesianNetwork) -> Exchangeable:
    """The one block of a network with one hidden layer: what belongs to its units."""
    (block,) = blocks_of(model.symmetry, Exchangeable)
    return block
