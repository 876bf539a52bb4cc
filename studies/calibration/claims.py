"""What is claimed of the calibrations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..lab import Claim, Finding, Frames, Row, each, read

WRONG = ("meanfield", "fullrank")


def _exact(frames: Frames) -> Iterable[Row]:
    return read("cells", frames).where(method="nuts")


def _approximate(frames: Frames) -> Iterable[Row]:
    return read("cells", frames).where(method=WRONG)


def _verdict(wanted: str) -> Callable[[Row], Finding]:
    """Whether a row's verdict is the one that is claimed; nothing where it could not be judged."""

    def tried(row: Row) -> Finding:
        holds = None if row["verdict"] == "cannot be judged" else row["verdict"] == wanted
        return row["verdict"], holds

    return tried


CLAIMS = (
    Claim(
        "NUTS is calibrated",
        "Both engines' NUTS draws from the posterior, in every parametrisation and program.",
        "no test quantity's ranks leave their band",
        each(_exact, _verdict("calibrated")),
    ),
    Claim(
        "ADVI is not",
        "A Gaussian is not the posterior of a network, and its ranks show it.",
        "a test quantity's ranks leave their band",
        each(_approximate, _verdict("not calibrated")),
    ),
)
