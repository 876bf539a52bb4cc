"""Quantities that a symmetry leaves alone: what can be judged without any alignment.

For every variable of an `Exchangeable` block the mean over its parts (where no sign flips) and the mean square over its
parts; for two variables of a block their covariance over the parts, which knows what belongs to what, as moments of one
variable at a time do not; for a whole variable that changes sign its mean without the sign and its mean square; for a
complemented weight its distance from one half; a network's outputs on its training inputs; and `lp`. They converge
where the posterior does, whatever the labels did.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.models import schema
from onebasin.models.networks.prediction import predict, predict_with_noise
from onebasin.models.symmetry.blocks import Block, Symmetry, axes_of, equal_modes

from ..posterior.draws import Draws, entry_names
from ..posterior.units import power_of_two
from ..posterior.view import Posterior, View, as_view

_LEAST = 1e-100
MAX_OUTPUTS = 50
"""Training inputs at which a network's outputs are looked at, evenly spread over the data set."""


def invariants(posterior: Posterior, symmetry: Symmetry) -> Draws:
    """Compute quantities that no element of the symmetry's group changes.

    Parameters
    ----------
    posterior
        The posterior; the groups `sample_stats` and, for a network, `constant_data` are used if there.
    symmetry
        What is left alone. Positive scalings change `lp`, which holds the prior, and mean squares, so
        that a block of a network that can be rescaled contributes its outputs alone.

    Returns
    -------
    Draws
        `lp`, ``mean(mu)``, ``mean(mu^2)``, ``cov(mu,sigma)``, ``|theta - 1/2|``, ``output[obs,out]`` and, where a
        network predicts its noise, ``noise_sd[obs,out]``; without those that are not there. May be empty.
    """
    names: list[str] = []
    columns: list[Float[np.ndarray, "chain draw param"]] = []

    def add(label: str, values: np.ndarray, labels: list[str] | None = None) -> None:
        flat = values.reshape(*values.shape[:2], -1)
        columns.append(flat)
        names.extend(labels or ([label] if flat.shape[2] == 1 else _numbered(label, flat.shape[2])))

    view = as_view(posterior)
    if (lp := view.stat(schema.LP)) is not None:
        add(schema.LP, lp)
    outputs = _outputs(view)
    for name, values in outputs.items():
        variable = xr.DataArray(values, dims=(*schema.SAMPLE_DIMS, "obs", "out"), name=name)
        add(name, values, list(entry_names(variable)))
    if not outputs:
        for block in equal_modes(symmetry):
            for label, values in _of_block(block, view):
                add(label, values)
    if not columns:
        return Draws((), np.empty((view.num_chains, view.num_draws, 0)))
    return Draws(tuple(names), np.concatenate(columns, axis=-1))


def _numbered(label: str, count: int) -> list[str]:
    return [f"{label}[{number}]" for number in range(count)]


def _of_block(block: Block, view: View) -> list[tuple[str, np.ndarray]]:
    quantities: list[tuple[str, np.ndarray]] = []
    for name, places in block.axes.items():
        values = _values(view, name)
        axes = tuple(axis + 2 for axis in axes_of(places))
        if name not in block.flipped:
            quantities.append((f"mean({name})", values.mean(axis=axes)))
        quantities.append(_mean_square(name, values, axes))
    quantities += _of_pairs(block, view)
    for name in (name for name in block.flipped if name not in block.axes):
        quantities += _of_whole(name, _values(view, name))
    for name in block.complemented:
        quantities.append((f"|{name} - 1/2|", np.abs(_values(view, name) - 0.5)))
    return quantities


def _of_pairs(block: Block, view: View) -> list[tuple[str, np.ndarray]]:
    """What belongs to what: covariances over the parts of two variables, each a number a part."""
    single = [name for name, places in block.axes.items() if len(axes_of(places)) == 1]
    found = []
    for first, second in combinations(single, 2):
        # Signs that change together leave a product as it is; one alone is squared away.
        alone = {first, second} & set(block.flipped)
        alone = alone if len(alone) == 1 else set()
        a, b = (_by_part(view, block, name, squared=name in alone) for name in (first, second))
        if first not in block.flipped or alone:
            a = a - a.mean(axis=-1, keepdims=True)
        words = ",".join(f"{name}^2" if name in alone else name for name in (first, second))
        found.append((f"cov({words})", (a * b).mean(axis=-1)))
    weights = [name for name in block.complemented if _values(view, name).ndim == 2]
    for name, weight in product([n for n in single if n not in block.flipped], weights):
        parts = _by_part(view, block, name, squared=False)
        apart = (parts[..., 0] - parts[..., 1]) * (_values(view, weight) - 0.5)
        found.append((f"cov({name},{weight})", apart))
    return found


def _by_part(
    view: View, block: Block, name: str, *, squared: bool
) -> Float[np.ndarray, "chain draw part"]:
    """The mean (square) of each part's entries of a variable, in a unit in which products are doubles."""
    (axis,) = axes_of(block.axes[name])
    values = np.moveaxis(_values(view, name), axis + 2, 2)
    values = values / float(power_of_two(np.asarray(np.abs(values).max(initial=0.0))))
    flat = values.reshape(*values.shape[:3], -1)
    return (flat**2 if squared else flat).mean(axis=-1)


def _of_whole(name: str, values: np.ndarray) -> list[tuple[str, np.ndarray]]:
    if values.ndim == 2:
        return [(f"|{name}|", np.abs(values))]
    axes = tuple(range(2, values.ndim))
    return [(f"|mean({name})|", np.abs(values.mean(axis=axes))), _mean_square(name, values, axes)]


def _mean_square(name: str, values: np.ndarray, axes: tuple[int, ...]) -> tuple[str, np.ndarray]:
    """Mean squares, which are in another unit where squares would be no doubles."""
    largest = np.abs(values).max(initial=0.0)
    if largest == 0 or _LEAST <= largest <= 1 / _LEAST:
        return f"mean({name}^2)", (values**2).mean(axis=axes)
    unit = float(power_of_two(np.asarray(largest)))
    return f"mean(({name} / {unit:.3g})^2)", ((values / unit) ** 2).mean(axis=axes)


def _values(view: View, name: str) -> np.ndarray:
    return np.asarray(view.values(name), dtype=np.float64)


def _outputs(view: View) -> dict[str, np.ndarray]:
    x, model = view.x, view.network
    if x is None or model is None:
        return {}
    chosen = np.linspace(0, len(x) - 1, min(len(x), MAX_OUTPUTS)).astype(int)
    weights = {name: _values(view, name) for name in model.network.shapes}
    if not model.predicts_noise:
        return {"output": np.asarray(predict(model, weights, x[chosen]), dtype=np.float64)}
    mean, sd = predict_with_noise(model, weights, x[chosen])
    return {"output": np.asarray(mean, np.float64), "noise_sd": np.asarray(sd, np.float64)}
