"""The sections of a page about one posterior, in their order."""

from __future__ import annotations

from ...page.page import Section
from ..subject import Subject
from .chains import chains
from .fits import fits
from .labels import labels
from .modes import modes
from .parameters import parameters
from .predictions import predictions
from .sampler import sampler


def sections_of(subject: Subject) -> list[Section | None]:
    """Show one posterior; a network's predictions come first: they have no labels, and its weights say little."""
    parts = (modes, labels, fits, parameters, sampler, chains)
    is_network = subject.view.network is not None
    order = (predictions, *parts) if is_network else (*parts, predictions)
    return [part(subject) for part in order]
