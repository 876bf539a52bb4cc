"""Leave-one-out cross-validation of a posterior, from its log likelihoods or from its model.

Observations whose Pareto k is too large are estimated again by moment matching, which is ArviZ's (Paananen, Piironen,
Bürkner and Vehtari 2021, Statistics and Computing 31(2)).
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from onebasin.analysis.compare.models import answered
from onebasin.analysis.diagnostics.diagnose import carried
from onebasin.base.checks import check_count, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError, WriteError
from onebasin.base.precision import precision
from onebasin.base.run_log import notice
from onebasin.models.target import Target
from onebasin.posteriors import schema
from onebasin.posteriors.leave_one_out import (
    LogLikelihood,
    at_once,
    chosen,
    efficiency,
    leave_one_out,
    leave_some_out,
    stored_log_likelihood,
    why_none,
)
from onebasin.posteriors.view import Posterior, View, as_view

from .models import Model, model_of

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData, ELPDDataLOO


BLOCK = 2**23  # Bytes of log likelihoods that are computed at once.
LARGE = 2**25  # Bytes of all log likelihoods from which on they are on disk.


class NumpyroTerms:
    """Log likelihoods and log density of a NumPyro model or a network, at many draws."""

    def __init__(self, target: Target) -> None:
        from ..density.counted import in_double
        from ..density.network import numpyro_density_of
        from ..runs.groups_numpyro import Sites

        with precision("float64"):
            density, sites = numpyro_density_of(target), Sites.of(target)
        if not sites.observed:
            raise ArgumentError(
                f"The model {target.name} observes no data, so that no observation can be left out."
            )
        self.names = density.names
        self._sums = target.is_network
        self._at = in_double(sites.log_likelihood)
        self._unconstrain = in_double(density.unconstrain)
        self.constrain = in_double(density.constrain)
        self.log_density = in_double(density.log_density)

    def at(self, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the log likelihoods (draw, obs...) at values (draw, ...), by the data that they are of."""
        terms: dict[str, np.ndarray] = self._at({name: values[name] for name in self.names})
        if self._sums:  # a network's observation is a row, whatever its outputs
            terms = {n: t.reshape(*t.shape[:2], -1).sum(axis=-1) for n, t in terms.items()}
        return terms

    def unconstrain(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the unconstrained vectors (draw, param) of values."""
        vectors: np.ndarray = self._unconstrain({name: values[name] for name in self.names})
        return vectors


class StanTerms:
    """The same of a Stan program that computes `log_lik`; methods are those of `NumpyroTerms`."""

    def __init__(self, target: Target, progress: Callable[[str], None] | None) -> None:
        from onebasin.stan.library import open_library
        from onebasin.stan.program import definition

        self._target, self._program = target, definition(target)
        self._library = open_library(self._program, progress=progress)
        self.names = tuple(self._library.variables())

    @cached_property
    def _own(self) -> dict[str, str]:
        from onebasin.stan.program import find_roles

        from ..runs.groups import arrays_of

        every = self._library.variables(include_tp=True, include_gq=True)
        shapes = {name: shape for name, shape in every.items() if name not in self.names}
        found = find_roles(self._program.roles, arrays_of(self._program.data), shapes)
        if not found.log_likelihood:
            raise ArgumentError(
                f"The program {self._target.name} does not compute the log likelihood of each observation: add a "
                "generated quantity `log_lik`, or name yours by `stan_program(..., log_likelihood=...)`."
            )
        return found.log_likelihood

    def at(self, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the log likelihoods (draw, obs...) at values (draw, ...), by the data that they are of."""
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
        """Return the log density (draw,) of unconstrained vectors, up to one constant."""
        return np.asarray(self._library.log_density(vectors))


Terms = NumpyroTerms | StanTerms


def terms_of(target: Target, progress: Callable[[str], None] | None = None) -> Terms:
    """Return the log likelihoods of a target, by its NumPyro model where it has one."""
    if target.numpyro_model is not None:
        return NumpyroTerms(target)
    return StanTerms(target, progress)


@contextmanager
def computed_terms(
    terms: Terms, draws: Mapping[str, np.ndarray], var_name: str | None
) -> Iterator[LogLikelihood]:
    """Compute the log likelihoods (nats) of one variable at all draws; on disk meanwhile where they are many.

    `draws` are the variables of the model, arrays (chain, draw, ...); `var_name` is the data whose log likelihoods are
    meant, the only ones by default. The result is valid inside the context.
    """
    if lost := [name for name in terms.names if name not in draws]:
        raise ArgumentError(
            f"`posterior` lacks {', '.join(lost)} of the model; give a posterior of this model."
        )
    size = next(iter(draws[name] for name in terms.names)).shape[:2]
    flat = {name: draws[name].reshape(-1, *draws[name].shape[2:]) for name in terms.names}
    found = terms.at({name: values[:1] for name, values in flat.items()})
    one = chosen(found, var_name)[0]
    name = var_name or next(iter(found))
    axes = tuple(f"{name}_dim_{place}" for place in range(one.ndim))
    samples = int(np.prod(size))
    step = min(samples, max(1, BLOCK // max(one.nbytes, 1)))
    with closing(_Columns(samples, one.size)) as columns:
        for first in range(0, samples, step):
            # The last block begins earlier rather than to be shorter: another length would be compiled again.
            first = min(first, samples - step)
            part = {n: values[first : first + step] for n, values in flat.items()}
            columns.put(first, terms.at(part)[name].reshape(step, -1))
        like = xr.DataArray(one, dims=axes, name=name)

        def read(first: int, last: int) -> np.ndarray:
            return columns.read(first, last).reshape(*size, -1)

        yield LogLikelihood(name, size, like, read).seen(one)


class _Columns:
    """A matrix that is written some rows at a time and read some columns at a time; on disk where it is large."""

    def __init__(self, rows: int, columns: int) -> None:
        self._rows, self._columns = rows, columns
        self._file = tempfile.SpooledTemporaryFile(max_size=LARGE)  # noqa: SIM115 - closed by `close`
        width = at_once(rows)
        self._firsts = range(0, columns, width)
        self._width = width

    def close(self) -> None:
        """Remove it."""
        self._file.close()

    def put(self, first: int, values: np.ndarray) -> None:
        """Write rows from `first` on."""
        try:
            for start in self._firsts:
                part = values[:, start : start + self._width]
                self._file.seek(8 * (self._rows * start + first * part.shape[1]))
                self._file.write(np.ascontiguousarray(part, np.float64).data)
        except OSError as error:
            folder = Path(tempfile.gettempdir())
            raise WriteError(
                folder,
                f"{folder} has no room for {8 * self._rows * self._columns / 1e9:.1f} GB of log likelihoods "
                f"({error.strerror}); set TMPDIR to a folder on another disk.",
            ) from error

    def read(self, first: int, last: int) -> np.ndarray:
        """Read columns from `first` to before `last`."""
        parts = []
        for start in self._firsts[first // self._width : -(-last // self._width)]:
            count = min(self._width, self._columns - start)
            self._file.seek(8 * self._rows * start)
            block = np.frombuffer(self._file.read(8 * self._rows * count)).reshape(self._rows, -1)
            parts.append(block[:, max(first - start, 0) : last - start])
        return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]


def matched(
    view: View, terms: Terms, log_likelihood: LogLikelihood, found: ELPDDataLOO
) -> ELPDDataLOO:
    """Estimate observations of large Pareto k at draws that are moved to the posterior without each of them.

    Return them with other `elpd_i` and `pareto_k` where Pareto k has become smaller, and no `log_weights`.
    """
    from arviz_stats import loo, loo_moment_match

    shape = (view.num_chains, view.num_draws)
    if log_likelihood.draws != shape:
        notice("moment matching is left out: the group `log_likelihood` holds some of the draws")
        return found
    bad = np.flatnonzero(found.pareto_k.values.ravel() > found.good_k)
    places = bad if log_likelihood.places is None else log_likelihood.places[bad]
    own = np.concatenate([log_likelihood.read(i, i + 1) for i in bad.tolist()], axis=2)
    data = xr.DataTree.from_dict(
        {schema.LOG_LIKELIHOOD: xr.Dataset({"y": ((*schema.SAMPLE_DIMS, "obs"), own)})}
    )
    draws = {name: view.values(name) for name in terms.names}
    vectors = terms.unconstrain({n: v.reshape(-1, *v.shape[2:]) for n, v in draws.items()})
    relative = efficiency(view.posterior, vectors.shape[0])

    def log_density(moved: xr.DataArray) -> xr.DataArray:
        return _as_draws(terms.log_density(_rows(moved)), shape)

    def one(moved: xr.DataArray, i: np.integer) -> xr.DataArray:
        values = terms.at(terms.constrain(_rows(moved)))[log_likelihood.name]
        return _as_draws(values.reshape(len(values), -1)[:, places[i]], shape)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large k, which the caller reports
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
    """Refuse a model whose log likelihoods at the first draw are not the `stored` ones (chain, draw, obs...)."""
    if stored.shape[:2] != (view.num_chains, view.num_draws):
        return
    computed = terms.at({name: view.values(name)[:1, 0] for name in terms.names})
    ours = computed.get(str(stored.name), next(iter(computed.values()))).ravel()
    theirs = stored[0, 0].values.ravel()
    if ours.shape == theirs.shape and np.allclose(
        ours, theirs, rtol=1e-3, atol=1e-3, equal_nan=True
    ):
        return
    sums = f"{theirs.sum():.6g} over {theirs.size} observations, and {ours.sum():.6g} over {ours.size} by `model`"
    raise ArgumentError(
        f"`model` is not the model of the recorded log likelihoods: at the first draw they are {sums}. Leave "
        "`model` out to use the recorded ones, or give the model and the data of this posterior."
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
    observations: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
    diagnosis: Any = None,
) -> ELPDData:
    """Estimate how well a model predicts each observation that is left out, by Pareto-smoothed importance sampling.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        A posterior, in any form that `ob.diagnose` takes. Log likelihoods come from its group `log_likelihood`; where
        it has none, they are computed from the model, on disk where they are many.
    model : Target, callable, path or str, optional
        The model, as of `ob.predict`. Needed where the group is missing, but of networks; and for moment matching.
        It has to give the log likelihoods that the group has.
    var_name : str, optional
        The observed variable, where there are several.
    moment_match : bool
        Whether observations whose Pareto k is too large are estimated again by moment matching, if `model` is given.
    observations : int, optional
        Compute importance weights of so many randomly chosen observations alone, and correct the log predictive
        density of all by them.
    seed : int
        Of that choice.
    progress : callable, optional
        Called with a line of text before something that takes long.
    diagnosis : Diagnosis, optional
        What `ob.diagnose` returned of this posterior, if it is at hand; else it is made here.

    Returns
    -------
    arviz_stats.ELPDData
        In nats, as of `arviz_stats.loo`, `loo_moment_match` or `loo_subsample` with ``pointwise=True``: `elpd`, `se`,
        `p`, `elpd_i` and `pareto_k` (obs...). What ArviZ does with these, such as `az.compare` and `az.plot_khat`, it
        does with this. It also has an `answer`, ``usable``, ``partly`` (a Pareto k is too large) or ``unusable`` (the
        posterior is), and `sentences` that say why. Observations that are masked, with a log likelihood of 0 in every
        draw, are left out, so that `elpd_i` has only the others.

    Raises
    ------
    ValueError
        If there are no log likelihoods and no model, they are not finite or another model's, or `observations` are
        more than there are.
    TypeError
        If an argument is of another class.

    References
    ----------
    Vehtari, Gelman and Gabry 2017, Statistics and Computing 27. Paananen, Piironen, Bürkner and Vehtari 2021,
    Statistics and Computing 31(2). Magnusson, Vehtari, Jonasson and Andersen 2020, AISTATS.

    Examples
    --------
    >>> found = ob.loo(posterior)
    >>> found.elpd_i.sizes
    Frozen({'obs': 40})
    """
    view = as_view(posterior)
    check_seed(seed)
    if observations is not None:
        check_count("observations", observations, least=2)
    stored = stored_log_likelihood(view, var_name)
    terms = None if model is None and stored is not None else _terms(view, model, progress)
    if stored is not None:
        if terms is not None:
            _check_same(terms, view, stored)
        source: Any = nullcontext(LogLikelihood.of(stored))
    else:
        assert terms is not None
        source = computed_terms(terms, {n: view.values(n) for n in view.variables}, var_name)
    with source as log_likelihood:
        if observations is not None:
            if observations > (total := log_likelihood.count):
                raise ArgumentError(
                    f"`observations` is {observations}, and there are {total}: ask for fewer."
                )
            some = np.random.default_rng(seed).choice(total, observations, replace=False)
            found: Any = leave_some_out(log_likelihood, view.posterior, np.sort(some))
        else:
            found = leave_one_out(log_likelihood, view.posterior)
            few = bool((found.pareto_k > found.good_k).any())
            if few and terms is not None and model is not None and moment_match:
                found = matched(view, terms, log_likelihood, found)
    judged = carried(view, diagnosis, "estimates", label_free=True)
    remedy = "Give `model` (`--program` of the command) for moment matching." * (model is None)
    return answered(found, log_likelihood, judged, remedy)


def _terms(view: View, model: Model, progress: Callable[[str], None] | None) -> Terms:
    try:
        return terms_of(model_of(view, model, {}), progress)
    except ArgumentError as error:
        if model is not None:
            raise
        raise ArgumentError(
            f"{why_none(view)}, and {str(error)[0].lower()}{str(error)[1:]}"
        ) from error
