"""Kinds of a posterior's variables: parameters are inferred, transformed ones follow, generated ones are by-products.

A Stan program says it by its blocks, a NumPyro model by its sites. A deterministic site that a model states for
predictions or pointwise log likelihoods is told from other ones by its name alone, which is a convention of ArviZ's
and Stan's users and no proof.
"""

from __future__ import annotations

import re

PARAMETER = "parameter"
TRANSFORMED = "transformed"
GENERATED = "generated"

_BY_PRODUCT = re.compile(
    r"^(log_?lik|ll$|lprior|log_prior|log_prob|lp__|y_)|(_|^)(rep|pred|hat|new|sim|tilde)$|resid"
)


def is_named_as_generated(name: str) -> bool:
    """Whether a name is one that predictions, residuals and pointwise log densities usually have."""
    return _BY_PRODUCT.search(name) is not None
