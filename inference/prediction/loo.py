"""Leave-one-out cross-validation of a posterior from its log likelihoods, or from those that its model gives.

Observations whose Pareto k is too large are estimated again by moment matching, implemented in ArviZ (Paananen,
Piironen, Bürkner and Vehtari 2021, Statistics and Computing 31(2)).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from onebasin.analysis.compare.models import answered
from onebasin.analysis.diagnostics.diagnose import carried
from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.run_log import notice
from onebasin.posteriors import schema
from onebasin.posteriors.leave_one_out import (
    efficiency,
    leave_one_out,
    no_log_likelihood,
    stored_log_likelihood,
)
from onebasin.posteriors.view import Posterior, View, as_view

from .models import Model, model_of

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData, ELPDDataLOO


from collections.abc import Mapping
from functools import cached_property

from onebasin.base.precision import precision
from onebasin.models.target import Target
from onebasin.posteriors.leave_one_out import chosen
from onebasin.posteriors.schema import SAMPLE_DIMS


def matched(
    view: View, terms: Terms, log_likelihood: xr.DataArray, found: ELPDDataLOO
) -> ELPDDataLOO:
    """Estimate observations with a large Pareto k from draws that are moved to the posterior without the observation.

    Return the result with new `elpd_i` and `pareto_k` where Pareto k became smaller, and without `log_weights`.
    """
    from arviz_stats import loo, loo_moment_match

    shape = (view.num_chains, view.num_draws)
    if log_likelihood.shape[:2] != shape:
        notice(
            "moment matching is skipped, because the group `log_likelihood` has only some of the draws"
        )
        return found
    bad = np.flatnonzero(found.pareto_k.values.ravel() > found.good_k)
    every = log_likelihood.values.reshape(*shape, -1)
    places = np.flatnonzero((every != 0).any(axis=(0, 1)))[bad]  # the other observations are masked
    own = every[..., places]
    held = xr.Dataset({"y": ((*schema.SAMPLE_DIMS, "obs"), own)})
    data = xr.DataTree.from_dict({schema.LOG_LIKELIHOOD: held})
    draws = {name: view.values(name) for name in terms.names}
    vectors = terms.unconstrain({n: v.reshape(-1, *v.shape[2:]) for n, v in draws.items()})
    relative = efficiency(view.posterior, vectors.shape[0])

    def log_density(moved: xr.DataArray) -> xr.DataArray:
        return _as_draws(terms.log_density(_rows(moved)), shape)

    def one(moved: xr.DataArray, i: np.integer) -> xr.DataArray:
        values = terms.at(terms.constrain(_rows(moved)))[str(log_likelihood.name)]
        return _as_draws(values.reshape(len(values), -1)[:, places[i]], shape)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ignore warnings about large k, which the caller reports.
        again = loo_moment_match(
            data,
            loo(data, pointwise=True, reff=relative),
            log_prob_upars_fn=log_density,
            log_lik_i_upars_fn=one,
            upars=xr.DataArray(vectors.reshape(*shape, -1), dims=(*schema.SAMPLE_DIMS, "param")),
            reff=relative,
            pointwise=True,
        )
    elpd_i, pareto_k = found.elpd_i.copy(), found.pareto_k.copy()
    for of, better in ((elpd_i, again.elpd_i), (pareto_k, again.pareto_k)):
        np.put(of.values, bad, better.values)
    elpd = float(elpd_i.sum())
    changed: dict[str, Any] = dict.fromkeys(("log_weights", "p_loo_i"))
    return replace(
        found,
        **changed,
        elpd=elpd,
        se=float(np.sqrt(elpd_i.size * np.var(elpd_i.values, ddof=1))),
        p=found.p + found.elpd - elpd,
        warning=bool((pareto_k > found.good_k).any()),
        elpd_i=elpd_i,
        pareto_k=pareto_k,
        influence_pareto_k=found.pareto_k,
    )


def _check_same(terms: Terms, view: View, stored: xr.DataArray) -> None:
    """Reject a model whose log likelihoods at the first draw differ from the `stored` ones (chain, draw, obs...)."""
    if stored.shape[:2] != (view.num_chains, view.num_draws):
        return
    computed = terms.at({name: view.values(name)[:1, 0] for name in terms.names})
    ours = computed.get(str(stored.name), next(iter(computed.values()))).ravel()
    theirs = stored[0, 0].values.ravel()
    if ours.shape == theirs.shape and np.allclose(ours, theirs, 1e-3, 1e-3, equal_nan=True):
        return
    raise ArgumentError(
        "`model` does not match this posterior. At the first draw, the log likelihood of the model is "
        f"{ours.sum():.6g} (observations: {ours.size}), but the stored one is {theirs.sum():.6g} (observations: "
        f"{theirs.size}). Omit `model` to use the stored log likelihoods, or give the model and the data of this "
        "posterior."
    )


def _rows(moved: xr.DataArray) -> np.ndarray:
    values = moved.transpose(*schema.SAMPLE_DIMS, "param").values
    return values.reshape(-1, values.shape[-1])


def _as_draws(values: np.ndarray, shape: tuple[int, int]) -> xr.DataArray:
    return xr.DataArray(values.reshape(shape), dims=schema.SAMPLE_DIMS)


@checks_arguments
def loo(
    posterior: Posterior,
    *,
    model: Model = None,
    var_name: str | None = None,
    moment_match: bool = True,
    progress: Callable[[str], None] | None = None,
    diagnosis: Any = None,
) -> ELPDData:
    """Estimate how well a model predicts each observation if it is left out, by Pareto-smoothed importance sampling.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        A posterior, in any form that `ob.diagnose` takes. Log likelihoods come from its group `log_likelihood`; if
        that is missing, they are computed from the model.
    model : Target, callable, path or str, optional
        The model, as in `ob.predict`. It is needed for moment matching, and if the group is missing (except for
        networks). It must give the same log likelihoods as the group.
    var_name : str, optional
        The observed variable, if there are several.
    moment_match : bool
        Whether to use moment matching for observations whose Pareto k is too large, if `model` is given.
    progress : callable, optional
        Called with a line of text before a long computation.
    diagnosis : Diagnosis, optional
        The result of `ob.diagnose` for this posterior, if you have it; otherwise it is computed here.

    Returns
    -------
    arviz_stats.ELPDData
        The result of `arviz_stats.loo` or `loo_moment_match` with ``pointwise=True``, in nats: `elpd`, `se`, `p`,
        `elpd_i` and `pareto_k` (obs...). `az.compare` and `az.plot_khat` accept it. Its `answer` is ``usable``,
        ``partly`` (a Pareto k is too large) or ``unusable`` (the posterior is unusable), and its `sentences` explain
        why. Masked observations, with a log likelihood of 0 in every draw, are left out of `elpd_i`.

    Raises
    ------
    ValueError
        If there are no log likelihoods and no model, or if log likelihoods are not finite or come from another model.
    TypeError
        If an argument has the wrong type.

    References
    ----------
    Vehtari, Gelman and Gabry 2017, Statistics and Computing 27. Paananen, Piironen, Bürkner and Vehtari 2021,
    Statistics and Computing 31(2).

    Examples
    --------
    >>> found = ob.loo(posterior)
    >>> found.elpd_i.sizes
    Frozen({'obs': 40})
    """
    view = as_view(posterior)
    stored = stored_log_likelihood(view, var_name)
    terms = None if model is None and stored is not None else _terms(view, model, progress)
    if stored is None:
        assert terms is not None
        draws = {name: view.values(name) for name in view.variables}
        log_likelihood = computed_terms(terms, draws, var_name)
    else:
        log_likelihood = stored
        if terms is not None:
            _check_same(terms, view, stored)
    found = leave_one_out(log_likelihood, view.posterior)
    few = bool((found.pareto_k > found.good_k).any())
    if few and terms is not None and model is not None and moment_match:
        found = matched(view, terms, log_likelihood, found)
    judged = carried(view, diagnosis, "estimates", label_free=True)
    remedy = "Give `model` (`--program` on the command line) for moment matching." * (model is None)
    return answered(found, log_likelihood, judged, remedy)


def _terms(view: View, model: Model, progress: Callable[[str], None] | None) -> Terms:
    try:
        return terms_of(model_of(view, model, {}), progress)
    except ArgumentError as error:
        if model is not None:
            raise
        raise no_log_likelihood(view, f"{str(error)[0].lower()}{str(error)[1:]}") from error


BLOCK = 2**23  # Maximum bytes of log likelihoods computed at once.


class NumpyroTerms:
    """Log likelihoods and log density of a NumPyro model or a network at many draws."""

    def __init__(self, target: Target) -> None:
        from ..density.network import in_double, numpyro_density_of
        from ..runs.groups_numpyro import Sites

        with precision("float64"):
            density, sites = numpyro_density_of(target), Sites.of(target)
        if not sites.observed:
            raise ArgumentError(
                f"The model {target.name!r} has no observed data that could be left out. Give a model with observed "
                "data."
            )
        self.names = density.names
        self._sums = target.is_network
        self._at = in_double(sites.log_likelihood)
        self._unconstrain = in_double(density.unconstrain)
        self.constrain = in_double(density.constrain)
        self.log_density = in_double(density.log_density)

    def at(self, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the log likelihoods (draw, obs...) of each data variable at values (draw, ...)."""
        terms: dict[str, np.ndarray] = self._at({name: values[name] for name in self.names})
        if self._sums:  # An observation of a network is one row with all outputs.
            terms = {n: t.reshape(*t.shape[:2], -1).sum(axis=-1) for n, t in terms.items()}
        return terms

    def unconstrain(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the unconstrained vectors (draw, param) of values."""
        vectors: np.ndarray = self._unconstrain({name: values[name] for name in self.names})
        return vectors


class StanTerms:
    """Log likelihoods and log density of a Stan program that computes `log_lik`."""

    def __init__(self, target: Target, progress: Callable[[str], None] | None) -> None:
        from onebasin.stan.library import open_library
        from onebasin.stan.program import definition

        self._target, self._program = target, definition(target)
        self._library = open_library(self._program, progress=progress)
        self.names = tuple(self._library.variables())

    @cached_property
    def _own(self) -> dict[str, str]:
        from onebasin.stan.program import find_roles

        from ..runs.posterior import arrays_of

        every = self._library.variables(include_tp=True, include_gq=True)
        shapes = {name: shape for name, shape in every.items() if name not in self.names}
        found = find_roles(self._program.roles, arrays_of(self._program.data), shapes)
        if not found.log_likelihood:
            raise ArgumentError(
                f"The program {self._target.name!r} does not compute the log likelihood of each observation. Add a "
                "generated quantity `log_lik`, or name an existing one with `stan_program(..., log_likelihood=...)`."
            )
        return found.log_likelihood

    def at(self, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the log likelihoods (draw, obs...) of each data variable at values (draw, ...)."""
        rows = self._library.constrain(self.unconstrain(values), include_tp=True, include_gq=True)
        found = self._library.unpack(rows, include_tp=True, include_gq=True)
        return {of: found[own] for of, own in self._own.items()}

    def unconstrain(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the unconstrained vectors (draw, param) of values."""
        return self._library.unconstrain(self._library.pack({n: values[n] for n in self.names}))

    def constrain(self, vectors: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values (draw, ...) of unconstrained vectors."""
        return self._library.unpack(self._library.constrain(vectors))

    def log_density(self, vectors: np.ndarray) -> np.ndarray:
        """Return the log density (draw,) of unconstrained vectors, up to a constant."""
        return np.asarray(self._library.log_density(vectors))


Terms = NumpyroTerms | StanTerms


def terms_of(target: Target, progress: Callable[[str], None] | None = None) -> Terms:
    """Return the object that computes a target's log likelihoods, from its NumPyro model if it has one."""
    if target.numpyro_model is not None:
        return NumpyroTerms(target)
    return StanTerms(target, progress)


def computed_terms(
    terms: Terms, draws: Mapping[str, np.ndarray], var_name: str | None
) -> xr.DataArray:
    """Compute the log likelihoods (nats) of one data variable at all draws, in blocks.

    `draws` are arrays (chain, draw, ...) of the model's variables. `var_name` may be None if the model has only one
    data variable.
    """
    if lost := [name for name in terms.names if name not in draws]:
        raise ArgumentError(
            f"`posterior` lacks the variable(s) {', '.join(lost)}, which the model needs. Give a posterior of this "
            "model."
        )
    size = next(iter(draws[name] for name in terms.names)).shape[:2]
    flat = {name: draws[name].reshape(-1, *draws[name].shape[2:]) for name in terms.names}
    found = terms.at({name: values[:1] for name, values in flat.items()})
    one, name = chosen(found, var_name)[0], var_name or next(iter(found))
    samples = int(np.prod(size))
    step = min(samples, max(1, BLOCK // max(one.nbytes, 1)))
    every = np.empty((samples, *one.shape))
    for first in range(0, samples, step):
        # All blocks have the same length, because JAX would compile again for every other length.
        first = min(first, samples - step)
        part = {n: values[first : first + step] for n, values in flat.items()}
        every[first : first + step] = terms.at(part)[name]
    axes = (*SAMPLE_DIMS, *(f"{name}_dim_{place}" for place in range(one.ndim)))
    return xr.DataArray(every.reshape(*size, *one.shape), dims=axes, name=name)
