"""What a posterior is of, as it was when the run began: its program's text, its data's hash, kinds of its variables."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onebasin.models import schema
from onebasin.models.data_hash import data_sha256
from onebasin.models.kinds import GENERATED, PARAMETER, TRANSFORMED, is_named_as_generated
from onebasin.models.target import Target


@dataclass(frozen=True)
class Origin:
    """Where draws come from.

    Attributes
    ----------
    program, program_name : str
        Text of the Stan program or of the NumPyro model's function, and what it is called; empty where there is none,
        as for a network, which describes itself.
    data_sha256 : str
        Hash of the data; empty where none are known.
    kinds : mapping of str to str
        Of variables, where the program tells them before it runs.
    """

    program: str = ""
    program_name: str = ""
    data_sha256: str = ""
    kinds: Mapping[str, str] | None = None

    def attributes(self, variables: Iterable[str]) -> dict[str, Any]:
        """The root attributes of a posterior that holds these variables."""
        known = self.kinds or {}
        kinds = {name: known.get(name, PARAMETER) for name in variables}
        said = {
            schema.PROGRAM: self.program,
            schema.PROGRAM_NAME: self.program_name,
            schema.DATA_SHA256: self.data_sha256,
        }
        return {schema.KINDS: kinds} | said


NOWHERE = Origin()
"""Of draws that nobody's model gave."""


def origin_of(target: Target, engine: str, progress: Callable[[str], None] | None = None) -> Origin:
    """Read what a target is made of, before a run.

    Parameters
    ----------
    target : Target
        What is inferred.
    engine : str
        Who infers: a target may have a definition for either.
    progress : callable, optional
        Called with a line of text before something that takes long.

    Raises
    ------
    ValueError
        If the target has no definition for the engine.
    StanError
        If there is no CmdStan, or the program does not parse.
    """
    data = {n: values for n, (_, values) in (target.inputs | target.outputs).items()}
    if target.is_network:
        return Origin(data_sha256=data_sha256(data))
    return _of_stan(target, progress) if engine == "stan" else _of_numpyro(target, data)


def _of_stan(target: Target, progress: Callable[[str], None] | None) -> Origin:
    from onebasin.stan.home.search import find_cmdstan
    from onebasin.stan.program import definition
    from onebasin.stan.source import full_text
    from onebasin.stan.translation import inspect as declarations

    program = definition(target)
    info = declarations(program.path, find_cmdstan(progress=progress))
    kinds = dict.fromkeys(info.parameters, PARAMETER)
    kinds |= dict.fromkeys(info.transformed, TRANSFORMED)
    kinds |= dict.fromkeys(info.generated, GENERATED)
    return Origin(
        full_text(program.path, info), program.path.name, data_sha256(program.data), kinds
    )


def _of_numpyro(target: Target, data: Mapping[str, Any]) -> Origin:
    from .density.numpyro import is_observation, sites_of
    from .precision import precision

    with precision("float64"):  # whatever the run's, as in fingerprints
        sites = sites_of(target)
    kinds = {
        name: GENERATED if is_named_as_generated(name) else TRANSFORMED
        for name, site in sites.items()
        if site["type"] == "deterministic"
    }
    observed = {name: site["value"] for name, site in sites.items() if is_observation(site)}
    text, name = _source(target.numpyro_model)
    return Origin(text, name, data_sha256(data or observed), kinds)


def _source(model: Any) -> tuple[str, str]:
    """Text and name of the function that states a model; handlers and partial functions are taken off."""
    while (
        inner := getattr(model, "__wrapped__", None)
        or getattr(model, "func", None)
        or (getattr(model, "fn", None))
    ):
        model = inner
    name = getattr(model, "__qualname__", "") or type(model).__qualname__
    try:
        text = textwrap.dedent(inspect.getsource(model))
        file = inspect.getsourcefile(model) or ""
    except (OSError, TypeError):  # typed at a prompt, or no function
        return "", name
    return text, f"{Path(file).name}:{name}" if file else name
