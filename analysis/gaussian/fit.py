"""Fit one Gaussian to a posterior by its moments.

Xiao, Liu and Bamler 2023 ("A compact representation for Bayesian neural networks by removing permutation symmetry")
summarise HMC draws by one diagonal Gaussian after alignment; here the covariance may also be full.

The fit uses the coordinates of the draws, with chains pooled. Positive scalings of a network's units are divided out
before, by `analysis.alignment.align` with gauge "balanced" or "unit" (the canonical parametrisation), but not with
gauge "keep". `GaussianFit.gauge` records it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.checks import checks_arguments, choose
from onebasin.base.errors import ArgumentError
from onebasin.posteriors import schema
from onebasin.posteriors.draws import entry_names
from onebasin.posteriors.view import Posterior, as_view

from ..summaries.summary import is_constant, units_of
from .gaussian import GaussianFit, Rows, VariableLayout, layout_of

COVARIANCES = ("diagonal", "full")
Samples = Float[np.ndarray, "sample param"]
Matrix = Float[np.ndarray, "param param_bis"]


@checks_arguments
def fit_gaussian(
    posterior: Posterior,
    covariance: str = "diagonal",
    *,
    shrinkage: float | None = None,
    var_names: str | Sequence[str] | None = None,
    positive: str | Sequence[str] = (),
) -> GaussianFit:
    """Fit one Gaussian to a posterior's draws.

    Parameters
    ----------
    posterior : DataTree, or what ArviZ converts to one
        Draws (chain, draw, ...), aligned if components are interchangeable. Computed in float64.
    covariance : {"diagonal", "full"}
        Standard deviations alone, or with all correlations, shrunk towards 0.
    shrinkage : float, optional
        From 0 (none) to 1 (no correlations), for "full"; by default that of Ledoit and Wolf. Variances are not shrunk.
    var_names : str or sequence of str, optional
        The variables, in this order; by default all.
    positive : str or sequence of str
        Variables to be fitted as logarithms; a network's ``sigma`` always is.

    Returns
    -------
    GaussianFit
        The Gaussian, with its moments, samples and log density.

    Raises
    ------
    TypeError
        If `posterior` is not a `DataTree`, and ArviZ cannot convert it.
    ValueError
        If a word or a variable is unknown; draws are fewer than 2, not finite, constant, not positive although they
        should be, or constrained by the network's parametrisation; or `shrinkage` is out of range, or too small for
        the number of draws.

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
                f"`posterior` uses the parametrisation {model.parametrisation.label}, in which {', '.join(fixed)} "
                "have unit norm or an order, so a Gaussian cannot represent them. Sample the free parametrisation "
                "and align it, or leave them out with `var_names`."
            )
        if model.infers_noise and "sigma" in names:
            positive = list(dict.fromkeys([*positive, "sigma"]))
    layout = layout_of(view.posterior, names, positive)
    rows = _rows(view.posterior, layout)
    num_draws = rows.shape[0] * rows.shape[1]
    if shrinkage is not None and covariance != "full":
        raise ArgumentError(
            f"`shrinkage` is {shrinkage!r}, but {covariance!r} has no correlations to shrink; leave it None, or take "
            "'full'."
        )
    if shrinkage is not None and not 0 <= shrinkage <= 1:
        raise ArgumentError(
            f"`shrinkage` is {shrinkage!r}; it must lie between 0 (none) and 1 (the diagonal alone)."
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
    settings = {"covariance": covariance, "shrinkage": used}
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
    """Return the requested names, by default all of them."""
    if asked is None:
        asked = there
    names = [asked] if isinstance(asked, str) else list(dict.fromkeys(asked))
    unknown = [name for name in names if name not in there]
    if unknown or (not names and argument == "var_names"):
        raise ArgumentError(
            f"`{argument}` names {', '.join(unknown) or 'no variables'}; choose among {', '.join(there) or 'none'}."
        )
    return names


def _rows(dataset: xr.Dataset, layout: VariableLayout) -> Rows:
    """Return the draws as rows; reject fewer than 2, and values without a density."""
    values = layout.values(dataset, "posterior")
    if values.shape[0] * values.shape[1] < 2:
        raise ArgumentError(
            f"`posterior` has {values.shape[0] * values.shape[1]} draw(s); a variance needs at least 2."
        )
    names = [entry for v in layout.variables for entry in entry_names(dataset[v.name])]
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
            f"`posterior` has {constant.size} constant parameter(s), such as {names[constant[0]]}, so there is no "
            "density. Leave the variable out with `var_names`."
        )
    return rows


def _refuse(bad: np.ndarray, names: Sequence[str], what: str) -> None:
    if bad.any():
        chain, draw, param = (int(i) for i in np.argwhere(bad)[0])
        raise ArgumentError(
            f"`posterior` has {bad.sum()} value(s) {what}, or leave the variable out with `var_names`. First: "
            f"{names[param]} in chain {chain}, draw {draw}."
        )


def ledoit_wolf(z: Samples) -> float:
    """Return the shrinkage of the correlation matrix of standardised draws (Ledoit and Wolf 2004).

    Draws of a chain are not independent, so the shrinkage is rather too small.
    """
    num, size = z.shape
    inner = z @ z.T if num < size else z.T @ z
    total = float(np.square(inner / num).sum())  # squared Frobenius norm of the correlation matrix
    noise = (float(np.square(np.square(z).sum(axis=1)).mean()) - total) / num
    return 0.0 if noise <= 0 or total <= size else min(noise / (total - size), 1.0)


def shrunk(z: Samples, shrinkage: float) -> Matrix:
    """Return the correlation matrix of standardised draws, shrunk; reject one that is singular."""
    num, size = z.shape
    found = (1 - shrinkage) * (z.T @ z / num) + shrinkage * np.eye(size)
    try:
        least = np.diagonal(np.linalg.cholesky(found)).min()
    except np.linalg.LinAlgError:
        least = 0.0
    if least**2 <= size * np.finfo(np.float64).eps:
        raise ArgumentError(
            f"`shrinkage` is {shrinkage:.3g}, which makes the covariance singular: the draws do not vary in some "
            "direction. Give a larger value, up to 1, or more draws; or leave out variables that follow from others "
            "with `var_names`."
        )
    return found
