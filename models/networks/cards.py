"""Networks in words: their layers, what is inferred, and the copies that their symmetry makes of every mode."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onebasin.base.card import Card, Facts, Words

from ..symmetry.telling import copies, in_words

if TYPE_CHECKING:
    from .architecture import Network
    from .bayesian import BayesianNetwork


def in_layers(network: Network) -> str:
    """Give units of every layer and the activation: ``2-10-1 (tanh)``."""
    skip = ", with skips" if network.skip else ""
    heads = ", means and noise" if network.heads > 1 else ""
    return f"{'-'.join(map(str, network.widths))} ({network.activation}{skip}{heads})"


def of_network(model: BayesianNetwork) -> Card:
    """A network with its likelihood and prior, before any data."""
    lead = "A network whose weights are inferred; `.condition(x, y)` makes a target of it."
    return Card(f"Bayesian network {in_layers(model.network)}", (Words(lead), _facts(model)))


def of_target(card: Card, model: BayesianNetwork) -> Card:
    """A conditioned network: what any target shows, and what is known of a network."""
    lead, *facts = card.parts
    rows = (row for part in facts if isinstance(part, Facts) for row in part.rows)
    kept = tuple(row for row in rows if row.name != "symmetry")
    return Card(card.heading, (lead, Facts((*kept, *_facts(model).rows))), card.flag)


def _facts(model: BayesianNetwork) -> Facts:
    shapes, given = model.network.shapes, model.parametrisation.label
    count = sum(math.prod(shape) for shape in shapes.values()) + model.infers_noise
    undivided = "none that permutes or rescales units"
    return Facts.of(
        ("parameters", f"{count:,}: {', '.join(f'`{n}`' for n in _names(model))}"),
        ("likelihood", _likelihood(model)),
        ("prior", _prior(model)),
        ("parametrisation", "" if given == "free" else given),
        ("symmetry", in_words(model.symmetry) or undivided),
        ("copies", copies(model.symmetry, shapes)),
    )


def _names(model: BayesianNetwork) -> tuple[str, ...]:
    return (*model.network.shapes, *(("sigma",) if model.infers_noise else ()))


def _likelihood(model: BayesianNetwork) -> str:
    if model.is_classifier:
        return f"categorical, {model.network.out_dim} classes"
    noise = getattr(model.likelihood, "noise_sd", None)
    scale = getattr(model.likelihood, "noise_scale", 1.0)
    if model.predicts_noise:
        times = "" if scale == 1 else f"{scale:g} times "
        return f"normal; its standard deviation is predicted too, {times}the softplus of the second head"
    if noise is not None:
        return f"normal with known standard deviation {noise:g}"
    return f"normal; `sigma` is inferred, half-normal of scale {scale:g}"


def _prior(model: BayesianNetwork) -> str:
    def scales(value: float | tuple[float, ...]) -> str:
        return ", ".join(f"{v:g}" for v in (value if isinstance(value, tuple) else (value,)))

    weights = f"weights normal, sd {scales(model.prior.weight_scale)}"
    return weights + (
        f"; biases sd {scales(model.prior.bias_scale)}" if model.network.biases else ""
    )
