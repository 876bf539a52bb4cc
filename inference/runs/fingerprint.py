"""Fingerprints: a hash of everything that decides a run's draws, by which what is kept of it is found again.

Covered: the target's name and description, its data (name, type, shape, bytes); of a Stan program the text with every
included file, the flags it is compiled with, its data and CmdStan's version; of a NumPyro model the program of its log
density, of the gradient and of all quantities, with every constant bit by bit; the versions of onebasin and of the
libraries that compute; and whatever the caller adds: method, settings, seed, the declared symmetry.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from onebasin.base.errors import NoFingerprint
from onebasin.base.run_log import notice
from onebasin.models.target import Target

from ..contracts.engines import ENGINES, bound, definition_of, named
from ..contracts.method import as_dict
from .origin import package_versions

NUMPYRO_VERSIONS = ("onebasin", "jax", "jaxlib", "numpyro", "numpy", "optax", "scipy")
STAN_VERSIONS = ("onebasin",)

FOREIGN = ("pure_callback", "io_callback", "ffi_call")
"""Primitives that compute outside of JAX: what they do is not in the program."""


def fingerprint(
    target: Target | None, *, engine: str, progress: Callable[[str], None] | None = None, **how: Any
) -> str | None:
    """Hash everything that decides a run's draws, or return None, with a notice, where that cannot be known.

    The target's definition for another engine takes no part. `how` is what else decides the draws: numbers, text,
    arrays, frozen settings, or what JSON can say of those. `progress` is called with a line of text before something
    that takes long. A target that the engine cannot take raises ValueError, and a program that does not parse
    StanError.
    """
    engine = named(engine)
    try:
        text = json.dumps(
            [*_target(target, engine, progress), engine, how], sort_keys=True, default=_say
        )
    except NoFingerprint as reason:
        of = "This run" if target is None else f"The model of {target.name!r}"
        notice(
            f"{of} has no fingerprint, since {reason}: nothing is kept to go on from, and nothing kept is taken."
        )
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _target(
    target: Target | None, engine: str, progress: Callable[[str], None] | None
) -> Iterator[Any]:
    """Yield all that decides draws of a target on an engine."""
    if target is None:
        yield package_versions(*NUMPYRO_VERSIONS)
        return
    yield target.name, target.describe(), target.inputs, target.outputs
    if engine in ENGINES and (package := ENGINES[engine].package):
        yield package_versions(package)
    by_stan = target.stan_program is not None or target.is_network
    if by_stan and (definition_of(target, engine) == "stan" or target.numpyro_model is None):
        yield _stan(bound(target, engine), progress), package_versions(*STAN_VERSIONS)
        if engine == "numpyro":  # JAX moves on the program's density
            yield package_versions(*NUMPYRO_VERSIONS)
        return
    yield package_versions(*NUMPYRO_VERSIONS)
    if target.numpyro_model is not None:
        import jax
        import numpyro  # noqa: F401 - loads all of which the versions are asked for

        # JAX's flags for random numbers and products in this process, and the versions that are loaded.
        flags = ("default_prng_impl", "threefry_partitionable", "default_matmul_precision")
        process = {f"jax_{name}": str(getattr(jax.config, f"jax_{name}", None)) for name in flags}
        process |= {n: sys.modules[n].__version__ for n in ("jax", "jaxlib", "numpyro")}
        yield list(_numpyro(target)), process


def _stan(target: Target, progress: Callable[[str], None] | None) -> tuple[str, Any]:
    from onebasin.stan.compile import source_key, translate
    from onebasin.stan.home.assemble import find_cmdstan
    from onebasin.stan.interpreter.runtime import full_text, identity, included_files
    from onebasin.stan.program import definition

    program = definition(target)
    if program.chosen().accepted is not None:
        text = full_text(program.path, included_files(program.path))
        return json.dumps([text, {"stanli": identity()}]), dict(program.data)
    home = find_cmdstan(progress=progress)
    return source_key(translate(program.path, home), home), dict(program.data)


def _numpyro(target: Target) -> Iterator[Any]:
    """Yield what the target's NumPyro model computes: names, the program that XLA is given, and its constants.

    In double precision, whatever the run's: so nothing of the data is rounded away. The program's text holds small
    constants bit by bit, and is the same in every process.
    """
    import jax
    import jax.numpy as jnp

    from onebasin.base.precision import precision

    from ..density.network import density_of

    with precision("float64"):
        density = density_of(target)
        like = {n: jax.ShapeDtypeStruct(c.shape, jnp.float64) for n, c in density.charts.items()}

        def computed(coordinates: Any) -> Any:
            log_density = jax.value_and_grad(density.log_density_at)(coordinates)
            return log_density, density.quantities(coordinates)

        try:
            closed, results = jax.make_jaxpr(computed, return_shape=True)(like)
            if found := [name for name in FOREIGN if f" {name}[" in str(closed)]:
                raise NoFingerprint(f"it computes outside of JAX ({found[0]})")
            program = jax.jit(partial(jax.core.eval_jaxpr, closed.jaxpr))
            traced = program.trace(closed.consts, *jax.tree.leaves(like))
            text = traced.lower(lowering_platforms=("cpu",)).as_text()
        except (TypeError, ValueError, NotImplementedError, jax.errors.JAXTypeError) as error:
            raise NoFingerprint(f"JAX cannot trace it ({type(error).__name__})") from error
        yield [str(jax.tree.structure(tree)) for tree in (like, results)]
        yield hashlib.sha256(text.encode()).hexdigest()
        for value in closed.consts:
            is_key = jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
            yield jax.random.key_data(value) if is_key else value


def _say(value: Any) -> Any:
    """A frozen dataclass by its fields, anything else as an array by every bit; `repr` rounds and leaves out."""
    if hasattr(value, "__dataclass_fields__"):
        return type(value).__name__, as_dict(value)
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise NoFingerprint(f"it depends on the Python object {type(value).__name__}")
    content = hashlib.sha256(np.ascontiguousarray(array).view(np.uint8))
    return array.dtype.str, array.shape, content.hexdigest()
