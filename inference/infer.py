"""`infer`: any method on any target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import ArgumentTypeError

from .contracts.method import Method
from .runs.keywords import LIMIT_MB, RUNNING, made, with_start

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
    """Infer a target's posterior by a method.

    `ob.nuts(target, draws=500)`, `ob.infer(target, "nuts", draws=500)` and `ob.infer(target, ob.Nuts(draws=500))` are
    the same call.

    Parameters
    ----------
    target : Target
        The model conditioned on data: `ob.stan_program`, `ob.numpyro_model`, or a network's `condition(x, y)`.
    method : Method or str
        Such as `ob.Nuts(draws=500)`, or its name: "nuts", "hmc", "mclmc", "modes", "advi", "dadvi", "symmetrised",
        "pathfinder", "laplace", "optimize" or "ensemble".
    engine : str, optional
        The program that runs the method: "numpyro" is JAX in this process, "stanli" interprets a Stan program,
        "cmdstan" compiles it, and "nutpie" is the package of that name. By default NumPyro if the target has a NumPyro
        model, else stanli, or CmdStan for a program that stanli rejects. Groups and names do not depend on the engine.
    seed : int
        From 0 to 2^32 - 1, for everything that is random. The same call with the same seed gives the same draws, bit
        for bit, on the same machine and versions; a chain depends only on the seed and its number.
    start : mapping, sequence, path or posterior, optional
        Initial values; methods that accept them also accept the name `init`. Either a mapping from names to values,
        each with the shape of one draw and on the constrained scale (such as the mean of an aligned posterior); a list
        with one mapping per chain; a JSON file of values in Stan's format; or a posterior or its file, in which case
        each chain starts at a draw chosen by the seed. NUTS and HMC draw missing variables at random; variational
        methods start at one point, which must have all variables.
    adapt_from : posterior, path or mapping, optional
        An earlier run of NUTS or HMC whose step sizes and metrics are reused. If a chain starts in another labelling
        of the target's symmetry, its metric is moved to it. The metric is not adapted further; the warmup adapts only
        the step size, in at most 100 iterations if `init` is a posterior as well. If the posterior has no metric, it
        is estimated from the draws. A mapping, or a JSON file, has `step_size`, `inverse_metric` or both, as Stan's
        `save_metric` writes them.
    checkpoint : path, optional
        A folder in which chains, or the state of training, are saved during the run; repeat the call to resume.
        NumPyro then gives the draws of an undisturbed run; Stan keeps the existing draws and uses a new random stream
        for the rest; nutpie keeps only whole chains. A call with more `chains` or `draws` continues from the existing
        ones. Files of another model, data, settings or seed are left unchanged. Draws of more than 32 MB stay on disk,
        next to the folder, until the posterior is closed; its method `load` takes them into memory.
    client : distributed.Client or str, optional
        A Dask cluster whose workers do the work, or the address of its scheduler: chains of NUTS, HMC and MCLMC and
        the interpreter's paths of Pathfinder on all of them, any other method as a whole on one. The draws equal those
        of the same seed on this machine. All machines need the same versions; the model is sent with its data. If
        workers see the folder `checkpoint`, the chains of a worker that dies resume from it on another worker.
    predictive_mb : float
        Megabytes that the groups `log_likelihood`, `posterior_predictive` and `log_prior` may take together; beyond
        this size only every second, third, ... draw is kept, and 0 omits the groups. Quantities that a Stan program
        computes itself are kept whole.
    symmetry : bool
        Whether to search for the symmetry of a target that declares none, as `ob.find_symmetry` does, so that the
        posterior declares what is found. For a network it is known. The search takes a second or two, 8 at most, and
        does not change the draws. To declare one yourself, give it to the target.
    check_symmetry : bool
        Whether a declared symmetry is compared with the log density before the run and at its draws afterwards, as by
        `ob.check_symmetry`; a network's symmetry follows from its architecture and is not checked. The check does not
        change the draws.
    progress : bool, optional
        Whether to show progress: in a terminal on stderr, in a notebook below the cell. By default it is shown in
        terminals and notebooks, and not in files, pipes and tests.
    **fields : Any
        Fields of the method, if it is given by its name.

    Returns
    -------
    DataTree
        Group `posterior` with every variable as (chain, draw, ...), `sample_stats`, the data, log likelihoods and
        predictions; each method documents its other groups.

    Raises
    ------
    TypeError
        If `target` is not a Target, `method` not a Method, or a keyword is not one of its fields.
    ValueError
        If a name is unknown, a value is not allowed, the seed is out of range, the engine does not have the method,
        the method does not take an argument, or the target has no model for the engine.
    SymmetryError
        If the log density does not have the declared symmetry. A contradiction that only draws show is recorded in the
        attribute `symmetry_evidence` and reported in a notice.
    InferenceError
        If no starting point with a finite log density is found, nothing can be written in `checkpoint`, or the engine
        is not installed.
    TaskError
        If the cluster cannot be reached, a worker has other versions, or the model cannot be sent.
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
    from .methods import method_named
    from .runs.run import run

    start = fields.pop("start")
    if isinstance(method, str):
        method = method_named(method, fields)
    elif not isinstance(method, Method):
        name = method.__name__ if isinstance(method, type) else type(method).__name__
        raise ArgumentTypeError(
            f"`method` is {name!r}; give a method, such as ob.Nuts(draws=500), or its name, such as 'nuts'."
        )
    elif fields:
        made(type(method), fields)  # rejects what is not a field
        raise ArgumentTypeError(
            f"`{next(iter(fields))}` is given as well as {type(method).__name__}(...); set it there."
        )
    return run(target, method, start=start, **how)
