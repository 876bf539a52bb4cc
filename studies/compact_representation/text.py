"""What the study says in words, and the chapters of its page."""

from collections.abc import Iterator

from onebasin.truth.problems.images import image_split

from ..lab import Cell, Chapter, Frames, Text, count_verdicts, read, verdicts
from .design import ENSEMBLE, HMC, MEANFIELD, REFINED, Config, num_parameters
from .views import ALIGNMENTS, GOALS, PAPER_TABLE, ROWS, SWAPS, best_gaussian

GAUSSIAN, PAIRS = "How good is one Gaussian?", "Trained networks, and the line between them"
"""Chapters that have figures."""

_DEFINITIONS = (
    (
        "Agreement, total variation",
        "Of class probabilities averaged over draws with those of all of HMC's draws: the share of test images "
        "with the same most probable class; and half the sum over classes of the absolute differences, averaged "
        "over test images (equations 1 and 2 of the paper, the second without its half).",
    ),
    (
        "Mutual information",
        "The entropy of the averaged probabilities less the mean entropy of a single draw's: how much draws "
        "differ in what they predict. A point has none.",
    ),
    (
        "q_i, q_r",
        "Diagonal Gaussians with the mean and standard deviations of the draws as they are, and after alignment "
        "(rebasin).",
    ),
    (
        "Distilled",
        "A diagonal Gaussian whose predictions, draw by draw, are brought to those of HMC's draws on training "
        "images and mixtures of two of them, by the energy score. It has seen HMC's predictions, no test image.",
    ),
    (
        "Transpositions (NoT)",
        "The fewest exchanges of two hidden units that make up a permutation: units less cycles.",
    ),
)


def _headline(frames: Frames) -> Iterator[str]:
    rows = read("rows", frames)
    truth, theirs = rows.find(name="hmc"), rows.find(name="hmc-qr")
    best = best_gaussian(rows, "one Gaussian")
    if theirs and best:
        yield (
            f"One diagonal Gaussian by the paper's recipe agrees with HMC on {theirs['agreement']:.3f} of the test "
            f"images (halved total variation {theirs['total_variation']:.3f}); the best one here "
            f"({best['label']}) on {best['agreement']:.3f} ({best['total_variation']:.3f})."
        )
    if truth and best:
        yield (
            f"A single draw of it classifies {best['draw_accuracy']:.3f} of the test images, one of HMC's "
            f"{truth['draw_accuracy']:.3f}; its mutual information is {best['mutual_information']:.3f} nats, HMC's "
            f"{truth['mutual_information']:.3f}."
        )
    yield count_verdicts(frames)


def _chapters(config: Config, frames: Frames) -> tuple[Chapter | None, ...]:
    return (
        Chapter("The question", _question(config)),
        Chapter("The paper's Table 1", views=(PAPER_TABLE,)),
        Chapter(GAUSSIAN, _spread(frames), views=(ROWS, GOALS)),
        Chapter(
            "Is there one basin?",
            "Alignment brings any draws closer together, draws from the prior and draws of shuffled units too.",
            views=(ALIGNMENTS,),
        ),
        Chapter(
            PAIRS,
            "These networks are trained by Adam on the likelihood alone, as in the paper's Figures 2 and 3.",
            views=(SWAPS,),
        ),
        *verdicts(frames),
    )


def _question(config: Config) -> str:
    data, size = image_split(config.size, config.seed), config.size
    return (
        "A network's hidden units can be permuted without any change to what it computes. Xiao, Liu and "
        "Bamler (2023) bring the draws of a Bayesian network into one labelling and replace them by one Gaussian. "
        "How much of the posterior is left?\n\n"
        f"Here the network has {size.side**2} inputs, {size.hidden} ReLU units and 10 outputs "
        f"({num_parameters(config):,} weights and biases) with N(0, 1) priors, conditioned on "
        f"{data.train.num_obs:,} images and tried on {data.test.num_obs:,} others ({data.train.source}). HMC's "
        "draws are the truth; every representation is made from the same draws."
    )


def _spread(frames: Frames) -> str:
    text = (
        "Agreement and total variation look at predictions averaged over draws alone, and a lone network "
        "does well by them. So the accuracy of one draw and the mutual information stand beside them: they say "
        "whether the spread is the posterior's."
    )
    for floor in read("floor", frames):
        text += (
            f" The halves of HMC's chains agree on {floor['agreement']:.4f} of the images, with halved total "
            f"variation {floor['total_variation']:.4f}: nothing below that can be told apart."
        )
    return text


def _run_name(cell: Cell) -> str | None:
    return cell.label if cell.key in (HMC, ENSEMBLE, MEANFIELD, REFINED) else None


TEXT = Text(
    title="One Gaussian for a network's posterior",
    headline=_headline,
    chapters=_chapters,
    definitions=_DEFINITIONS,
    run_name=_run_name,
)
