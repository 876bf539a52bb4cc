"""The log density of a NumPyro model, over vectors and over values.

In a vector, variables are sorted by name. If all charts are NumPyro's, the log density equals NumPyro's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - import all of NumPyro before a part of it
from jaxtyping import Array, Float
from numpyro.distributions import Delta, ImproperUniform, MaskedDistribution, Unit
from numpyro.handlers import seed as seeded
from numpyro.handlers import substitute, trace
from numpyro.infer.initialization import init_to_uniform
from numpyro.infer.util import (
    compute_log_probs,
    constrain_fn,
    find_valid_initial_params,
    initialize_model,
    log_density,
    potential_energy,
)
from numpyro.primitives import Messenger

from onebasin.base.errors import ArgumentError
from onebasin.base.seeds import keys_at
from onebasin.base.text import dotted
from onebasin.models.target import Target
from onebasin.posteriors.storable import check_values

from ..contracts.density import Rows, Terms, Values, Vector
from .charts import Bijection, Chart, Coordinates
from .start import RADIUS, TRIES, check_names, no_point, no_start, shaped

_TOGETHER = 8  # Starts searched at once; one compiled search thus serves any number of chains.
_AT_LEAST = 32  # Minimum number of points per evaluation; fewer points are padded to it.
_NUMBERS = 2**18  # Maximum number of array entries in these points.

FIXED = ("param", "mutable", "plate")
"""Types of sites that are not variables; they are fixed at their values in the first run."""


def require_numpyro(target: Target) -> Callable[[], None]:
    """Return the target's NumPyro model; raise ValueError if it has none."""
    if target.numpyro_model is None:
        raise ArgumentError(
            f"`target` {target.name!r} has no NumPyro model. Use engine='stanli' or engine='cmdstan'."
        )
    return _Dotted(target.numpyro_model)


class _Dotted(Messenger):
    """A handler that renames sites and plates as in files: slashes of scopes and modules become dots."""

    def __enter__(self) -> None:
        super().__enter__()
        self.given: dict[str, str] = {}

    def process_message(self, msg: dict[str, Any]) -> None:
        """Rename the site."""
        if msg["type"] == "control_flow":  # Its functions run outside these handlers.
            own = (callable(a) and jax.tree_util.all_leaves([a]) for a in msg["args"])
            pairs = zip(msg["args"], own, strict=True)
            msg["args"] = tuple(_Dotted(a) if f else a for a, f in pairs)
        if isinstance(name := msg.get("name"), str):
            msg["name"] = dotted(name)
            if self.given.setdefault(msg["name"], name) != name:
                raise ArgumentError(
                    f"The sites {self.given[msg['name']]} and {name} of the model would both be stored as "
                    f"{msg['name']}, because onebasin replaces slashes with dots. Rename one of the sites."
                )
        if frames := msg.get("cond_indep_stack"):
            msg["cond_indep_stack"] = [f._replace(name=dotted(f.name)) for f in frames]


def sites_of(target: Target, *, data: bool = False) -> dict[str, dict[str, Any]]:
    """Run the target's NumPyro model once and return its sites.

    JAX traces the run, which is faster than compiling each operation. The value of a site is then a
    `ShapeDtypeStruct`, except for fixed types and, with `data`, for observed sites. If a model computes such values or
    its supports, it is run without tracing.
    """
    model = require_numpyro(target)
    run = substitute(seeded(model, jax.random.key(0)), substitute_fn=_value_without_draw)
    sites: dict[str, dict[str, Any]] = {}

    def record() -> None:
        sites.update(trace(run).get_trace())
        for site in sites.values():
            if is_variable(site):
                site["support"] = site["fn"].support

    try:
        with suppress(jax.errors.JAXTypeError):  # The model branches on values.
            jax.eval_shape(record)
            if _without_tracers(sites, data):
                return sites
        sites.clear()
        record()
    except AssertionError as error:  # NumPyro raises it if two sites have the same name.
        raise ArgumentError(
            f"The NumPyro model of `target` {target.name!r} fails: {error}. Correct the model."
        ) from error
    return sites


