"""Independent normal priors on weights and biases, with a scale a layer."""

from __future__ import annotations

from dataclasses import dataclass

from onebasin.base.checks import check_positive
from onebasin.base.errors import ArgumentError
from onebasin.base.showing import Brief


@dataclass(frozen=True, repr=False)
class NormalPrior(Brief):
    """Every weight of layer l ~ N(0, weight_scale[l]^2), every bias ~ N(0, bias_scale[l]^2).

    The default, N(0, 1) everywhere, is that of Pourzanjani et al. 2017, section 4.1.

    Parameters
    ----------
    weight_scale, bias_scale : float or tuple of float
        Standard deviations; one number for all layers, or one a layer (hidden layers first, the
        last layer last). Layers whose weights have norm 1 do not use theirs.

    Raises
    ------
    ValueError
        If a scale is not positive and finite.

    Examples
    --------
    >>> ob.networks.NormalPrior(weight_scale=(1.0, 0.5)).weight_scales(2)
    (1.0, 0.5)
    """

    weight_scale: float | tuple[float, ...] = 1.0
    bias_scale: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        """Check the scales, and keep them as Python's own numbers, which JSON takes."""
        for name in ("weight_scale", "bias_scale"):
            value = getattr(self, name)
            several = isinstance(value, tuple | list)
            for scale in value if several else (value,):
                check_positive(name, scale)
            kept = tuple(float(scale) for scale in value) if several else float(value)
            object.__setattr__(self, name, kept)

    def weight_scales(self, num_layers: int) -> tuple[float, ...]:
        """One standard deviation a layer, for the weights."""
        return _per_layer("weight_scale", self.weight_scale, num_layers)

    def bias_scales(self, num_layers: int) -> tuple[float, ...]:
        """One standard deviation a layer, for the biases."""
        return _per_layer("bias_scale", self.bias_scale, num_layers)


def _per_layer(
    argument: str, value: float | tuple[float, ...], num_layers: int
) -> tuple[float, ...]:
    if not isinstance(value, tuple):
        return (value,) * num_layers
    if len(value) != num_layers:
        raise ArgumentError(
            f"`{argument}` has {len(value)} entries, but the network has {num_layers} layers "
            "(hidden layers and the last one); give one number, or one a layer."
        )
    return value
