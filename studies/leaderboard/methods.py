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
from onebasin.inference import (
    AdviSettings,
    EnsembleSettings,
    HmcSettings,
    LaplaceSettings,
    MclmcSettings,
    NutsSettings,
    PathfinderSettings,
    SymmetrisedSettings,
)
from onebasin.models import NetworkTarget, Target
from onebasin.models.symmetry.blocks import Complement, Exchangeable, blocks_of

if TYPE_CHECKING:
    from onebasin.truth.problems import Problem

CHAINS = NutsSettings(chains=4, warmup=1000, draws=1000)
SHORT = NutsSettings(chains=4, warmup=500, draws=500)
DRAWS = 4000
"""Of a fit, as many as of the chains."""


@dataclass(frozen=True)
class Distilling:
    """How a Gaussian is distilled from the draws of NUTS, and how many draws are taken of it."""

    distillation: DistillationSettings
    draws: int = DRAWS


@dataclass(frozen=True)
class Method:
    """A row of the leaderboard.

    Attributes
    ----------
    label : str
        Its name in tables.
    word : str
        What `inference.method_words.infer` calls it; its own where the making knows it.
    engine : str
        Who makes it.
    settings : callable
        From the problem, and whether it is to be quick, to the method's settings.
    fits : callable
        From a target to whether the method is for it.
    inputs : tuple of str
        Methods whose posterior of the same problem it is made from.
    """

    label: str
    word: str
    engine: str
    settings: Callable[[Problem, bool], Any]
    fits: Callable[[Target], bool] = lambda target: True
    inputs: tuple[str, ...] = ()


def _nuts(problem: Problem, quick: bool) -> NutsSettings:
    size = SHORT if quick else CHAINS
    return replace(problem.settings, chains=size.chains, warmup=size.warmup, draws=size.draws)


def _hmc(problem: Problem, quick: bool) -> HmcSettings:
    nuts = _nuts(problem, quick)
    names = ("chains", "warmup", "draws", "target_acceptance", "metric", "init_radius", "init")
    return HmcSettings(**{name: getattr(nuts, name) for name in names})


def _mclmc(problem: Problem, quick: bool) -> MclmcSettings:
    return MclmcSettings(draws=500 if quick else 1000)


def _advi(problem: Problem, quick: bool) -> AdviSettings:
    return AdviSettings(iterations=2000 if quick else 10_000, draws=DRAWS)


def _symmetrised(problem: Problem, quick: bool) -> SymmetrisedSettings:
    start: Any = "he" if _is_free_network(problem.target()) else "random"
    return SymmetrisedSettings(steps=2000 if quick else 10_000, draws=DRAWS, init=start)


def _ensemble(problem: Problem, quick: bool) -> EnsembleSettings:
    return EnsembleSettings(members=20 if quick else 100)


def _distilled(problem: Problem, quick: bool) -> Distilling:
    return Distilling(DistillationSettings(iterations=1000) if quick else DistillationSettings())


def _is_network(target: Target) -> bool:
    return isinstance(target, NetworkTarget)


def _is_free_network(target: Target) -> bool:
    return isinstance(target, NetworkTarget) and target.model.parametrisation.label == "free"


def _has_parts(target: Target) -> bool:
    return bool(blocks_of(target.symmetry, Exchangeable) or blocks_of(target.symmetry, Complement))


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "nuts": Method("NUTS, NumPyro", "nuts", "numpyro", _nuts),
        "nuts-stan": Method("NUTS, Stan", "nuts", "stan", _nuts),
        "nuts-nutpie": Method("NUTS, nutpie", "nuts", "nutpie", _nuts),
        "hmc": Method("HMC", "hmc", "numpyro", _hmc),
        "mclmc": Method("MCLMC", "mclmc", "numpyro", _mclmc),
        "meanfield": Method("mean-field ADVI", "meanfield", "numpyro", _advi),
        "fullrank": Method("full-rank ADVI", "fullrank", "numpyro", _advi),
        "symmetrised": Method("symmetrised VI", "symmetrised", "numpyro", _symmetrised, _has_parts),
        "pathfinder": Method("Pathfinder", "pathfinder", "stan", lambda *_: PathfinderSettings()),
        "laplace": Method("Laplace", "laplace", "numpyro", lambda *_: LaplaceSettings(draws=DRAWS)),
        "ensemble": Method("deep ensemble", "ensemble", "numpyro", _ensemble, _is_network),
        "distilled": Method(
            "NUTS distilled, one Gaussian",
            "distilled",
            "analysis",
            _distilled,
            _is_free_network,
            ("nuts",),
        ),
    }
)
"""By the words of the command line."""


def chosen(words: tuple[str, ...] | None) -> tuple[str, ...]:
    """Methods by their words, with those that they are made from; all by default, but nutpie only where it is there.

    Raises
    ------
    StudyError
        If a word is none of them.
    """
    if words is None:
        return tuple(name for name in METHODS if name != "nuts-nutpie" or find_spec("nutpie"))
    for word in words:
        if word not in METHODS:
            raise StudyError(f"`--methods` names {word!r}; choose among {', '.join(METHODS)}.")
    wanted = {*words, *(name for word in words for name in METHODS[word].inputs)}
    return tuple(name for name in METHODS if name in wanted)