def _without_tracers(sites: Mapping[str, dict[str, Any]], data: bool) -> bool:
    """Replace traced values by their shapes, and return whether all necessary values are known."""
    for site in sites.values():
        value, tracers = site["value"], jax.tree.leaves(site.get("support"))
        if site["type"] == "plate" and len(value) == site["args"][0]:  # A whole plate, in order.
            value = jnp.asarray(np.arange(len(value)), value.dtype)
        elif site["type"] in FIXED or (data and is_observation(site)):
            tracers += jax.tree.leaves(value)
        elif isinstance(value, jax.Array):
            value = jax.ShapeDtypeStruct(value.shape, value.dtype)
        if any(isinstance(each, jax.core.Tracer) for each in tracers):
            return False
        site["value"] = value
    return True


def check_whole(target: Target, sites: Mapping[str, Mapping[str, Any]]) -> None:
    """Reject a model with a plate that selects random rows on every run."""
    for name, site in sites.items():
        if site["type"] == "plate" and len(site["value"]) != site["args"][0]:
            part, rows = len(site["value"]), site["args"][0]
            raise ArgumentError(
                f"`target` {target.name!r} uses only {part} of the {rows} rows of plate {name} at a time "
                "(`subsample_size`), but a posterior needs all rows. Omit `subsample_size`."
            )


def _observed_in(sites: Mapping[str, Any], name: str) -> bool:
    """Return whether `obs_mask` made this variable for the missing values of a site."""
    own = name.removesuffix("_unobserved")
    seen = sites.get(f"{own}_observed", {"type": ""})
    return own != name and own in sites and is_observation(seen)


class _Keys(Messenger):
    """A handler that records whether a model calls `numpyro.prng_key`, and provides a key if no other handler does."""

    asked = False

    def process_message(self, msg: dict[str, Any]) -> None:
        """Record a request."""
        self.asked |= msg["type"] == "prng_key"

    def postprocess_message(self, msg: dict[str, Any]) -> None:
        """Provide a key."""
        if msg["type"] == "prng_key" and msg["value"] is None:
            msg["value"] = jax.random.key(0)


class _Imputing(Messenger):
    """A handler that restores the whole prior of variables made by `obs_mask`.

    NumPyro masks observed entries; without a density, they would drift away.
    """

    def __init__(self, fn: Callable[[], None], names: Collection[str]) -> None:
        super().__init__(fn)
        self.names = names

    def process_message(self, msg: dict[str, Any]) -> None:
        """Remove the masks."""
        while msg.get("name") in self.names and isinstance(msg["fn"], MaskedDistribution):
            msg["fn"] = msg["fn"].base_dist


def is_variable(site: Mapping[str, Any]) -> bool:
    """Return whether a site is a variable."""
    return bool(site["type"] == "sample" and not site["is_observed"])


def is_observation(site: Mapping[str, Any]) -> bool:
    """Return whether a site is observed data; a site of `numpyro.factor` is not."""
    if site["type"] != "sample" or not site["is_observed"]:
        return False
    return not isinstance(_innermost(site["fn"]), Unit)


