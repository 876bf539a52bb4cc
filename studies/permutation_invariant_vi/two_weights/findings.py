"""What the network of two weights shows: sentences and the section of the page."""

from collections.abc import Iterator

import numpy as np

from onebasin.analysis.page.page import FigureItem

from ...lab import Chapter, Frame, Frames, read
from .claims import CLAIMS as CLAIMS
from .claims import beyond, gain
from .figures import contours, over_alpha
from .optima import relative_separation
from .tables import TABLES as TABLES

TITLE = "The smallest network with a permutation"
_NEAR = 0.001


def chapter(frames: Frames) -> Chapter | None:
    """Lay out the part of the page; None where the cases could not be solved."""
    return Chapter(TITLE, _text(frames), TABLES) if read("cases", frames) else None


def figures(frames: Frames) -> Iterator[FigureItem]:
    """Draw the part's figures."""
    if read("cases", frames):
        yield from (contours(frames), over_alpha(frames))


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    cases = read("cases", frames)
    if not cases:
        return
    edges = [
        f"alpha = {edge['alpha']:.2f} with noise {edge['noise']:g}"
        for edge in read("edges", frames)
        if edge["alpha"] is not None
    ]
    if edges:
        least = min(relative_separation(case, "sgm") for case in cases)
        yield (
            f"Of the network with two weights, the best mean field lies between the modes up to {' and '.join(edges)}; "
            f"the best symmetrised one does so nowhere (its means are {least:.2f} times as far apart as the truth's "
            "weights, or more)."
        )
    yield _divergence(cases, read("weight_fits", frames))
    yield _prediction(cases)


def _divergence(cases: Frame, fits: Frame) -> str:
    worst = max(case["sgm"]["kl_symmetrised"] for case in cases)
    plain = [case["mfvi"]["kl"] for case in cases]
    exact = [max(fit["kl_symmetrised"]) for fit in fits.where(method="sgm-exact")] if fits else []
    trained = f", and fits trained with the exact term are within {max(exact):.3f}" if exact else ""
    return (
        f"The best symmetrised approximations are within {worst:.3f} nats of the exact posterior{trained}; the best "
        f"mean fields are {min(plain):.2f} to {max(plain):.2f} nats away. {_afterwards(cases)}"
    )


def _afterwards(cases: Frame) -> str:
    """Say what symmetrising a mean field after its training leaves undone."""
    left = [case["mfvi"]["kl_symmetrised"] - case["sgm"]["kl_symmetrised"] for case in cases]
    case = cases.rows[int(np.argmax(left))]
    near = sum(value < _NEAR for value in left)
    return (
        f"Symmetrised only after training, a mean field is up to {max(left):.2f} nats farther away than one trained "
        f"for it (noise {case['noise']:g}, alpha = {case['alpha']:g}), and by less than {_NEAR:g} in {near} of "
        f"{len(left)} cases."
    )


def _prediction(cases: Frame) -> str:
    better, worse = (_moved(cases, up=up) for up in (True, False))
    if not better and not worse:
        return "Symmetrising changes no prediction by more than chance."
    said = [f"lowers the expected test MSE at {' and '.join(better)}"] if better else []
    if worse:
        it = "it" if better else "the expected test MSE"
        said.append(
            f"raises {it} at {' and '.join(worse)}, where the midpoint of the modes, which shrinks the function, is "
            "nearer to a truth that is small"
        )
    number = len(cases.rows[0]["errors"]["mfvi"])
    return f"Over {number} data sets symmetrising {' and '.join(said)}."


def _moved(cases: Frame, *, up: bool) -> list[str]:
    """Alphas, noise by noise, at which the error is surely lower (`up`) or higher."""
    found: dict[float, list[str]] = {}
    for case in cases:
        if beyond(gain(case), case["noise"]) is up:
            found.setdefault(case["noise"], []).append(f"{case['alpha']:g}")
    return [f"alpha = {', '.join(at)} with noise {noise:g}" for noise, at in found.items()]


def _text(frames: Frames) -> str:
    settings, moved = frames["two_weights"].rows[0], max(frames["cases"].column("moved"))
    power = int(np.ceil(np.log10(max(moved, 1e-15))))
    return (
        "f(x) = relu(w1 x) + relu(w2 x), with w1 and w2 ~ N(0, 1), is the smallest network whose units can be "
        "swapped; its posterior is known. The data follow f(x) = alpha |x|, so that (alpha, -alpha) and "
        "(-alpha, alpha) serve equally well, and lie the farther apart the larger alpha is. The text of the paper at "
        f"hand has lost its numbers; here there are {settings['num_obs']} training points with x ~ N(0, 1), noise of "
        f"standard deviation {settings['noise']:g}, and {settings['num_test']} test points. Every alpha has the same "
        "x and the same standardised errors. Methods are trained by "
        f"{settings['steps']} steps of Adam on all points at once (the paper has batches), from random starts.\n\n"
        "The posterior is found by quadrature: its log evidence moves by at most "
        f"1e{power:d} nats when the panels are halved. A Gaussian's ELBO is in "
        "closed form here, and its information a smooth integral, so that divergences from the posterior are known of "
        "every q, and the best q of each kind can be found without chance, as a yardstick of the fits. All errors of "
        "predictions against the true function are expected ones over x ~ N(0, 1)."
    )
