"""A Gaussian fitted to the moments of a posterior, with samples, log densities and predictions.

Xiao, Liu and Bamler 2023 ("A compact representation for Bayesian neural networks by removing permutation symmetry")
summarise HMC draws by one diagonal Gaussian after alignment. Here the covariance may also be full. The fit uses the
coordinates of the draws and pools chains. `analysis.alignment.align` removes positive scalings of a network's units
first if its gauge is "balanced" or "unit" (the canonical parametrisation), but not with "keep". `GaussianFit.gauge`
records the gauge.

Rows are (chain, draw, param) in float64, with the entries of each variable in C order. Positive variables are stored as
logarithms. A row is loc + scale * u, where u has mean 0 and variance 1, so positive variables are log normal. Other
constraints are not represented: draws of simplexes or of ordered values violate their constraints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.linalg import solve_triangular

from onebasin.base.card import Card, FactList, Part, Shown, Words, number
from onebasin.base.checks import check_count, check_seed, checks_arguments, choose
from onebasin.base.errors import ArgumentError
from onebasin.base.table import Table
from onebasin.models.symmetry.blocks import equal_modes, in_words
from onebasin.posteriors import schema
from onebasin.posteriors.draws import checked, entry_names
from onebasin.posteriors.pointwise import LIMIT_MB, check_limit, network_groups
from onebasin.posteriors.schema import SAMPLE_DIMS
from onebasin.posteriors.view import Posterior, View, as_view

from ..summaries.summary import is_constant, units_of

COVARIANCES = ("diagonal", "full")
Rows = Float[np.ndarray, "chain draw param"]
Samples = Float[np.ndarray, "sample param"]
Matrix = Float[np.ndarray, "param param_bis"]


@dataclass(frozen=True, eq=False)
class VariableLayout:
    """The variables of a row, as in one draw, and those that are stored as logarithms."""

    template: xr.Dataset
    positive: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of scalar parameters."""
        return sum(variable.size for variable in self.template.values())

    @cached_property
    def is_log(self) -> Bool[np.ndarray, " param"]:
        """Mask of the parameters that are stored as logarithms."""
        every = self.template.items()
        return np.concatenate([np.full(v.size, name in self.positive) for name, v in every])

    def values(self, draws: Mapping[str, Any] | xr.Dataset, argument: str = "draws") -> Rows:
        """Concatenate the values of draws, without logarithms. Reject a missing variable or a wrong shape."""
        columns = []
        for name, like in ((str(n), v) for n, v in self.template.items()):
            if name not in draws:
                raise ArgumentError(
                    f"`{argument}` lacks the fitted variable {name}; got "
                    f"{', '.join(map(str, draws)) or 'no variables'}. Give draws of all fitted variables."
                )
            values = draws[name]
            if isinstance(values, xr.DataArray):
                values = _floats(values, argument)
            array = np.asarray(values, dtype=np.float64)
            if array.ndim < 2 or array.shape[2:] != like.shape:
                raise ArgumentError(
                    f"The variable {name} in `{argument}` must have shape "
                    f"({', '.join(['chain', 'draw', *map(str, like.shape)])}); got {array.shape}."
                )
            columns.append(array.reshape(*array.shape[:2], like.size))
        leads = {column.shape[:2] for column in columns}
        if len(leads) > 1:
            raise ArgumentError(
                f"The variables in `{argument}` have different numbers of chains or draws: "
                f"{' and '.join((f'{chains} chain(s) of {draws} draw(s)' for chains, draws in sorted(leads)))}. Give "
                "the same chains and draws for each variable."
            )
        return np.concatenate(columns, axis=2)

    def take_logs(self, values: Rows) -> Rows:
        """Convert values to rows. The result is NaN if a positive variable is not positive."""
        rows, logs = values.copy(), self.is_log
        with np.errstate(invalid="ignore", divide="ignore"):
            rows[..., logs] = np.where(values[..., logs] > 0, np.log(values[..., logs]), np.nan)
        return rows

    def split(self, row: Float[np.ndarray, "*lead param"]) -> dict[str, np.ndarray]:
        """Split rows into arrays (*lead, *shape) by variable."""
        ends = np.cumsum([variable.size for variable in self.template.values()])[:-1]
        pieces = zip(self.template.items(), np.split(row, ends, axis=-1), strict=True)
        return {
            str(n): piece.reshape((*row.shape[:-1], *like.shape)) for (n, like), piece in pieces
        }

    def to_dataset(self, values: Rows) -> xr.Dataset:
        """Return a dataset for the group `posterior` with these values."""
        arrays = self.split(values)
        coords = {dim: np.arange(n) for dim, n in zip(SAMPLE_DIMS, values.shape[:2], strict=True)}
        return xr.Dataset(
            {n: ((*SAMPLE_DIMS, *self.template[n].dims), array) for n, array in arrays.items()},
            coords={**coords, **self.template.coords},
        )


