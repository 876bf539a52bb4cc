"""Families: models not yet conditioned on data, which simulate parameters and data.

A test quantity is a function of parameters and data whose ranks are tested. Functions of the data detect more errors
than parameters do: a method that ignores the data and returns the prior has uniform ranks of every parameter, but not
of the log likelihood (Modrák et al. 2023). If the posterior has a symmetry, chains may stay in one of several
equivalent modes. Parameters that the symmetry moves are then compared in a labelling that depends only on the draw
itself (`models.symmetry.closest`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.checks import check_class, check_inputs
from onebasin.base.errors import ArgumentError, ArgumentTypeError, ModelDataError, code_of_user
from onebasin.base.precision import precision
from onebasin.base.text import dotted
from onebasin.models.symmetry.blocks import Symmetry, equal_modes, variables_of
from onebasin.models.symmetry.closest import canonical
from onebasin.models.target import Target
from onebasin.posteriors import schema
from onebasin.posteriors.rhat_ess import diagnostics

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


@dataclass(frozen=True)
class Simulation:
    """Parameters from the prior and data simulated from them; both depend only on the run's seed and the number."""

    number: int
    parameters: Mapping[str, np.ndarray]
    data: Data
    seed: int  # Seed of the method.
    rng: np.random.Generator  # Generator for the randomisation of ranks.


@dataclass(frozen=True)
class SimulationDraws:
    """Draws (chain, draw, ...) of a method for one simulation's data; empty if the method failed."""

    draws: Values = field(default_factory=dict)
    divergences: int = 0
    independent: bool = False  # True for draws from an approximation.
    failure: str = ""  # Why there are no draws; empty if there are.


def draws_of(simulation: Simulation, tree: xr.DataTree, *, independent: bool) -> SimulationDraws:
    """Read the draws of a posterior, and close it."""
    posterior = tree[schema.POSTERIOR].to_dataset()
    names = [name for name in simulation.parameters if name in posterior]
    draws = {n: posterior[n].transpose(*schema.SAMPLE_DIMS, ...).values for n in names}
    stats: Any = tree.children.get(schema.SAMPLE_STATS, {})
    diverging = int(stats[schema.DIVERGING].sum()) if schema.DIVERGING in stats else 0
    tree.close()
    return SimulationDraws(draws, diverging, independent)


def simulated(family: Family, seed: int, number: int) -> Simulation:
    """Simulate once; raise an error unless the family returns parameters and data by name."""
    parent = np.random.SeedSequence([seed, number])
    of_family, of_ranks = parent.spawn(2)
    simulator = f"`simulate` of the family {family.name!r}, at draw {number} of seed {seed},"
    with code_of_user(simulator):
        given = family.simulate(np.random.default_rng(of_family))
    pair = isinstance(given, tuple) and len(given) == 2
    if not pair or not all(isinstance(part, Mapping) for part in given):
        raise ArgumentTypeError(
            f"{simulator} must return two mappings, the parameters and the data; got {type(given).__name__}."
        )
    parameters, data = dotted(given[0]), given[1]
    try:
        values = {n: np.asarray(value, np.float64) for n, value in parameters.items()}
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"{simulator} must return parameters that are numbers or arrays of numbers."
        ) from error
    rng = np.random.default_rng(of_ranks)
    return Simulation(number, values, data, int(parent.generate_state(1)[0]), rng)


def target_of(family: Family, simulation: Simulation) -> Target:
    """Condition the model on a simulation's data."""
    with code_of_user(f"`condition` of the family {family.name!r}, at draw {simulation.number},"):
        target = family.condition(simulation.data)
    check_class("condition", target, Target, remedy="it must return a target")
    return target


Values = dict[str, np.ndarray]
"""Value of every variable, for one point or for several along a leading axis."""
Data = Mapping[str, Any]  # Simulated data by name.
Simulate = Callable[[np.random.Generator], tuple[Mapping[str, Any], Data]]
"""A function that maps a random generator to parameters from the prior and data simulated from them."""
Quantity = Callable[[Values, Data], Any]
"""A function that maps values (point, ...) and data to numbers (point,) or (point, number)."""
Stated = Callable[[], None]  # A NumPyro model without arguments.

PREDICTED = 3  # Number of inputs at which a network's outputs are test quantities.


