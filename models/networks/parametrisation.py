"""Priors of a network's weights and biases; and parametrisations: constraints, and the coordinates for sampling.

Weights and biases have separate options. `free` leaves them unconstrained. `ordered` biases
remove the permutations of hidden units (Pourzanjani et al. 2017, section 3.1). Unit-norm incoming
weights remove the positive scaling of ReLU-like units (section 3.2); `givens`, `givens_seamless`
and `unit_vector` are the same constraint in three charts. The last layer is always free. The prior
of a constrained array is the independent normal prior restricted to the constrained set, and
normalised there.

A weight matrix W (in, hidden) whose columns are unit vectors lives on a product of spheres. Each
chart maps an unconstrained array to such a matrix; its `log_abs_det_jacobian` is the log density,
on the unconstrained space, that gives the columns the uniform measure on their spheres.

The Givens chart is that of Pourzanjani et al. 2017, section 3.2: from K - 1 angles a column,

    w_1 = cos t_1 cos t_2 ... cos t_{K-1},   w_{i+1} = sin t_i cos t_{i+1} ... cos t_{K-1},

with the longitude t_1 in (-pi, pi), the latitudes t_i in (-pi/2, pi/2), and the log area element
sum_i (i - 1) log cos t_i. `UnconstrainedGivensTransform` puts a scaled logistic function before each
angle. Being a bijection, its Jacobian is a true one.

The open interval of the longitude has a seam: two neighbouring unit vectors on either side of +-pi
are infinitely far apart in the unconstrained space, so a posterior that touches the seam is split
into two modes. `SeamlessGivensTransform` gives the longitude as the direction of a point of the
plane instead; `UnitVectorTransform` normalises a Gaussian vector, as Stan's `unit_vector` does.
Both carry one redundant radius a column, whose own density is normalised and independent of the unit
vector, so the posterior of W is the same in every chart, and so is its evidence.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpyro  # noqa: F401 - whole, before a part of it
from jax.scipy.special import gammaln
from jaxtyping import Array, Float
from numpyro import distributions as dist
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.constraints import Constraint, real_matrix
from numpyro.distributions.transforms import ParameterFreeTransform

from onebasin.base.card import Brief
from onebasin.base.checks import check_positive, choose
from onebasin.base.errors import ArgumentError

from .architecture import ACTIVATIONS, Layer, Network

RADIUS_SD = 0.25
"""Spread of the seamless chart's redundant radius about 1. It is narrow enough to avoid the origin (4 sd), where the
angle is undefined, and wide enough not to force a smaller step size than the weights."""
_LOG_RADIUS_MASS = math.log(
    RADIUS_SD**2 * math.exp(-0.5 / RADIUS_SD**2)
    + RADIUS_SD * math.sqrt(math.pi / 2) * (1 + math.erf(1 / (RADIUS_SD * math.sqrt(2))))
)
"""Log of the integral of r exp(-(r - 1)^2 / (2 RADIUS_SD^2)) over all r > 0."""

Raw = Float[Array, "*batch raw hidden"]
Theta = Float[Array, "*batch angle hidden"]
Columns = Float[Array, "*batch in hidden"]
LogDensity = Float[Array, "*batch"]


@jax.custom_jvp
def _log_slope(x: Raw) -> Raw:
    """Return the log derivative of the logistic function 1 / (1 + exp(-x))."""
    far = jnp.abs(x)
    return -far - 2 * jnp.log1p(jnp.exp(-far))


@_log_slope.defjvp
def _log_slope_jvp(at: tuple[Raw], along: tuple[Raw]) -> tuple[Raw, Raw]:
    # It avoids |x|, which has no derivative at 0, although the slope is smooth there.
    (x,), (dx,) = at, along
    return _log_slope(x), -jnp.tanh(x / 2) * dx


def _log_derivative(x: Raw, half_width: float) -> Raw:
    """Return the log derivative of the scaled logistic function half_width * tanh(x / 2)."""
    return jnp.log(2 * half_width) + _log_slope(x)


@jax.custom_jvp
def _latitude_parts(x: Raw) -> tuple[Theta, Theta]:
    """Return the logarithm of the cosine, and the sine, of the latitude pi/2 tanh(x / 2).

    The cosine is the sine of the angle to the nearer pole: the latitude itself rounds to the pole,
    or past it in float32, where the logarithm of its cosine would be NaN.
    """
    to_pole = math.pi * jax.nn.sigmoid(-jnp.abs(x))
    return jnp.log(jnp.sin(to_pole)), jnp.sin(math.pi / 2 * jnp.tanh(x / 2))


@_latitude_parts.defjvp
def _latitude_parts_jvp(
    at: tuple[Raw], along: tuple[Raw]
) -> tuple[tuple[Theta, Theta], tuple[Theta, Theta]]:
    # Each derivative is the other part times the latitude's own, so that nothing new is evaluated.
    (x,), (dx,) = at, along
    log_cos, sin = _latitude_parts(x)
    near = jax.nn.sigmoid(-jnp.abs(x))
    turn = math.pi * near * (1 - near) * dx
    cos = jnp.sin(math.pi * near)
    return (log_cos, sin), (-sin / cos * turn, cos * turn)


def _latitudes_log_density(x: Raw) -> LogDensity:
    """Return the log density on reals that makes latitudes those of uniform columns, up to a constant."""
    log_cos, _ = _latitude_parts(x)
    # Of cos t in the area element, for the latitudes t_2, t_3, ...
    lead = [1] * (x.ndim - 2)
    powers = jnp.arange(1, x.shape[-2] + 1, dtype=x.dtype).reshape(*lead, -1, 1)
    rows = _log_derivative(x, math.pi / 2) + powers * log_cos
    return jnp.sum(rows, (-2, -1))


def _columns_from_reals(direction: Theta, latitudes: Raw) -> Columns:
    """Build unit columns from the longitude's cosine and sine, two rows, and the latitudes' reals.

    Products of cosines are sums of the logarithms that the density needs anyway.
    """
    log_cos, sin = _latitude_parts(latitudes)
    tails = jnp.exp(jax.lax.cumsum(log_cos, axis=log_cos.ndim - 2, reverse=True))
    tails = jnp.concatenate([tails, jnp.ones_like(direction[..., :1, :])], -2)
    tails = jnp.concatenate([tails[..., :1, :], tails], -2)
    return tails * jnp.concatenate([direction, sin], -2)


def _angles_of(y: Columns) -> tuple[Theta, Raw]:
    """Return the longitude of unit columns, one row, and the reals of their latitudes."""
    longitude = jnp.arctan2(y[..., 1:2, :], y[..., :1, :])
    # The latitude t_i is the elevation of component i + 1 over the span of those before it.
    before = jnp.sqrt(jnp.cumsum(y * y, -2))[..., 1:-1, :]
    return longitude, _interval_inverse(jnp.arctan2(y[..., 2:, :], before), math.pi / 2)


def _interval_inverse(y: Theta, half_width: float) -> Raw:
    return 2 * jnp.arctanh(y / half_width)


class UnitColumnsConstraint(Constraint):
    """Matrices (in, hidden) whose columns have Euclidean norm 1, to be sampled in one of `UNIT_COLUMN_CHARTS`."""

    event_dim = 2

    def __init__(self, chart: str) -> None:
        self.chart = chart

    def tree_flatten(self) -> tuple[tuple[()], tuple[tuple[()], dict[str, str]]]:
        """Return no arrays, because the chart is static."""
        return (), ((), {"chart": self.chart})

    def eq(self, other: object, static: bool = False) -> bool:
        """Check whether another constraint is the same set in the same chart."""
        return isinstance(other, UnitColumnsConstraint) and other.chart == self.chart

    def __call__(self, x: jax.Array) -> jax.Array:
        """Check whether every column's squared norm is 1 up to rounding."""
        tolerance = 10 * jnp.finfo(x.dtype).eps * x.shape[-2]
        return jnp.all(jnp.abs(jnp.sum(x * x, -2) - 1) < tolerance, axis=-1)

    def feasible_like(self, prototype: jax.Array) -> jax.Array:
        """Return the matrix whose columns all are the first unit vector."""
        return jnp.zeros_like(prototype).at[..., 0, :].set(1.0)


