"""Find the optima of a target's density: many starts, and the distinct ends modulo its symmetry."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from onebasin.base.card import Card, Shown
from onebasin.base.checks import check_count, check_positive, check_seed, checks_arguments
from onebasin.base.precision import precision
from onebasin.base.progress import ProgressBars
from onebasin.base.table import Table
from onebasin.models.target import Target, check_target

from ..runs.spread import spread
from .optima import Folding, find_tops, unseen

SHOWN = 10


@dataclass(frozen=True, eq=False)
class Optimum:
    """A distinct optimum of a log density.

    Attributes
    ----------
    starts : int
        Starting points that led to it, or to one of its copies.
    height : float
        Log density there, in nats, with the Jacobian of the transforms.
    log_evidence : float
        Laplace's estimate of the log integral of the density around it and all of its copies, in nats; NaN where it is
        no peak, or beyond 1,000 parameters.
    values : mapping of str to array (*event)
        Every parameter there.
    """

    starts: int
    height: float
    log_evidence: float
    values: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class FoundModes(Shown):
    """The result of `find_modes`.

    Attributes
    ----------
    optima : tuple of Optimum
        Highest first.
    starts : int
        Starting points.
    failed : int
        Those of them that led to no finite log density.
    unseen : float
        Probability that a next start leads to an optimum that none has led to: the share of starts that led where no
        other did.
    """

    optima: tuple[Optimum, ...]
    starts: int
    failed: int
    unseen: float

    @property
    def sentence(self) -> str:
        """The result in words."""
        count = len(self.optima)
        ends = "one optimum" if count == 1 else f"{count} optima that no symmetry joins"
        return (
            f"{self.starts} starts led to {ends}, {self.optima[0].starts} of them to the highest; a next start leads "
            f"to another one with probability {self.unseen:.2g}."
        )

    def _card(self) -> Card:
        rows = tuple(
            (
                str(n),
                str(o.starts),
                f"{o.height:.2f}",
                "no peak" if math.isnan(o.log_evidence) else f"{o.log_evidence:.2f}",
            )
            for n, o in enumerate(self.optima[:SHOWN])
        )
        heads = ("", "starts", "log density", "Laplace log evidence")
        return Card(self.sentence, (Table(heads, rows, "Highest first, in nats"),))


@checks_arguments
def find_modes(
    target: Target,
    *,
    starts: int = 40,
    init_radius: float = 2.0,
    seed: int = 0,
    client: Any = None,
    progress: bool | None = None,
) -> FoundModes:
    """Find the optima of a target's log density from many random points, modulo its symmetry.

    It takes seconds, and says whether chains may settle in different modes. An optimum is no mode yet: several may
    lie in one basin, and the highest may hold next to nothing. `sample_modes` samples and weighs what chains can tell
    apart.

    Parameters
    ----------
    target : Target
        The model conditioned on data, a NumPyro model or a Stan program, with its symmetry declared.
    starts : int
        Random points from which L-BFGS climbs.
    init_radius : float
        They are uniform within +-init_radius in the unconstrained space.
    seed : int
        Of these points.
    client : distributed.Client or str, optional
        A Dask cluster, one of whose workers does the work, or the address of its scheduler.
    progress : bool, optional
        Whether to show progress; by default in terminals and notebooks.

    Returns
    -------
    FoundModes
        Distinct optima, highest first, with the starts that led to each; prints itself as a table.

    Raises
    ------
    TypeError
        If `target` is no target.
    ValueError
        If a number makes no sense, or the symmetry exchanges no coordinates of the unconstrained space.
    InferenceError
        If no start leads to a finite log density.
    StanError
        If Stan cannot compile the program.

    See Also
    --------
    sample_modes : chains in every mode, and the modes' weights.

    References
    ----------
    Byrd, Lu, Nocedal and Zhu 1995, SIAM Journal on Scientific Computing 16(5) (L-BFGS-B). Good 1953, Biometrika 40
    (what is not seen yet).

    Examples
    --------
    >>> found = ob.find_modes(target, starts=10, seed=1)
    >>> len(found.optima), found.optima[0].starts
    (1, 10)
    """
    check_target(target)
    check_count("starts", starts, most=10**6)
    check_positive("init_radius", init_radius)
    check_seed(seed)
    how = {"find_modes": (target, starts, float(init_radius), seed)}
    with ProgressBars(progress) as bars:
        (found,) = spread(client, bars, f"The model {target.name!r}", _found, how)
    return found


def _found(
    bars: ProgressBars, target: Target, starts: int, init_radius: float, seed: int
) -> FoundModes:
    with precision("float64"):
        folding = Folding.of(target, bars.say)
        tops, failed = find_tops(folding, bars, starts, init_radius, seed)
        optima = []
        for top in tops:
            values = folding.density.constrain(jnp.asarray(top.vector))
            arrays = {name: np.asarray(value) for name, value in values.items()}
            optima.append(Optimum(top.starts, top.height, top.log_evidence, arrays))
    counts = [optimum.starts for optimum in optima]
    return FoundModes(tuple(optima), starts, failed, unseen(counts, starts))
