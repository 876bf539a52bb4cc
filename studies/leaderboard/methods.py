"""The methods of the leaderboard: engine, settings, and which models each is for.

Chains have the reference's own target acceptance, tree depth and starts, and the length that a user would give them;
fits have their defaults and as many draws as the chains, so that their Monte Carlo error is no larger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from onebasin.analysis.gaussian.distillation import DistillationSettings
from onebasin.base.errors import StudyError
from onebasin.inference import Advi, Ensemble, Hmc, Laplace, Mclmc, Nuts, Pathfinder, Symmetrised
from onebasin.models import NetworkTarget, Target
from onebasin.models.symmetry.blocks import Complement, Exchangeable, blocks_of

from ..lab.posteriors import Distilling

if TYPE_CHECKING:
    from onebasin.truth.problems import Problem

CHAINS = Nuts(chains=4, warmup=1000, draws=1000)
SHORT = Nuts(chains=4, warmup=500, draws=500)
DRAWS = 4000
"""The number of draws of a fit, as many as of the chains."""


@dataclass(frozen=True)
class LeaderboardRow:
    """A row of the leaderboard."""

    label: str  # Its name in tables.
    word: str  # The method's, of `inference.methods.WORDS`; its own where the making knows it.
    engine: str  # Who makes it.
    settings: Callable[[Problem, bool], Any]
    """From the problem, and whether it is to be quick, to the method."""
    fits: Callable[[Target], bool] = lambda target: True
    """From a target to whether the method is for it."""
    inputs: tuple[str, ...] = ()  # Methods whose posterior of the same problem it is made from.


def _nuts(problem: Problem, quick: bool) -> Nuts:
    size = SHORT if quick else CHAINS
    return replace(problem.settings, chains=size.chains, warmup=size.warmup, draws=size.draws)


def _hmc(problem: Problem, quick: bool) -> Hmc:
    nuts = _nuts(problem, quick)
    names = ("chains", "warmup", "draws", "target_acceptance", "metric", "init_radius", "init")
    return Hmc(**{name: getattr(nuts, name) for name in names})


def _symmetrised(problem: Problem, quick: bool) -> Symmetrised:
    start: Any = "he" if _is_free_network(problem.target()) else "random"
    return Symmetrised(steps=2000 if quick else 10_000, draws=DRAWS, init=start)


def _sized(full: Any, quick: Any) -> Callable[[Problem, bool], Any]:
    """One method for all problems, and another where it is to be quick."""
    return lambda problem, is_quick: quick if is_quick else full


_ADVI = _sized(Advi(draws=DRAWS), Advi(iterations=2000, draws=DRAWS))


def _is_free_network(target: Target) -> bool:
    return isinstance(target, NetworkTarget) and target.model.parametrisation.label == "free"


METHODS: Mapping[str, LeaderboardRow] = MappingProxyType(
    {
        "nuts": LeaderboardRow("NUTS, NumPyro", "nuts", "numpyro", _nuts),
        "nuts-stan": LeaderboardRow("NUTS, Stan", "nuts", "stan", _nuts),
        "nuts-nutpie": LeaderboardRow("NUTS, nutpie", "nuts", "nutpie", _nuts),
        "hmc": LeaderboardRow("HMC", "hmc", "numpyro", _hmc),
        "mclmc": LeaderboardRow("MCLMC", "mclmc", "numpyro", _sized(Mclmc(), Mclmc(draws=500))),
        "meanfield": LeaderboardRow("mean-field ADVI", "meanfield", "numpyro", _ADVI),
        "fullrank": LeaderboardRow("full-rank ADVI", "fullrank", "numpyro", _ADVI),
        "symmetrised": LeaderboardRow(
            "symmetrised VI",
            "symmetrised",
            "numpyro",
            _symmetrised,
            lambda t: bool(
                blocks_of(t.symmetry, Exchangeable) or blocks_of(t.symmetry, Complement)
            ),
        ),
        "pathfinder": LeaderboardRow(
            "Pathfinder", "pathfinder", "stan", _sized(Pathfinder(), Pathfinder())
        ),
        "laplace": LeaderboardRow(
            "Laplace", "laplace", "numpyro", _sized(Laplace(draws=DRAWS), Laplace(draws=DRAWS))
        ),
        "ensemble": LeaderboardRow(
            "deep ensemble",
            "ensemble",
            "numpyro",
            _sized(Ensemble(members=100), Ensemble(members=20)),
            lambda target: isinstance(target, NetworkTarget),
        ),
        "distilled": LeaderboardRow(
            "NUTS distilled, one Gaussian",
            "distilled",
            "analysis",
            _sized(
                Distilling(DistillationSettings(), DRAWS),
                Distilling(DistillationSettings(iterations=1000), DRAWS),
            ),
            _is_free_network,
            ("nuts",),
        ),
    }
)
"""By the words of the command line."""


def chosen(words: tuple[str, ...] | None) -> tuple[str, ...]:
    """Choose methods by their words, with those that they are made from; refuses other words.

    All by default, but nutpie only where it is there.
    """
    if words is None:
        return tuple(name for name in METHODS if name != "nuts-nutpie" or find_spec("nutpie"))
    for word in words:
        if word not in METHODS:
            raise StudyError(f"`--methods` names {word!r}; choose among {', '.join(METHODS)}.")
    wanted = {*words, *(name for word in words for name in METHODS[word].inputs)}
    return tuple(name for name in METHODS if name in wanted)