class _ColumnTransform(ParameterFreeTransform):
    """The shared part of the charts: matrices of columns, one independent chart a column."""

    domain = real_matrix
    codomain: UnitColumnsConstraint
    extra_rows = 0  # Rows of the unconstrained array minus rows of W.

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the matrix, from that of the unconstrained array."""
        return (*shape[:-2], shape[-2] - self.extra_rows, shape[-1])

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the unconstrained array, from that of the matrix."""
        return (*shape[:-2], shape[-2] + self.extra_rows, shape[-1])


class UnconstrainedGivensTransform(_ColumnTransform):
    """Reals (in - 1, hidden) to unit columns, by angles; Pourzanjani et al. 2017, section 3.2."""

    codomain = UnitColumnsConstraint("givens")
    extra_rows = -1

    def __call__(self, x: Raw) -> Columns:
        """Unit-norm columns."""
        longitude = math.pi * jnp.tanh(x[..., :1, :] / 2)
        direction = jnp.concatenate([jnp.cos(longitude), jnp.sin(longitude)], -2)
        return _columns_from_reals(direction, x[..., 1:, :])

    def _inverse(self, y: Columns) -> Raw:
        longitude, latitudes = _angles_of(y)
        return jnp.concatenate([_interval_inverse(longitude, math.pi), latitudes], -2)

    def log_abs_det_jacobian(self, x: Raw, y: Columns, intermediates: object = None) -> LogDensity:
        """Return the log area element of the composition."""
        longitude = jnp.sum(_log_derivative(x[..., :1, :], math.pi), (-2, -1))
        return longitude + _latitudes_log_density(x[..., 1:, :])