def _floats(array: xr.DataArray, argument: str) -> xr.DataArray:
    """Put chain and draw in front. Reject an array without these axes or with a non-float type."""
    if array.dtype.kind in "biu":
        raise ArgumentError(
            f"The variable {array.name} in `{argument}` has type {array.dtype}, but a Gaussian needs floating-point "
            "numbers. Exclude this variable with `var_names`."
        )
    return checked(array, argument)


MOST = 10
"""Maximum number of parameters in a table."""


def parameter_table(mean: Mapping[str, np.ndarray], sd: Mapping[str, np.ndarray]) -> Table:
    """Tabulate means and sds of the first parameters."""
    places = [(name, place) for name in mean for place in np.ndindex(np.shape(mean[name]))]
    rows = tuple(
        (
            f"`{name}[{','.join(map(str, place))}]`" if place else f"`{name}`",
            number(mean[name][place]),
            number(sd[name][place]),
        )
        for name, place in places[:MOST]
    )
    more = f", {MOST} of {len(places):,}" if len(places) > MOST else ""
    return Table(("", "mean", "sd"), rows, f"parameters{more}")


def of_target(attributes: Mapping[str, object]) -> str:
    """Return " of `NAME`", or "" if the target has no name."""
    name = attributes.get(schema.TARGET)
    return f" of `{name}`" if name else ""


def prediction_groups(
    source: View, draws: Mapping[str, np.ndarray], *, seed: int, limit_mb: float
) -> dict[str, xr.Dataset]:
    """Predict with draws (chain, draw, ...) of a network's weights, and return the groups to store with them.

    The groups take at most `limit_mb` megabytes. The result is empty if the source has no network or no data, or if the
    draws lack a variable.
    """
    model = source.network
    if model is None or source.x is None or source.y is None:
        return {}
    needed = [*model.network.shapes, *(["sigma"] if model.infers_noise else [])]
    if not set(needed) <= set(draws):
        return {}
    groups = network_groups(model, draws, source.x, source.y, seed=seed, limit_mb=limit_mb)
    return {name: group.to_dataset() for name, group in (groups or {}).items()}


