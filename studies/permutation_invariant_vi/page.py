"""The page: sentences, chapters, tables and figures of all parts."""

from collections.abc import Iterator
from itertools import chain

from .. import lab
from . import design
from .classifiers import distances, nearness, widths
from .design import InvariantConfig
from .making import make, measures
from .two_modes import page as two_modes
from .two_weights import page as two_weights

_DEFINITIONS: tuple[tuple[str, str], ...] = (
    (
        "MFVI, SGM",
        "Mean-field variational inference; and its symmetrised form, a Gaussian averaged over all permutations of the "
        "hidden units, the paper's symmetric Gaussian mixture. A draw of the mixture is a draw of the Gaussian, "
        "permuted, so that both predict the same; what differs is what the Gaussian is trained for.",
    ),
    (
        "Mutual information, I",
        "Of a random permutation and the draw that it moved. The symmetrised ELBO is the ELBO plus I (Theorem 4.1), "
        "and I lies between 0 and log |G|, the logarithm of the number of permutations.",
    ),
    (
        "InfoNCE, K",
        "The paper's estimate of I, from the identity and K - 1 random permutations (Theorem 4.3). It is never above "
        "log K.",
    ),
    (
        "Recommended, fractional",
        "Estimates of I that rest on its being a matrix permanent: the exact permanent for few units, marginals of "
        "fractional messages for more.",
    ),
)
_QUESTION = (
    "A network's posterior has a mode for every order of its hidden units. A Gaussian fitted by the ELBO "
    "may come to lie between modes. Gelberg, van der Ouderaa, van der Wilk and Gal (2024) average the Gaussian "
    "over all permutations and train it by the ELBO of the average, whose new term, a mutual information, they "
    "estimate by InfoNCE. For one hidden layer the term is a matrix permanent, which is computed here exactly or "
    "with bounds on both sides.\n\n"
    "Five experiments: where one Gaussian lies between two modes; a network of two weights, whose posterior is "
    "known; classifiers of growing width, trained with either estimate; how close equivalent modes are; and "
    "the distance to HMC's draws."
)

# What a part has: CLAIMS and TABLES; and `headline` and `chapter`, which it makes of the frames.
PARTS = (two_modes, two_weights, widths, nearness, distances)
CLAIMS = tuple(claim for part in PARTS for claim in part.CLAIMS)
_TABLES = (table for part in PARTS for table in part.TABLES)
VIEWS = (*_TABLES, lab.STATEMENTS, lab.TRIALS, lab.FAILURES)


def headline(frames: lab.Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    yield from chain.from_iterable(part.headline(frames) for part in PARTS)
    yield lab.count_verdicts(frames)


def chapters(
    config: InvariantConfig, outcomes: lab.Outcomes, frames: lab.Frames
) -> Iterator[lab.Chapter | None]:
    """Lay out the chapters of the page."""
    yield lab.Chapter("The question", _QUESTION)
    yield from (part.chapter(frames) for part in PARTS)
    yield from lab.verdicts(frames)


def run_name(cell: lab.Cell) -> str | None:
    """Name the runs that the page describes: plain and recommended fits, and HMC."""
    shown = cell.problem.startswith("width-") and cell.method in ("mfvi", "recommended", "hmc")
    return cell.label if shown else None


STUDY = lab.Study(
    design.configure, design.cells, design.target, measures, CLAIMS, VIEWS,
    "Permutation-invariant variational inference",
    headline, chapters, _DEFINITIONS, run_name,
    shown=(
        two_modes.THRESHOLDS, two_weights.MSE, widths.accuracy_table, widths.PAIRED, distances.DISTANCES, lab.VERDICTS,
    ),
    make=make,
)  # fmt: skip
