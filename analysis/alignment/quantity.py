"""Parameters in one labelling as a test quantity of simulation-based calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from onebasin.base.checks import checks_arguments
from onebasin.models.symmetry.blocks import Symmetry, equal_modes
from onebasin.models.symmetry.words import as_symmetry
from onebasin.posteriors import schema

from .align import align

Values = Mapping[str, np.ndarray]


@checks_arguments
def aligned_quantity(
    symmetry: Symmetry | str, *, reference: str = "gaussian"
) -> Callable[..., dict[str, np.ndarray]]:
    """Make a test quantity of `calibrate`: parameters in one labelling, which all draws agree on.

    The draws and the truth among them are aligned together, with a Gaussian that is fitted to all of them. The rule
    does not know which of them is the truth: so if draws are of the posterior, the truth's rank is uniform after
    alignment as before.

    Parameters
    ----------
    symmetry : tuple of blocks or str
        Modulo what; blocks that keep the likelihood alone, as positive scalings do, are left out.
    reference : {"gaussian", "mean", "draw"}
        As of `align`.

    Returns
    -------
    callable
        From values (point, ...) and data to the variables that the symmetry moves, (point, ...).

    Raises
    ------
    TypeError
        If it is no symmetry.

    Examples
    --------
    >>> aligned = ob.truth.aligned_quantity("mu,sigma")
    >>> values = {"mu": np.array([[-2.0, 1.0], [1.1, -1.9], [-2.1, 0.9]]), "sigma": np.ones((3, 2))}
    >>> bool(np.ptp(aligned(values, None)["mu"], axis=0).max() < 0.5)
    True
    """
    known = equal_modes(as_symmetry(symmetry))
    moved = tuple(dict.fromkeys(name for block in known for name in block.variables))

    def quantity(values: Values, data: object) -> dict[str, np.ndarray]:
        del data
        chain = {name: values[name][None] for name in moved}
        found = align(chain, known, reference=reference, gauge="keep", threads=1)
        aligned = found.posterior[schema.POSTERIOR].to_dataset()
        return {name: aligned[name].values[0] for name in moved}

    return quantity
