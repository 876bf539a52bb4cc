"""Draws that may be taken for independent."""

from onebasin.analysis.compare.thinning import thin
from onebasin.posteriors.draws import Draws


def independent_draws(values, **options):
    """Draws (chain, draw, param) that may be taken for independent."""
    return thin(Draws(("",) * values.shape[2], values), **options)