class SeamlessGivensTransform(_ColumnTransform):
    """Reals (in, hidden) to unit columns; the longitude is the direction of the first two rows.

    Rows 0 and 1 are the Cartesian coordinates of a point of the plane, whose density depends only on its distance r
    from the origin: exp(-(r - 1)^2 / (2 RADIUS_SD^2)). Rows 2 and on are the latitudes of
    `UnconstrainedGivensTransform`. The inverse returns the point with r = 1.
    """

    codomain = UnitColumnsConstraint("givens_seamless")

    def __call__(self, x: Raw) -> Columns:
        """Unit-norm columns."""
        plane, latitudes = x[..., :2, :], x[..., 2:, :]
        direction = plane / jnp.linalg.norm(plane, axis=-2, keepdims=True)
        return _columns_from_reals(direction, latitudes)

    def _inverse(self, y: Columns) -> Raw:
        longitude, latitudes = _angles_of(y)
        return jnp.concatenate([jnp.cos(longitude), jnp.sin(longitude), latitudes], -2)

    def log_abs_det_jacobian(self, x: Raw, y: Columns, intermediates: object = None) -> LogDensity:
        """Return the log density of the latitudes and of the redundant radius."""
        radius = jnp.linalg.norm(x[..., :2, :], axis=-2)
        of_radius = jnp.sum(-0.5 * ((radius - 1) / RADIUS_SD) ** 2 - _LOG_RADIUS_MASS, -1)
        return of_radius + _latitudes_log_density(x[..., 2:, :])


class UnitVectorTransform(_ColumnTransform):
    """Reals (in, hidden) to unit-norm columns, by normalising each column.

    The same chart as Stan's `unit_vector`: an independent standard normal vector is normalised, and
    its density stands in the place of the Jacobian, which does not exist. The inverse returns the
    column itself (r = 1).
    """

    codomain = UnitColumnsConstraint("unit_vector")

    def __call__(self, x: Raw) -> Columns:
        """Unit-norm columns."""
        return x / jnp.linalg.norm(x, axis=-2, keepdims=True)

    def _inverse(self, y: Columns) -> Raw:
        return y

    def log_abs_det_jacobian(self, x: Raw, y: Columns, intermediates: object = None) -> LogDensity:
        """Return the log density of the redundant radii, chi with as many degrees of freedom as there are rows.

        That of a standard normal array, less the log area of the spheres.
        """
        rows, columns = x.shape[-2:]
        constant = (rows / 2 - 1) * math.log(2) + math.lgamma(rows / 2)
        return -0.5 * jnp.sum(x * x, (-2, -1)) - columns * constant


UNIT_COLUMN_CHARTS: dict[str, type[_ColumnTransform]] = {
    kind.codomain.chart: kind
    for kind in (UnconstrainedGivensTransform, SeamlessGivensTransform, UnitVectorTransform)
}
biject_to.register(UnitColumnsConstraint, lambda constraint: UNIT_COLUMN_CHARTS[constraint.chart]())


class UnitColumns(dist.Distribution):
    """Matrices (in, hidden) with independent columns, each uniform on the unit sphere.

    A normal prior N(0, s^2) restricted to unit vectors is this distribution for every s, since its
    density is constant on the sphere. The density is with respect to area. `in_dim` is at least 2;
    `chart`, one of `UNIT_COLUMN_CHARTS`, names the coordinates that a sampler moves in.
    """

    pytree_aux_fields = ("chart",)

    def __init__(self, in_dim: int, hidden_dim: int, chart: str) -> None:
        self.chart = chart
        super().__init__(event_shape=(in_dim, hidden_dim), validate_args=False)

    @property
    def support(self) -> constraints.Constraint:
        """The set of unit-norm columns, tagged with the chart."""
        return UNIT_COLUMN_CHARTS[self.chart].codomain

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw normalised Gaussian columns."""
        z = jax.random.normal(key, sample_shape + self.event_shape)
        return z / jnp.linalg.norm(z, axis=-2, keepdims=True)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """Return minus the log area of the spheres, which is constant."""
        in_dim, hidden_dim = self.event_shape
        log_area = math.log(2) + in_dim / 2 * math.log(math.pi) - gammaln(in_dim / 2.0)
        return jnp.broadcast_to(-hidden_dim * log_area, jnp.shape(value)[:-2])


class OrderedNormal(dist.Distribution):
    """Independent N(0, scale^2) entries, given that they increase: b(1) < b(2) < ... < b(H).

    Pourzanjani et al. 2017, section 3.1. Sampled through the logarithms of the differences
    (NumPyro's `OrderedTransform`). `scale` is the standard deviation before ordering, `size` is H.
    """

    support = constraints.ordered_vector
    pytree_data_fields = ("scale",)

    def __init__(self, scale: float, size: int) -> None:
        self.scale = scale
        super().__init__(event_shape=(size,), validate_args=False)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw sorted normal numbers."""
        z = jax.random.normal(key, sample_shape + self.event_shape)
        return self.scale * jnp.sort(z, axis=-1)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """Return the sum of normal log densities plus log H!, the number of orders that were excluded."""
        return jnp.sum(dist.Normal(0.0, self.scale).log_prob(value), -1) + gammaln(
            self.event_shape[0] + 1.0
        )


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