Draws = xr.DataTree | xr.Dataset | Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class GaussianFit(Shown):
    """A Gaussian with the same moments as a posterior.

    Attributes
    ----------
    covariance : {"diagonal", "full"}
        Kind of the covariance.
    layout : VariableLayout
        The variables, with their shapes and axes, and whether they are fitted as logarithms.
    loc, scale : array (param,)
        Means and standard deviations of the draws, after taking logarithms.
    correlation : array (param, param_bis), optional
        Correlation matrix of a full covariance.
    settings : mapping
        Settings of the fit: `covariance`, the `shrinkage` used, `fitted_draws`, `positive`.
    attributes : mapping
        The attributes of the source: `model`, `symmetry`, `alignment`, ...
    data : mapping of str to Dataset
        The groups `constant_data` and `observed_data` of the source, if available.
    """

    covariance: str
    layout: VariableLayout
    loc: Float[np.ndarray, " param"]
    scale: Float[np.ndarray, " param"]
    correlation: Float[np.ndarray, "param param_bis"] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, xr.Dataset] = field(default_factory=dict)

    def _card(self) -> Card:
        draws = self.settings.get("fitted_draws", 0)
        parts: list[Part] = [
            Words(
                f"A Gaussian with the means and a {self.covariance} covariance of {draws:,} draws"
                f"{of_target(self.attributes)}, {self.layout.size:,} parameters: one basin. Compare `.sample(1000)` "
                "with the posterior by `ob.compare`."
            )
        ]
        symmetry = schema.symmetry_of(self.attributes)
        declared = () if schema.ALIGNMENT in self.attributes else equal_modes(symmetry)
        if declared:
            warned = (
                f"The draws were not aligned, but the posterior declares {in_words(declared)}. If labels switch, this "
                "Gaussian averages over them; fit `ob.align(posterior).posterior` instead."
            )
            parts.append(Words(warned, flag="warn"))
        divided = self.gauge not in (None, "keep")
        scalings = f"divided out, gauge {self.gauge}" if divided else "as they were sampled"
        shrinkage = self.settings.get("shrinkage")
        facts = FactList.of(
            ("shrinkage", "" if shrinkage is None else number(shrinkage)),
            ("logarithms", ", ".join(f"`{name}`" for name in self.log_fitted)),
            ("scalings", scalings if equal_modes(symmetry) != symmetry else ""),
        )
        title = f"One Gaussian, {self.covariance} covariance"
        return Card(title, (*parts, facts, parameter_table(self.mean, self.sd)))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables in order."""
        return tuple(map(str, self.layout.template))

    @property
    def log_fitted(self) -> tuple[str, ...]:
        """The variables that are fitted as logarithms."""
        return tuple(name for name in self.names if name in self.layout.positive)

    @property
    def gauge(self) -> str | None:
        """The gauge used when the draws were aligned (`balanced`, `unit` or `keep`).

        None if the draws were not aligned. With `keep` or None, positive scalings were not removed.
        """
        rule = schema.decode(self.attributes, schema.ALIGNMENT)
        return rule.get("gauge") if rule else None

    @cached_property
    def mean(self) -> dict[str, np.ndarray]:
        """The mean by variable. For positive variables it is the log-normal mean, not exp(mean of logs)."""
        return self.layout.split(self._natural_moments[0])

    @cached_property
    def sd(self) -> dict[str, np.ndarray]:
        """The marginal standard deviations by variable. For positive variables they are log-normal."""
        return self.layout.split(self._natural_moments[1])

    @cached_property
    def _root(self) -> Float[np.ndarray, "param param_bis"] | None:
        """The Cholesky factor of the correlation matrix."""
        return None if self.correlation is None else np.linalg.cholesky(self.correlation)

    @cached_property
    def _natural_moments(self) -> tuple[np.ndarray, np.ndarray]:
        mean, logs = self.loc.copy(), self.layout.is_log
        sd = self.scale.copy()
        square = np.square(sd[logs])
        mean[logs] = np.exp(mean[logs] + square / 2)
        sd[logs] = mean[logs] * np.sqrt(np.expm1(square))
        return mean, sd

    def sample(
        self, num_draws: int, *, seed: int = 0, chains: int = 1, predictive_mb: float = LIMIT_MB
    ) -> xr.DataTree:
        """Draw independent samples.

        Parameters
        ----------
        num_draws : int
            Number of draws per chain.
        seed : int
            Seed of the random streams, one per chain. Chain 0 does not depend on the number of chains.
        chains : int
            Number of chains.
        predictive_mb : float
            Memory limit in megabytes for a network's log likelihoods and predictions, as in `nuts`; 0 leaves them out.

        Returns
        -------
        DataTree
            A posterior (docs/reference/posterior.md). Its `log_q` is, like `lp`, the log density of the logarithms of
            positive variables. `log_density` gives the log density of the values.

        Raises
        ------
        ValueError
            If `num_draws` or `chains` is not a positive whole number, or the seed is invalid.
        """
        check_count("num_draws", num_draws)
        check_count("chains", chains)
        check_seed(seed)
        streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(chains)]
        u = np.stack([rng.standard_normal((num_draws, self.layout.size)) for rng in streams])
        u = u if self._root is None else u @ self._root.T
        rows = self.loc + self.scale * u
        tree = self._tree(rows, {"num_draws": num_draws, "chains": chains}, seed=seed)
        limit = check_limit(predictive_mb)
        drawn = {
            str(name): values.values for name, values in tree[schema.POSTERIOR].data_vars.items()
        }
        for name, group in prediction_groups(View(tree), drawn, seed=seed, limit_mb=limit).items():
            tree[name] = xr.DataTree(group)
        return tree

    def mean_draw(self) -> xr.DataTree:
        """Return the mean as a posterior with one draw, for predictions."""
        mean, _ = self._natural_moments
        rows = self.layout.take_logs(mean[None, None, :])
        return self._tree(rows, {"point": "mean"}, seed=0)

    def log_density(
        self, draws: Draws, *, jacobian: bool = True
    ) -> Float[np.ndarray, "chain draw"]:
        """Evaluate the normalised log density.

        Parameters
        ----------
        draws : DataTree, Dataset or mapping
            The fitted variables (chain, draw, ...). Other variables are ignored.
        jacobian : bool
            Whether to return the density of the values, and not that of the logarithms of positive variables.

        Returns
        -------
        array (chain, draw)
            Log density in nats; -inf if a positive variable is not positive, NaN if a value is NaN.

        Raises
        ------
        TypeError
            If `draws` have the wrong type.
        ValueError
            If a variable is missing or has the wrong shape.
        """
        plain = isinstance(draws, Mapping) and not isinstance(draws, xr.DataTree)
        values = self.layout.values(draws if plain else as_view(draws, "draws").posterior)
        outside = (values[..., self.layout.is_log] <= 0).any(axis=-1)
        taken = self.layout.take_logs(values)
        log_density = self._log_density(taken, jacobian=jacobian)
        log_density[outside & ~np.isnan(values).any(axis=-1)] = -np.inf
        return log_density

    def _log_density(self, rows: Rows, *, jacobian: bool) -> Float[np.ndarray, "chain draw"]:
        u = (rows - self.loc) / self.scale
        width = float(np.log(self.scale).sum())
        if self._root is not None:
            flat = u.reshape(-1, self.layout.size).T
            u = solve_triangular(self._root, flat, lower=True, check_finite=False).T.reshape(
                u.shape
            )
            width += float(np.log(np.diagonal(self._root)).sum())
        squares = np.square(u).sum(axis=-1)
        log_density = -0.5 * (squares + self.layout.size * math.log(2 * math.pi)) - width
        # The Jacobian |d log(value) / d value| converts to the density of the values.
        return log_density - rows[..., self.layout.is_log].sum(axis=-1) if jacobian else log_density

    def _tree(self, rows: Rows, facts: Mapping[str, Any], *, seed: int) -> xr.DataTree:
        dims = schema.SAMPLE_DIMS
        values, logs = rows.copy(), self.layout.is_log
        values[..., logs] = np.exp(rows[..., logs])
        posterior = self.layout.to_dataset(values)
        log_q = self._log_density(rows, jacobian=False)
        stats = xr.Dataset({schema.LOG_Q: (dims, log_q)}, {dim: posterior[dim] for dim in dims})
        groups = {schema.POSTERIOR: posterior, schema.SAMPLE_STATS: stats, **self.data}
        tree = xr.DataTree.from_dict(groups)
        # Attributes that describe the run of the source do not apply to samples from the fit.
        kept = {k: v for k, v in self.attributes.items() if k not in schema.OF_A_RUN}
        tree.attrs = kept | {
            schema.METHOD: f"gaussian-{self.covariance}",
            schema.SEED: seed,
            schema.SETTINGS: schema.encode({**self.settings, **facts}),
            schema.GRADIENT_EVALUATIONS: 0,
        }
        return tree


@checks_arguments
def fit_gaussian(
    posterior: Posterior,
    covariance: str = "diagonal",
    *,
    shrinkage: float | None = None,
    var_names: str | Sequence[str] | None = None,
    positive: str | Sequence[str] = (),
) -> GaussianFit:
    """Fit one Gaussian to the draws of a posterior.

    Parameters
    ----------
    posterior : DataTree, or what ArviZ converts to one
        Draws (chain, draw, ...). Align them first if components are interchangeable. Computations use float64.
    covariance : {"diagonal", "full"}
        Fit only standard deviations, or also all correlations, shrunk towards 0.
    shrinkage : float, optional
        For "full", from 0 (none) to 1 (no correlations); by default as in Ledoit and Wolf. Variances are not shrunk.
    var_names : str or sequence of str, optional
        The variables to fit, in this order; by default all.
    positive : str or sequence of str
        Variables to fit as logarithms. A network's ``sigma`` is always fitted as a logarithm.

    Returns
    -------
    GaussianFit
        The Gaussian, with its moments, samples and log density.

    Raises
    ------
    TypeError
        If `posterior` is not a `DataTree`, and ArviZ cannot convert it.
    ValueError
        If an option or a variable is unknown; if there are fewer than 2 draws; if draws are not finite, constant, not
        positive although they should be, or constrained by the network's parametrisation; or if `shrinkage` is out of
        range or too small for the number of draws.

    References
    ----------
    Ledoit and Wolf 2004, A well-conditioned estimator for large-dimensional covariance matrices, Journal of
    Multivariate Analysis 88(2) (the default shrinkage of ``full``).

    Examples
    --------
    >>> fit = ob.approximations.fit_gaussian(ob.align(posterior).posterior, "full")
    >>> fit.mean["mu"].shape, fit.loc.shape
    ((2,), (3,))
    >>> fit.log_density(fit.sample(50, chains=2)).shape
    (2, 50)
    """
    choose("covariance", covariance, COVARIANCES)
    view = as_view(posterior)
    names = _names("var_names", var_names, list(view.variables))
    positive = _names("positive", positive, names)
    if (model := view.network) is not None:
        hidden = [layer for layer in model.network.layers if layer.hidden]
        bound = {layer.weight for layer in hidden if model.parametrisation.unit_norm}
        bound |= {layer.bias for layer in hidden if model.parametrisation.biases == "ordered"}
        fixed = [name for name in names if name in bound]
        if fixed:
            raise ArgumentError(
                f"The parametrisation of `posterior` ({model.parametrisation.label}) constrains {', '.join(fixed)} "
                "to unit norm or an ordering, so no Gaussian can represent these variables. Sample with the free "
                "parametrisation and align the draws, or exclude the variables with `var_names`."
            )
        if model.infers_noise and "sigma" in names:
            positive = list(dict.fromkeys([*positive, "sigma"]))
    drawn = {name: _floats(view.posterior[name], "posterior")[0, 0] for name in names}
    layout = VariableLayout(xr.Dataset(drawn).reset_coords(drop=True), tuple(positive))
    rows = _rows(view.posterior, layout)
    num_draws = rows.shape[0] * rows.shape[1]
    if shrinkage is not None and covariance != "full":
        raise ArgumentError(
            f"`shrinkage` is {shrinkage!r}, but covariance={covariance!r} has no correlations to shrink. Omit "
            "`shrinkage`, or use covariance='full'."
        )
    if shrinkage is not None and not 0 <= shrinkage <= 1:
        raise ArgumentError(
            f"`shrinkage` must be a number from 0 (no shrinkage) to 1 (no correlations); got {shrinkage!r}."
        )
    units = units_of(rows.reshape(1, num_draws, layout.size))
    z = units.into(rows.reshape(num_draws, layout.size))
    mean = z.mean(axis=0)
    z -= mean
    spread = np.sqrt(np.square(z).mean(axis=0))
    z /= spread
    correlation, used = None, None
    if covariance == "full":
        used = ledoit_wolf(z) if shrinkage is None else float(shrinkage)
        correlation = shrunk(z, used)
    settings: dict[str, Any] = {"covariance": covariance, "shrinkage": used}
    settings |= {"fitted_draws": num_draws, "positive": positive}
    return GaussianFit(
        covariance=covariance,
        layout=layout,
        loc=units.centre + units.unit * mean,
        scale=units.unit * spread * np.sqrt(num_draws / (num_draws - 1)),
        correlation=correlation,
        settings=settings,
        attributes={str(n): value for n, value in view.tree.attrs.items()},
        data={n: g for n in schema.DATA_GROUPS if (g := view.group(n)) is not None},
    )


def _names(argument: str, asked: str | Sequence[str] | None, there: list[str]) -> list[str]:
    """Return the requested names, or all names by default."""
    if asked is None:
        asked = there
    names = [asked] if isinstance(asked, str) else list(dict.fromkeys(asked))
    unknown = [name for name in names if name not in there]
    if unknown or (not names and argument == "var_names"):
        raise ArgumentError(
            f"`{argument}` names {', '.join(unknown) or 'no variables'}, but must name one or more of the available "
            f"variables: {', '.join(there) or 'none'}."
        )
    return names


def _rows(dataset: xr.Dataset, layout: VariableLayout) -> Rows:
    """Return the draws as rows. Reject fewer than 2 draws, and values for which there is no density."""
    values = layout.values(dataset, "posterior")
    if values.shape[0] * values.shape[1] < 2:
        raise ArgumentError(
            f"`posterior` has {values.shape[0] * values.shape[1]} draw(s), but a variance needs two: sample longer."
        )
    names = [entry for n in layout.template for entry in entry_names(dataset[n])]
    _refuse(
        ~np.isfinite(values), names, "that are not finite; find out why the model produces them"
    )
    _refuse(
        (values <= 0) & layout.is_log,
        names,
        "that are not positive, so they have no logarithm; remove the variable from `positive`",
    )
    rows = layout.take_logs(values)
    constant = np.flatnonzero(is_constant(rows))
    if constant.size:
        raise ArgumentError(
            f"`posterior` has {constant.size} constant parameter(s), such as {names[constant[0]]}, so the posterior "
            "has no density. Exclude the constant variables with `var_names`."
        )
    return rows


def _refuse(bad: np.ndarray, names: Sequence[str], what: str) -> None:
    if bad.any():
        chain, draw, param = (int(i) for i in np.argwhere(bad)[0])
        raise ArgumentError(
            f"`posterior` has {bad.sum()} value(s) {what}, or exclude the affected variables with `var_names`. The "
            f"first such value is in {names[param]} (chain {chain}, draw {draw})."
        )


def ledoit_wolf(z: Samples) -> float:
    """Compute the shrinkage of the correlation matrix of standardised draws (Ledoit and Wolf 2004).

    The draws of a chain are not independent, so this shrinkage tends to be too small.
    """
    num, size = z.shape
    inner = z @ z.T if num < size else z.T @ z
    total = float(np.square(inner / num).sum())  # Squared Frobenius norm of the correlation matrix.
    noise = (float(np.square(np.square(z).sum(axis=1)).mean()) - total) / num
    return 0.0 if noise <= 0 or total <= size else min(noise / (total - size), 1.0)


def shrunk(z: Samples, shrinkage: float) -> Matrix:
    """Return the shrunk correlation matrix of standardised draws. Reject a singular matrix."""
    num, size = z.shape
    found = (1 - shrinkage) * (z.T @ z / num) + shrinkage * np.eye(size)
    try:
        least = np.diagonal(np.linalg.cholesky(found)).min()
    except np.linalg.LinAlgError:
        least = 0.0
    if least**2 <= size * np.finfo(np.float64).eps:
        raise ArgumentError(
            f"The covariance is singular with shrinkage={shrinkage:.3g}, because the draws do not vary in some "
            "direction. Use more draws or a larger `shrinkage` (at most 1), or use `var_names` to exclude variables "
            "that are functions of others."
        )
    return found
