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
        model, else stanli, or CmdStan for a program that stanli rejects. Groups and names are always the same.
    seed : int
        From 0 to 2^32 - 1, for everything that is random. The same call with the same seed gives the same draws, bit
        by bit, on the same machine and versions; a chain depends on the seed and its number alone.
    start : mapping, sequence, path or posterior, optional
        Initial values, which every method that takes any takes as `init` too: a mapping from names to values (...),
        each with its shape in one draw and in its natural space (the mean of an aligned posterior, for one); a list of
        one mapping for each chain; a JSON file of values, as Stan has them; or a posterior or its file, of which each
        chain starts at a draw, chosen by the seed. NUTS and HMC draw variables that are missing as without initial
        values; variational methods start at one place, which has to have them all.
    adapt_from : posterior, path or mapping, optional
        The earlier run of NUTS or HMC whose step sizes and metrics this one takes. Where a chain starts in another
        labelling of the target's symmetry, its metric is moved to it. The metric stays as it is, and the warmup adapts
        the step size alone: with `init` from a posterior too, in at most 100 iterations. Of a posterior without a
        metric, it is estimated from the draws. A mapping, or a JSON file, has `step_size`, `inverse_metric` or both,
        as Stan's `save_metric` writes them.
    checkpoint : path, optional
        A folder in which chains, or the state of training, are kept as they go; repeat the call to resume. NumPyro
        then gives the draws of an undisturbed run; Stan keeps what was drawn and takes a new random stream for the
        rest; nutpie keeps whole chains. More `chains` and `draws` resume from those that are there. Files there of
        another model, data, settings or seed are left alone. Draws of more than 32 MB stay on disk, next to the folder,
        until the posterior is closed; its method `load` takes them into memory.
    client : distributed.Client or str, optional
        A Dask cluster whose workers do the work, or the address of its scheduler: chains of NUTS, HMC and MCLMC and
        the interpreter's paths of Pathfinder on all of them, any other method as a whole on one. The draws are those of
        the same seed at home. All machines need the same versions; the model goes with its data. If workers see the
        folder `checkpoint`, chains of a worker that dies resume there on another one.
    predictive_mb : float
        Megabytes that the groups `log_likelihood`, `posterior_predictive` and `log_prior` may take together; beyond
        them every second, third, ... draw is kept there, and 0 leaves the groups out. Quantities that a Stan program
        computes itself are kept whole.
    symmetry : bool
        Whether to search for the symmetry of a target that declares none, as `ob.find_symmetry` does, so that the
        posterior declares what is found. A network's is known. It takes a second or two and 8 at most, and changes no
        draw. To declare one yourself, give it to the target.
    check_symmetry : bool
        Whether a declared symmetry is compared with the log density before the run and at its draws afterwards, as by
        `ob.check_symmetry`; a network's follows from its architecture and is not. It changes no draw.
    progress : bool, optional
        Whether to show progress: in a terminal on stderr, in a notebook below the cell. By default it is shown in
        terminals and notebooks, and not in files, pipes and tests.
    **fields : Any
        Fields of the method, where it is given by its name.

    Returns
    -------
    DataTree
        Group `posterior` with every variable as (chain, draw, ...), `sample_stats`, the data, log likelihoods and
        predictions; the method says what else.

    Raises
    ------
    TypeError
        If `target` is not a Target, `method` not a Method, or a keyword not one of its fields.
    ValueError
        If a word is unknown, a value is not allowed, the seed is out of range, the engine does not have the method, the
        method does not take an argument, or the target has no model for the engine.
    SymmetryError
        If the log density does not have the declared symmetry. A contradiction that only draws show is recorded in the
        attribute `symmetry_evidence` and reported in a notice.
    InferenceError
        If no starting point of finite log density is found, nothing can be written in `checkpoint`, or the engine is
        not installed.
    TaskError
        If the cluster cannot be reached, a worker has other versions, or the model cannot be sent.
    InUse
        If another run keeps its chains in `checkpoint`.
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
        made(type(method), fields)  # rejects what is no field
        raise ArgumentTypeError(
            f"`{next(iter(fields))}` is given as well as {type(method).__name__}(...); set it there."
        )
    return run(target, method, start=start, **how)
