"""Priors of a network's weights and biases; and parametrisations: constraints, and the coordinates for sampling.

Weights and biases have separate options. `free` leaves them unconstrained. `ordered` biases
remove the permutations of hidden units (Pourzanjani et al. 2017, section 3.1). Unit-norm incoming
weights remove the positive scaling of ReLU-like units (section 3.2); `givens`, `givens_seamless`
and `unit_vector` are the same constraint in three charts (`models.transforms.transforms`). The last layer is
always free.
"""

from dataclasses import dataclass

from numpyro import distributions as dist

from onebasin.base.card import Brief
from onebasin.base.checks import check_positive, choose
from onebasin.base.errors import ArgumentError

from ..transforms.transforms import UNIT_COLUMN_CHARTS, OrderedNormal, UnitColumns
from .architecture import ACTIVATIONS, Layer, Network

WEIGHTS = ("free", *UNIT_COLUMN_CHARTS)
BIASES = ("free", "ordered")


@dataclass(frozen=True, repr=False)
class NormalPrior(Brief):
    """Every weight of layer l ~ N(0, weight_scale[l]^2), every bias ~ N(0, bias_scale[l]^2).

    The default, N(0, 1) everywhere, follows Pourzanjani et al. 2017, section 4.1.

    Parameters
    ----------
    weight_scale, bias_scale : float or tuple of float
        Standard deviations; one number for all layers, or one per layer (hidden layers first, the
        last layer last). Layers whose weights have norm 1 do not use it.

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
        """Check the scales, and turn them into Python's numbers for JSON."""
        for name in ("weight_scale", "bias_scale"):
            value = getattr(self, name)
            several = isinstance(value, tuple | list)
            for scale in value if several else (value,):
                check_positive(name, scale)
            kept = tuple(float(scale) for scale in value) if several else float(value)
            object.__setattr__(self, name, kept)

    def weight_scales(self, num_layers: int) -> tuple[float, ...]:
        """Return one standard deviation per layer, for the weights."""
        return _per_layer("weight_scale", self.weight_scale, num_layers)

    def bias_scales(self, num_layers: int) -> tuple[float, ...]:
        """Return one standard deviation per layer, for the biases."""
        return _per_layer("bias_scale", self.bias_scale, num_layers)


def _per_layer(
    argument: str, value: float | tuple[float, ...], num_layers: int
) -> tuple[float, ...]:
    if not isinstance(value, tuple):
        return (value,) * num_layers
    if len(value) != num_layers:
        raise ArgumentError(
            f"`{argument}` must be one number for all layers, or a tuple with one number per layer, including the "
            f"output layer (numbers: {len(value)}; layers: {num_layers})."
        )
    return value


@dataclass(frozen=True, repr=False)
class Parametrisation(Brief):
    """A choice for the hidden layers' weights and one for their biases.

    Parameters
    ----------
    weights : {"free", "givens", "givens_seamless", "unit_vector"}
        Free, or incoming weight vectors of norm 1 in one of three charts: Givens angles with their seam or without it,
        and normalised Gaussians.
    biases : {"free", "ordered"}
        Free, or increasing along each hidden layer.

    Raises
    ------
    ValueError
        If a name is unknown; the message lists the allowed ones.

    References
    ----------
    Pourzanjani, Jiang and Petzold 2017, Improving the identifiability of neural networks for Bayesian inference,
    sections 3.1 (ordered biases) and 3.2 (Givens angles).

    Examples
    --------
    >>> ob.networks.Parametrisation(weights="givens", biases="ordered").label
    'givens+ordered'
    """

    weights: str = "free"
    biases: str = "free"

    def __post_init__(self) -> None:
        """Check the names of the options."""
        choose("weights", self.weights, WEIGHTS)
        choose("biases", self.biases, BIASES)

    @property
    def unit_norm(self) -> bool:
        """True if hidden units' incoming weight vectors have norm 1."""
        return self.weights != "free"

    @property
    def label(self) -> str:
        """A short name: ``free``, ``givens``, ``ordered``, ``givens+ordered``."""
        parts = [word for word in (self.weights, self.biases) if word != "free"]
        return "+".join(parts) or "free"

    def check(self, network: Network) -> None:
        """Reject a network that the parametrisation does not fit.

        It rejects unit-norm weights with an activation that is not positively homogeneous, a layer with one input or a
        fixed readout; and ordered biases in a network without biases.
        """
        if self.biases == "ordered" and not network.biases:
            raise ArgumentError(
                "`biases` is 'ordered', but the network has biases=False. Use biases='free'."
            )
        if self.unit_norm:
            if not network.nonlinearity.positively_homogeneous:
                fitting = [a.name for a in ACTIVATIONS.values() if a.positively_homogeneous]
                raise ArgumentError(
                    f"`weights` is {self.weights!r}, which fixes the norm of the incoming weights. The activation "
                    f"{network.activation!r} is not positively homogeneous, so the constrained network cannot "
                    "represent every function of the free network. Use weights='free', or one of the activations "
                    f"{', '.join(fitting)}."
                )
            if network.readout != "linear":
                raise ArgumentError(
                    f"`weights` is {self.weights!r}, which requires free weights in the last layer, but "
                    f"readout={network.readout!r} has none. Use weights='free' or readout='linear'."
                )
            for layer in network.layers:
                if layer.hidden and layer.in_dim < 2:
                    raise ArgumentError(
                        f"`weights` is {self.weights!r}, but the layer with weights {layer.weight} has only one "
                        "input, so the weight of a unit has no direction. Use weights='free', or give every hidden "
                        "layer at least two inputs."
                    )

    def weight_prior(self, layer: Layer, scale: float) -> dist.Distribution:
        """Return the distribution of a layer's weights (in, out)."""
        if layer.hidden and self.unit_norm:
            return UnitColumns(layer.in_dim, layer.out_dim, self.weights)
        return dist.Normal(0.0, scale).expand([layer.in_dim, layer.out_dim]).to_event(2)

    def bias_prior(self, layer: Layer, scale: float) -> dist.Distribution:
        """Return the distribution of a layer's biases (out,)."""
        if layer.hidden and self.biases == "ordered":
            return OrderedNormal(scale, layer.out_dim)
        return dist.Normal(0.0, scale).expand([layer.out_dim]).to_event(1)
