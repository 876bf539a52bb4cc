"""`infer` runs any method on any target; the registry of methods by name, for commands and calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.base.checks import choose
from onebasin.base.errors import ArgumentTypeError

from .contracts.method import Method
from .fits.dadvi import Dadvi, dadvi
from .mcmc.nuts import Hmc, Nuts, hmc, nuts
from .microcanonical.mclmc import Mclmc, mclmc
from .modes.methods import (
    Laplace,
    Modes,
    Optimize,
    Pathfinder,
    laplace,
    optimize,
    pathfinder,
    sample_modes,
)
from .runs.keywords import LIMIT_MB, RUNNING, made, with_start
from .training.ensemble import Ensemble, ensemble
from .variational.methods import Advi, Symmetrised, advi, symmetrised_vi

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target


def infer(
    target: Target,
    method: Method | str = "nuts",
    *,
    engine: str | None = None,
    seed: int = 0,
    start: Any = None,
    adapt_from: Any = None,
    checkpoint: str | Path | None = None,
    client: Any = None,
    predictive_mb: float = LIMIT_MB,
    symmetry: bool = True,
    check_symmetry: bool = True,
    progress: bool | None = None,
    **fields: Any,
) -> xr.DataTree:
    """Infer a target's posterior with any method.

    `ob.nuts(target, draws=500)`, `ob.infer(target, "nuts", draws=500)` and `ob.infer(target, ob.Nuts(draws=500))` are
    the same call.

    Parameters
    ----------
    target : Target
        The model conditioned on data: `ob.stan_program`, `ob.numpyro_model`, or a network's `condition(x, y)`.
    method : Method or str
        A method such as `ob.Nuts(draws=500)`, or the name of a method: "nuts", "hmc", "mclmc", "modes", "advi",
        "dadvi", "symmetrised", "pathfinder", "laplace", "optimize" or "ensemble".
    engine : str, optional
        The program that runs the method: "numpyro" is JAX in this process, "stanli" interprets a Stan program,
        "cmdstan" compiles it, and "nutpie" is the package of that name. By default NumPyro if the target has a NumPyro
        model, else stanli, or CmdStan for a program that stanli rejects. The result has the same groups and names for
        all.
    seed : int
        Seed of all random numbers, from 0 to 2^32 - 1. The same call with the same seed gives the same draws, bit for
        bit, on the same machine and versions. A chain depends only on the seed and its number.
    start : mapping, sequence, path or posterior, optional
        Initial values; methods that accept them also accept the name `init`. Give a mapping from names to values, each
        with the shape of one draw and on the constrained scale (such as the mean of an aligned posterior); a list with
        one mapping per chain; a JSON file of values in Stan's format; or a posterior or its file, in which case each
        chain starts at a draw chosen by the seed. NUTS and HMC draw missing variables at random. Variational methods
        start at one point, which must have all variables.
    adapt_from : posterior, path or mapping, optional
        An earlier run of NUTS or HMC whose step sizes and metrics are reused. If a chain starts in another labelling
        of the target's symmetry, its metric is relabelled. The metric is not adapted further; the warmup adapts only
        the step size, in at most 100 iterations if `init` is also a posterior. If the posterior has no metric, it is
        estimated from the draws. A mapping or a JSON file has `step_size`, `inverse_metric` or both, as in Stan's
        `save_metric`.
    checkpoint : path, optional
        A folder in which chains, or the state of training, are saved during the run; repeat the call to resume.
        NumPyro then gives the same draws as an uninterrupted run, Stan keeps the existing draws and uses a new random
        stream for the rest, and nutpie keeps only complete chains. A call with more `chains` or `draws` continues from
        the existing ones. Files of another model, data, settings or seed are left unchanged. Draws of more than 32 MB
        stay on disk, next to the folder, until the posterior is closed; its method `load` reads them into memory.
    client : distributed.Client or str, optional
        A Dask cluster that does the work, or the address of its scheduler. Chains of NUTS, HMC and MCLMC, and the
        interpreter's paths of Pathfinder, run on all workers; any other method runs on one worker. The draws equal
        those of the same seed on this machine. All machines need the same package versions; the model is sent with its
        data. If workers can access the folder `checkpoint`, the chains of a worker that dies resume on another worker.
    predictive_mb : float
        Maximum total size of the groups `log_likelihood`, `posterior_predictive` and `log_prior` in megabytes. Beyond
        this size only every second, third, ... draw is kept, and 0 omits the groups. Quantities that a Stan program
        computes itself are always kept.
    symmetry : bool
        Whether to search for the symmetry of a target that declares none, as `ob.find_symmetry` does. The posterior
        then declares the symmetry that is found. For a network the symmetry is known. The search takes a second or
        two, at most 8, and does not change the draws. To declare a symmetry yourself, give it to the target.
    check_symmetry : bool
        Whether to check a declared symmetry on the log density before the run, and afterwards at its draws, as
        `ob.check_symmetry` does. A network's symmetry follows from its architecture and is not checked. Draws do not
        change.
    progress : bool, optional
        Whether to show progress, in a terminal on stderr and in a notebook below the cell. By default it is shown in
        terminals and notebooks, but not in files, pipes and tests.
    **fields : Any
        Fields of the method, if the method is given by its name.

    Returns
    -------
    DataTree
        A posterior with every variable as (chain, draw, ...) in the group `posterior`, and with `sample_stats`, the
        data, log likelihoods and predictions. Each method documents its other groups.

    Raises
    ------
    TypeError
        If `target` is not a Target, `method` is not a Method, or a keyword is not a field of the method.
    ValueError
        If a name is unknown, a value is not allowed, the seed is out of range, the engine does not support the method,
        the method does not accept an argument, or the target has no model for the engine.
    SymmetryError
        If the log density does not have the declared symmetry. A contradiction that only draws show is recorded in the
        attribute `symmetry_evidence` and reported in a notice.
    InferenceError
        If no starting point with a finite log density is found, `checkpoint` is not writable, or the engine is missing.
    TaskError
        If the cluster cannot be reached, a worker has other package versions, or the model cannot be sent.
    InUse
        If another run is using `checkpoint`.
    WriteError
        If a disk is full; repeat the call to resume.
    StanError
        If Stan cannot compile or run the program.

    Examples
    --------
    >>> posterior = ob.infer(target, "nuts", chains=2, warmup=300, draws=300, seed=1)
    >>> posterior["posterior"]["mu"].shape
    (2, 300, 2)
    """
    how = {name: value for name, value in locals().items() if name in RUNNING and name != "start"}
    fields = with_start({**fields, "start": start})
    from .runs.run import run  # Imported here, because it takes long.

    start = fields.pop("start")
    if isinstance(method, str):
        method = method_named(method, fields)
    elif not isinstance(method, Method):
        name = method.__name__ if isinstance(method, type) else type(method).__name__
        raise ArgumentTypeError(
            f"`method` must be a name, such as 'nuts', or a method, such as ob.Nuts(draws=500); got {name!r}."
        )
    elif fields:
        made(type(method), fields)  # Rejects unknown fields.
        raise ArgumentTypeError(
            f"`{next(iter(fields))}` cannot be given separately, because `method` already contains all settings. "
            f"Write {type(method).__name__}({next(iter(fields))}=...) instead."
        )
    return run(target, method, start=start, **how)


FUNCTIONS: Mapping[type[Method], Callable[..., xr.DataTree]] = {
    Nuts: nuts,
    Hmc: hmc,
    Mclmc: mclmc,
    Modes: sample_modes,
    Advi: advi,
    Dadvi: dadvi,
    Symmetrised: symmetrised_vi,
    Pathfinder: pathfinder,
    Laplace: laplace,
    Optimize: optimize,
    Ensemble: ensemble,
}
"""Every method with its function. A new method needs a line here."""

METHODS: Mapping[str, type[Method]] = {method.name: method for method in FUNCTIONS}

WORDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{name: (name, {}) for name in METHODS},
    "meanfield": ("advi", {"family": "meanfield"}),
    "fullrank": ("advi", {"family": "fullrank"}),
}
"""Names of methods, and names for a method with some of its fields fixed."""


def method_named(word: str, given: Mapping[str, Any] | None = None) -> Method:
    """Make the method that a name stands for, with the given fields.

    A name or a value that is not allowed raises ValueError; an unknown field raises TypeError.
    """
    name, fixed = WORDS[choose("method", word, WORDS)]
    return made(METHODS[name], {**fixed, **(given or {})})


def as_word(word: str, method: Method) -> Method:
    """Return a method with the fields that the name fixes; a name of another method changes nothing."""
    name, fixed = WORDS.get(word, ("", {}))
    return replace(method, **fixed) if name == method.name else method