@dataclass(frozen=True)
class Family:
    """A model not yet conditioned on data: a simulator, and a function that makes the target for given data.

    `Family.of_network`, `Family.of_numpyro` and `Family.of_stan` make one from an existing model.

    Parameters
    ----------
    name : str
        Used in file names and tables.
    simulate : callable
        A function that maps a `numpy.random.Generator` to parameters and data. Parameters are drawn from the prior, on
        the constrained scale, with the names and shapes that the variables of a draw from the posterior have. Data map
        names to arrays, whose shapes are the same in every simulation.
    condition : callable
        A function that maps such data to the `Target` that a method infers: the program under test.
    model : callable, optional
        A function that maps such data to the target's NumPyro model, without arguments. It must accept JAX's traced
        arrays as data; one compiled program then infers all simulations.
    quantities : mapping of str to callable, optional
        More test quantities: functions that map values ``(point, ...)`` by name and the data to numbers ``(point,)``
        or ``(point, number)``. The true values are among the points, at a random position.

    Raises
    ------
    TypeError
        If an argument has the wrong type.

    Examples
    --------
    >>> def simulate(rng):
    ...     mu = rng.normal()
    ...     return {"mu": mu}, {"y": mu + rng.normal(size=5)}
    >>> def normal(y):
    ...     numpyro.sample("y", dist.Normal(numpyro.sample("mu", dist.Normal(0, 1)), 1), obs=y)
    >>> family = ob.truth.Family("normal", simulate, lambda data: ob.numpyro_model(normal, data))
    >>> parameters, data = family.simulate(np.random.default_rng(1))
    >>> family.condition(data).name, data["y"].shape
    ('normal', (5,))
    """

    name: str
    simulate: Simulate
    condition: Callable[[Data], Target]
    _: KW_ONLY
    model: Callable[[Data], Stated] | None = None
    quantities: Mapping[str, Quantity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject arguments of the wrong type."""
        check_class("name", self.name, str, remedy="give a string")
        check_class("quantities", self.quantities, Mapping, remedy="map names to functions")
        parts = {"simulate": self.simulate, "condition": self.condition, **self.quantities}
        parts |= {} if self.model is None else {"model": self.model}
        for name, part in parts.items():
            if not callable(part):
                raise ArgumentTypeError(f"`{name}` of a family must be a function; got {part!r}.")

    def looking_at(self, quantities: Mapping[str, Quantity]) -> Family:
        """Add test quantities.

        Parameters
        ----------
        quantities : mapping of str to callable
            Same as in the class. They replace quantities of the same name.

        Returns
        -------
        Family
            A family with the old and the new test quantities.
        """
        return replace(self, quantities={**self.quantities, **quantities})

    @classmethod
    def of_network(cls, model: BayesianNetwork, x: Any, *, name: str = "network") -> Family:
        """Make a family from a Bayesian network at fixed inputs, with weights, noise and targets from its prior.

        Parameters
        ----------
        model : BayesianNetwork
            The network, in any parametrisation.
        x : array (obs, in)
            Inputs.
        name : str
            The family's name.

        Returns
        -------
        Family
            A family for both engines. The network's outputs at three of the inputs are test quantities.

        Raises
        ------
        ValueError
            If the inputs do not fit the network.

        Examples
        --------
        >>> model = ob.networks.BayesianNetwork(ob.networks.Network(1, (2,)), ob.networks.Gaussian(noise_sd=0.3))
        >>> family = ob.truth.Family.of_network(model, np.linspace(-1, 1, 10)[:, None])
        >>> parameters, data = family.simulate(np.random.default_rng(1))
        >>> parameters["W1"].shape, data["y"].shape
        ((1, 2), (10, 1))
        """
        import jax
        import jax.numpy as jnp

        x = check_inputs(x, model.network.in_dim)
        places = np.unique(np.linspace(0, len(x) - 1, PREDICTED).astype(int))

        def stated(data: Data) -> Stated:
            return partial(model.numpyro_model, jnp.asarray(x), jnp.asarray(data["y"]))

        def outputs(values: Values, data: Data) -> np.ndarray:
            with precision("float64"):
                weights = {name: values[name] for name in model.network.shapes}
                found = jax.vmap(lambda w: model.network.apply(w, jnp.asarray(x[places])))(weights)
            return np.asarray(found).reshape(len(found), -1)

        return cls(
            name,
            _PriorPredictive(lambda: model.numpyro_model(jnp.asarray(x)), {"y": "y"}),
            lambda data: model.condition(x, data["y"], name=name),
            model=stated,
            quantities={"prediction": outputs},
        )

    @classmethod
    def of_numpyro(
        cls,
        model: Callable[..., Any],
        data: Mapping[str, Any] | None = None,
        *,
        observed: str | Sequence[str] | Mapping[str, str],
        name: str | None = None,
        symmetry: Symmetry | str | Sequence[str] = (),
        dims: Mapping[str, tuple[str, ...]] | None = None,
        coords: Mapping[str, Any] | None = None,
    ) -> Family:
        """Make a family from a NumPyro model with arguments that can also draw its observed data.

        Parameters
        ----------
        model : callable
            Same as in `ob.numpyro_model`. It must draw every observed argument that is None.
        data : mapping, optional
            The other arguments; values of observed arguments are ignored.
        observed : str, sequence of str or mapping
            The observed arguments; a mapping from argument to site if their names differ.
        name : str, optional
            The family's name; by default the function's name.
        symmetry : tuple of blocks, str or sequence of str, optional
            Same as in `ob.numpyro_model`. Parameters that the symmetry moves are compared in one labelling.
        dims : mapping, optional
            Axis names of variables.
        coords : mapping, optional
            Labels of axes.

        Returns
        -------
        Family
            A target with only a NumPyro definition.

        Raises
        ------
        ModelDataError
            If `observed` names no site that the model draws, or `data` do not fit the model's arguments.

        Examples
        --------
        >>> def line(x, y=None):
        ...     slope = numpyro.sample("slope", dist.Normal(0, 1))
        ...     numpyro.sample("y", dist.Normal(slope * x, 0.5), obs=y)
        >>> family = ob.truth.Family.of_numpyro(line, {"x": np.linspace(-1, 1, 8)}, observed="y")
        >>> parameters, data = family.simulate(np.random.default_rng(1))
        >>> list(parameters), data["y"].shape
        (['slope'], (8,))
        """
        from onebasin.models.numpyro_target import as_array, numpyro_model

        if isinstance(observed, Mapping):
            sites = dict(observed)
        else:
            sites = {n: n for n in ([observed] if isinstance(observed, str) else observed)}
        fixed = {key: as_array(value) for key, value in (data or {}).items() if key not in sites}
        own_name = name or str(getattr(model, "__name__", type(model).__name__))
        how: dict[str, Any] = {"symmetry": symmetry, "dims": dims, "coords": coords}
        return cls(
            own_name,
            _PriorPredictive(partial(model, **fixed, **dict.fromkeys(sites)), sites),
            lambda drawn: numpyro_model(model, {**fixed, **drawn}, name=own_name, **how),
            model=lambda drawn: partial(model, **fixed, **drawn),
        )

    @classmethod
    def of_stan(
        cls,
        path: str | Path,
        simulate: Simulate,
        *,
        name: str | None = None,
        symmetry: Symmetry | str | Sequence[str] = (),
        quantities: Mapping[str, Quantity] | None = None,
        **how: Any,
    ) -> Family:
        """Make a family from a Stan program and a Python simulator of the same model, to test one against the other.

        Parameters
        ----------
        path : path
            The ``.stan`` file; it is compiled once.
        simulate : callable
            Same as in the class: parameters named as in the program, and all data that the program declares.
        name : str, optional
            The family's name; by default the name of the file.
        symmetry : tuple of blocks, str or sequence of str, optional
            Same as in `ob.stan_program`. Parameters that the symmetry moves are compared in one labelling.
        quantities : mapping of str to callable, optional
            Same as in the class. Give the log likelihood of the data if the program has no `log_lik`.
        **how : Any
            The other arguments of `ob.stan_program`, such as `dims`.

        Returns
        -------
        Family
            A target with only a Stan definition.

        Examples
        --------
        >>> def simulate(rng):
        ...     mu, tau = rng.normal(0, 5), abs(5 * rng.standard_cauchy())
        ...     y = rng.normal(mu, np.hypot(tau, 10), size=8)
        ...     return {"mu": mu, "tau": tau}, {"J": 8, "y": y, "sigma": np.full(8, 10.0)}
        >>> family = ob.truth.Family.of_stan("schools.stan", simulate)
        >>> family.name
        'schools'
        """
        from onebasin.stan.program import stan_program

        own_name = name or Path(path).stem
        program = stan_program(path).stan_program
        return cls(
            own_name,
            simulate,
            lambda data: stan_program(program.path, data, name=own_name, symmetry=symmetry, **how),
            quantities=quantities or {},
        )


class _PriorPredictive:
    """Simulator of a NumPyro model's variables and data, compiled once."""

    def __init__(self, model: Stated, observed: Mapping[str, str]) -> None:
        self._model, self._observed = model, observed
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, rng: np.random.Generator) -> tuple[Values, dict[str, np.ndarray]]:
        import jax

        with precision("float64"):
            if self._compiled is None:
                self._compiled = jax.jit(self._draw)
            drawn = self._compiled(jax.random.key(int(rng.integers(2**32))))
        parameters, data = ({n: np.asarray(v) for n, v in part.items()} for part in drawn)
        return parameters, data

    def _draw(self, key: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        import numpyro  # noqa: F401 - import all of NumPyro before a part of it
        from numpyro.handlers import seed, trace

        sites = trace(seed(self._model, key)).get_trace()
        drawn = {
            n: s["value"]
            for n, s in sites.items()
            if s["type"] == "deterministic" or (s["type"] == "sample" and not s["is_observed"])
        }
        for argument, site in self._observed.items():
            if site not in drawn:
                there = ", ".join(drawn) or "none"
                raise ModelDataError(
                    f"`observed` names {argument}, but the model draws no site {site} when {argument} is None (sites "
                    f"that the model draws: {there}). Name one of these sites, or map {argument} to one of them."
                )
        data = {argument: drawn[site] for argument, site in self._observed.items()}
        return {n: v for n, v in drawn.items() if n not in self._observed.values()}, data


MOST_ENTRIES = 6  # Maximum number of entries of a variable that are test quantities.
LOG_LIKELIHOOD, LP = "log likelihood", "lp"
"""Names of the log density of the data given the parameters, and of the joint one, on the constrained scale."""

SLACK = 0.2  # As ESS is an estimate, a ratio of draws to ESS is rounded up only beyond this.

Numbers = dict[str, np.ndarray]  # Numbers (point,) by test quantity.
LogDensities = Mapping[str, Float[np.ndarray, " point"]]


@dataclass(frozen=True)
class Looking:
    """The test quantities: the family's own, and the parameters modulo the posterior's symmetry."""

    symmetry: Symmetry
    quantities: Mapping[str, Quantity]

    def at(self, values: Values, data: Data, densities: LogDensities) -> Numbers:
        """Compute all test quantities at points (point, ...)."""
        points = len(next(iter(values.values())))
        out = {name: np.asarray(found) for name, found in densities.items()}
        for name, quantity in self.quantities.items():
            with code_of_user(f"Quantity {name!r} in `quantities`"):
                given = quantity(values, data)
            out |= _named(name, given, points)
        moved = {*variables_of(equal_modes(self.symmetry))}
        labelled = canonical(self.symmetry, values)
        for name in values:
            word = f"{name}, in order" if name in moved else name
            out |= _named(word, labelled[name], points)
        return out


def _named(name: str, found: Any, points: int) -> Numbers:
    """Return a test quantity as numbers (point,) by name; for an array, take a few entries."""
    if isinstance(found, Mapping):
        return {
            key: numbers
            for inner, part in found.items()
            for key, numbers in _named(f"{inner}, {name}", part, points).items()
        }
    numbers = np.asarray(found, dtype=np.float64)
    if numbers.shape[:1] != (points,):
        raise ArgumentError(
            f"The function {name!r} in `quantities` must return an array whose first axis has one entry per point; "
            f"got shape {numbers.shape} for {points} point(s)."
        )
    if numbers.ndim == 1:
        return {name: numbers}
    shape = numbers.shape[1:]
    flat = numbers.reshape(points, -1)
    places = np.unique(np.linspace(0, flat.shape[1] - 1, MOST_ENTRIES).astype(int))
    variable, comma, how = name.partition(",")
    return {
        f"{variable}[{','.join(map(str, np.unravel_index(place, shape)))}]{comma}{how}": flat[
            :, place
        ]
        for place in places
    }


class Ranked(NamedTuple):
    """Rank of a true value among draws.

    `share` is the rank among nearly independent draws, plus a uniform random number, divided by the number of draws
    plus one. It is uniform in (0, 1) if the draws come from the posterior.
    """

    share: float
    z: float  # Distance from the mean of the draws, in their standard deviations.
    ess: float
    rhat: float
    kept: int  # Number of draws that the true value was ranked among.


def rank(
    draws: Float[np.ndarray, "chain draw"],
    truth: float,
    rng: np.random.Generator,
    *,
    independent: bool,
) -> Ranked:
    """Rank a true value among draws (chain, draw), thinned until they are nearly independent.

    Ties of discrete quantities are broken at random. `independent` draws, as from an approximation, are not thinned.
    """
    ess, rhat = float(draws.size), 1.0
    if not np.isfinite(draws).all() and not independent:
        ess, rhat = np.nan, np.nan
    elif not independent and np.ptp(draws) != 0:
        found = diagnostics(draws[None])
        ess, rhat = float(min(found.ess_bulk[0], found.ess_tail[0])), float(found.rhat[0])
    every = max(1, math.ceil(draws.size / ess - SLACK)) if ess > 0 else draws.shape[1]
    taken = draws[:, ::every].ravel()
    below, ties = np.sum(taken < truth), np.sum(taken == truth)
    share = (below + rng.uniform() * (ties + 1)) / (len(taken) + 1)
    spread = draws.std(ddof=1)
    z = (truth - draws.mean()) / spread if spread > 0 else np.nan
    # The sampling errors of the mean and the sd of n draws add 1 / n and 2 / n to the square of z.
    shrunk = np.sqrt(1 + 3 / max(ess, 3.0)) if np.isfinite(ess) else 1.0
    return Ranked(float(share), float(z / shrunk), ess, rhat, len(taken))