@dataclass(frozen=True, eq=False)
class NumpyroDensity(Coordinates):
    """The log density of a target from its NumPyro model, constructed by `of`."""

    target: Target
    model: Callable[[], None]  # The target's model, with everything fixed except its variables.
    charts: dict[str, Chart]  # Chart of each variable.
    replayed: bool
    """True if values need a run of the model: for derived quantities or dependent supports."""

    @classmethod
    def of(cls, target: Target) -> NumpyroDensity:
        """Return the density of a target; raise ValueError for variables that cannot be inferred or stored."""
        model = require_numpyro(target)
        sites = sites_of(replace(target, numpyro_model=(keys := _Keys(model))))
        check_whole(target, sites)
        charts: dict[str, Chart] = {}
        replayed = any(site["type"] == "deterministic" for site in sites.values())
        for name, site in sites.items():
            if not is_variable(site):
                continue
            support = site["support"]
            if support.is_discrete:
                raise ArgumentError(
                    f"The variable {name} of `target` {target.name!r} is discrete, but inference needs gradients. In "
                    "the model, sum over the values of this variable (`numpyro.factor`)."
                )
            if isinstance(_innermost(site["fn"]), Delta):
                raise ArgumentError(
                    f"The variable {name} of `target` {target.name!r} has a Delta distribution, which has no "
                    "density. Define this variable with `numpyro.deterministic` instead."
                )
            charts[name] = Bijection(support, np.shape(site["value"]))
            # Follow NumPyro's rule for bounds that may depend on other variables.
            bounds = [getattr(support, side, 0) for side in ("lower_bound", "upper_bound")]
            replayed |= not all(isinstance(bound, int | float) for bound in bounds)
        if not charts:
            raise ArgumentError(
                f"The NumPyro model of `target` {target.name!r} has no variables, so there is nothing to infer. Give "
                "a model with at least one unobserved variable."
            )
        stored = {
            name: site["value"]
            for name, site in sites.items()
            if site["type"] == "deterministic" or is_variable(site)
        }
        check_values(stored, dims=target.dims, argument="target", coords=target.coords)
        if imputed := {n for n in charts if _observed_in(sites, n)}:
            model = _Imputing(model, imputed)
        if keys.asked:
            model = _Keys(model)
        fixed = {name: site["value"] for name, site in sites.items() if site["type"] in FIXED}
        density = cls(target, substitute(model, data=fixed) if fixed else model, charts, replayed)
        if keys.asked and density._changes_with_keys:
            raise ArgumentError(
                f"The log density of `target` {target.name!r} depends on random numbers from `numpyro.prng_key`. "
                "Draw these numbers with `numpyro.sample`, or outside the model."
            )
        return density

    @property
    def _changes_with_keys(self) -> bool:
        """Return whether the model's own random keys change the log density; some only initialise with them."""
        point = self.unravel(jnp.asarray(np.random.default_rng(0).uniform(-1, 1, self.size)))

        def at(key: jax.Array) -> jax.Array:
            return potential_energy(seeded(self.model, key), (), {}, point)

        found = np.asarray(jax.vmap(at)(jax.random.split(jax.random.key(0), 16)))
        return not np.allclose(found, found[0], rtol=1e-9, atol=0, equal_nan=True)

    @property
    def order(self) -> Sequence[str]:
        """Names of the variables in the order of the vector: sorted, as in NumPyro."""
        return sorted(self.charts)

    def constrain(self, vector: Vector) -> Values:
        """Return the value of every variable."""
        return self.quantities(self.unravel(vector), derived=False)

    def quantities(self, coordinates: Values, *, derived: bool = True) -> Values:
        """Return the value of every variable and, if `derived`, of the model's deterministic sites."""
        if self.replayed and self._has_own_charts:
            more = {"return_deterministic": derived}
            return constrain_fn(self.model, (), {}, coordinates, **more)
        return {name: chart.forward(coordinates[name]) for name, chart in self.charts.items()}

    def unconstrain(self, values: Mapping[str, Any]) -> Vector:
        """Return the vector of the given values."""
        own = dotted(values)
        return self.ravel({n: c.inverse(jnp.asarray(own[n])) for n, c in self.charts.items()})

    def log_jacobian(self, vector: Vector) -> Float[Array, ""]:
        """Return the difference between the log density of a vector and that of its values."""
        coordinates, values = self.unravel(vector), self.constrain(vector)
        terms = [c.log_jacobian(coordinates[n], values[n]) for n, c in self.charts.items()]
        return sum(terms, jnp.zeros((), vector.dtype))

    def log_density(self, vector: Vector) -> Float[Array, ""]:
        """Return log prior plus log likelihood of all data."""
        return self.log_density_at(self.unravel(vector))

    def log_density_at(self, coordinates: Values) -> Float[Array, ""]:
        """Return the log density at the coordinates of every variable."""
        if self._has_own_charts:
            potential: jax.Array = potential_energy(self.model, (), {}, coordinates)
            return -potential
        vector = self.ravel(coordinates)
        return self.log_prior(vector) + jnp.sum(self.log_likelihood(vector))

    def log_prior(self, vector: Vector) -> Float[Array, ""]:
        """Return the log prior density."""
        coordinates, values = self.unravel(vector), self.constrain(vector)
        terms = [c.log_jacobian(coordinates[n], values[n]) for n, c in self.charts.items()]
        return sum(terms, sum(site_terms(self._prior_model, values, observed=False), jnp.zeros(())))

    def log_likelihood(self, vector: Vector, rows: Rows = None) -> Terms:
        """Return the log likelihood of all data, one term per observed site."""
        if rows is not None:
            raise ArgumentError(
                "`rows` selects observations, but onebasin can select observations only for networks. The target "
                f"{self.target.name!r} is not a network. Use `rows=None` for all data."
            )
        terms = site_terms(self.model, self.constrain(vector), observed=True)
        return jnp.stack(terms) if terms else jnp.zeros(1, vector.dtype)

    def random_starts(self, keys: jax.Array, radius: float) -> Float[Array, "start param"]:
        """Find one point per key with a finite log density and gradient, uniform within +-radius."""
        number = len(keys)
        # Pad the keys, because each number of keys would be compiled separately.
        rows = np.minimum(np.arange(-(-number // _TOGETHER) * _TOGETHER), number - 1)
        points, found = self._search(keys_at(keys, rows), radius)
        # If JAX traces this call, the caller checks the points.
        if not isinstance(found, jax.core.Tracer) and not found.all():
            with suppress(RuntimeError):  # This call warns of data outside a site's support.
                initialize_model(keys, self.model, init_strategy=init_to_uniform(radius=radius))
            raise no_start(self.target.name, f"{TRIES} points were tried")
        return points[:number]

    @cached_property
    def _search(self) -> Callable[[jax.Array, float], tuple[jax.Array, jax.Array]]:
        """NumPyro's compiled search for starting points; it also returns which were found."""

        @partial(jax.jit, static_argnums=1)
        def search(keys: jax.Array, radius: float) -> tuple[jax.Array, jax.Array]:
            # NumPyro draws values in the order of the model's sites. Only the shapes of these arrays are used.
            like = {name: jnp.zeros(chart.shape) for name, chart in self.charts.items()}
            strategy = init_to_uniform(radius=radius)
            (points, *_), found = find_valid_initial_params(
                keys, self.model, init_strategy=strategy, prototype_params=like
            )
            return jax.vmap(self.ravel)(points), found

        return search

    def given_start(self, start: Mapping[str, Any]) -> Vector:
        """Convert constrained values to a vector, in the precision of the caller's context."""
        start = check_names(start, self.names)
        coordinates = {}
        for name, chart in self.charts.items():
            value = jnp.asarray(
                shaped(name, chart.event_shape, start[name]), jnp.result_type(float)
            )
            coordinates[name] = chart.inverse(value)
            if not (jnp.all(chart.support(value)) and jnp.all(jnp.isfinite(coordinates[name]))):
                raise ArgumentError(
                    f"The value of {name} in `start` is not finite or lies outside the support ({chart.support}). "
                    "Give a finite value inside the support. If the value is a mean of draws, project it onto the "
                    "support first."
                )
        return self.ravel(coordinates)

    @property
    def _prior_model(self) -> Callable[[], None]:
        """A model that has the same prior as `model`."""
        return self.model

    @property
    def _has_own_charts(self) -> bool:
        return all(isinstance(chart, Bijection) for chart in self.charts.values())


def _value_without_draw(site: dict[str, Any]) -> jax.Array | None:
    """Return a value for a variable with an improper prior, from which NumPyro cannot draw."""
    improper = isinstance(_innermost(site.get("fn")), ImproperUniform)
    return init_to_uniform(site) if improper else None


def _innermost(fn: Any) -> Any:
    """Return a distribution without its wrappers."""
    while hasattr(fn, "base_dist"):
        fn = fn.base_dist
    return fn


def site_terms(model: Callable[[], None], values: Values, *, observed: bool) -> list[jax.Array]:
    """Return the summed log density of each observed site, or of each other site."""
    log_probs, sites = compute_log_probs(model, (), {}, values)
    return [v for name, v in log_probs.items() if bool(sites[name]["is_observed"]) == observed]


class NumpyroValues:
    """A `ValueDensity` from NumPyro: a target's density on the constrained scale, without Jacobians."""

    def __init__(self, target: Target, progress: Callable[[str], None] | None = None) -> None:
        del progress
        self.density = NumpyroDensity.of(target)

        def one(point: Values) -> tuple[jax.Array, Values]:
            density, sites = log_density(self.density.model, (), {}, point)
            inside = [jnp.all(sites[name]["fn"].support(value)) for name, value in point.items()]
            derived = {n: s["value"] for n, s in sites.items() if s["type"] == "deterministic"}
            return jnp.where(jnp.all(jnp.stack(inside)), density, -jnp.inf), derived

        # Compile only once per object.
        self._compiled = jax.jit(jax.vmap(one))
        self._constrain = jax.jit(jax.vmap(self.density.constrain))

    @property
    def _least(self) -> int:
        """Minimum number of points per evaluation."""
        return max(1, min(_AT_LEAST, _NUMBERS // self.density.size))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self.density.names

    @cached_property
    def derived(self) -> tuple[str, ...]:
        """Names of the model's deterministic sites; none for networks, whose symmetry follows from the architecture."""
        if self.density.target.is_network:
            return ()
        return tuple(self.derived_at(self.points(1, 0), 0))

    def derived_at(self, values: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
        """Return the derived quantities at points (point, ...)."""
        del seed  # All random numbers of a model are named sites.
        return self._at(values)[1]

    def points(self, count: int, seed: int) -> dict[str, np.ndarray]:
        """Draw points, uniform within +-2 in the unconstrained space: name to array (point, ...)."""
        rng = np.random.default_rng(seed)
        found: list[dict[str, np.ndarray]] = []
        for _ in range(TRIES):
            vectors = rng.uniform(-RADIUS, RADIUS, (max(count, self._least), self.density.size))
            values = {n: np.asarray(v) for n, v in self._constrain(vectors).items()}
            allowed = np.isfinite(self._at(values)[0])
            found.append({name: value[allowed] for name, value in values.items()})
            together = {n: np.concatenate([one[n] for one in found])[:count] for n in values}
            if len(next(iter(together.values()))) == count:
                return together
        raise no_point(self.density.target.name, TRIES * len(vectors))

    def log_density(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"]:
        """Return the log density at points (point, ...); -inf outside the support."""
        return self._at(values)[0]

    def log_likelihood(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"] | None:
        """Return the log likelihood of all data at points (point, ...)."""
        model = self.density.model
        total = jax.vmap(lambda v: sum(site_terms(model, v, observed=True), jnp.zeros(())))
        return np.asarray(total(dict(values)))

    def terms(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the log density of every site at one point, and whether each variable is inside its support."""
        log_probs, sites = compute_log_probs(self.density.model, (), {}, values)
        inside = {f"support of {n}": jnp.all(sites[n]["fn"].support(v)) for n, v in values.items()}
        return {**log_probs, **inside}

    def _at(self, values: Mapping[str, Any]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return log densities and derived quantities; pad small numbers of points to the compiled number."""
        count = len(next(iter(values.values())))
        rows = np.minimum(np.arange(max(count, self._least if count else 0)), count - 1)
        density, derived = self._compiled({n: np.asarray(values[n])[rows] for n in self.names})
        return np.asarray(density)[:count], {n: np.asarray(v)[:count] for n, v in derived.items()}
