"""Every chart gives the same posterior: the same evidence and the same moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.models.transforms.transforms import (
    SeamlessGivensTransform,
    UnconstrainedGivensTransform,
    UnitVectorTransform,
)

from ...each import each


def circle(num):
    """Nodes (column, node) and weights of the trapezoid rule on the unit circle."""
    phi = 2 * np.pi * (np.arange(num) + 0.5) / num
    return np.stack([np.cos(phi), np.sin(phi)]), np.full(num, 2 * np.pi / num)


def sphere(num):
    """The same on the unit sphere in R^3: Gauss-Legendre in height, trapezoid in longitude."""
    z, of_height = np.polynomial.legendre.leggauss(num)
    plane, of_longitude = circle(num)
    flat = np.sqrt(1 - z**2)[:, None] * plane[:, None, :]
    nodes = np.stack([flat[0], flat[1], np.broadcast_to(z[:, None], flat[0].shape)])
    return nodes.reshape(3, -1), np.outer(of_height, of_longitude).ravel()


def line(num):
    """Nodes and weights on the reals: a chart's density falls off as exp(-|x|) at least."""
    x = np.linspace(-40, 40, num)
    return x, np.full(num, x[1] - x[0])


def radii(num, low, high):
    nodes, weights = np.polynomial.legendre.leggauss(num)
    return (nodes * (high - low) + high + low) / 2, weights * (high - low) / 2


def outer(*rules):
    """Product of rules, each (rows, node) with weights (node)."""
    grids = np.meshgrid(*(np.arange(len(w)) for _, w in rules), indexing="ij")
    rows = [np.atleast_2d(n)[:, g.ravel()] for (n, _), g in zip(rules, grids, strict=True)]
    weights = np.prod([w[g.ravel()] for (_, w), g in zip(rules, grids, strict=True)], axis=0)
    return np.concatenate(rows), weights


def polar(surface, radial, power):
    """Rule on R^n from one on its unit sphere and one for the radius."""
    nodes, weights = outer(surface, radial)
    return nodes[:-1] * nodes[-1], weights * nodes[-1] ** power


def moments(chart, nodes, weights):
    """Log evidence, posterior mean of w and of w w', by quadrature over the chart's unconstrained space."""

    @jax.jit
    def at(x):
        w = chart(x)
        return w[..., 0], chart.log_abs_det_jacobian(x, w) + log_likelihood(w[..., 0])

    w, log_density = map(np.asarray, at(nodes.T[:, :, None]))
    p = np.exp(log_density) * weights
    return np.log(p.sum()), p @ w / p.sum(), np.einsum("n,ni,nj->ij", p, w, w) / p.sum()


def log_likelihood(w):
    """Von Mises-like, no symmetry left, its mode near the seam."""
    linear = jnp.array([-2.0, 0.3, 0.8])[: w.shape[-1]]
    return w @ linear + 0.7 * w[..., 0] * w[..., 1]


UNIT_RADII = radii(30, 1e-9, 8)
SEAMLESS_RADII = radii(30, 1e-9, 3)
RULES = {
    2: {
        "exact": circle(60),
        "givens": (line(4001)[0][None], line(4001)[1]),
        "seamless": polar(circle(60), SEAMLESS_RADII, 1),
        "unit_vector": polar(circle(60), UNIT_RADII, 1),
    },
    3: {
        "exact": sphere(40),
        "givens": outer(line(401), line(401)),
        "seamless": outer(polar(circle(40), SEAMLESS_RADII, 1), line(401)),
        "unit_vector": polar(sphere(40), UNIT_RADII, 2),
    },
}
CHARTS = {
    "givens": UnconstrainedGivensTransform(),
    "seamless": SeamlessGivensTransform(),
    "unit_vector": UnitVectorTransform(),
}


@each("dim", RULES)
@each("name", CHARTS)
def test_charts_give_the_same_evidence_and_posterior_moments(name, dim):
    nodes, weights = RULES[dim]["exact"]
    p = np.exp(np.asarray(jax.jit(log_likelihood)(nodes.T))) * weights
    mean = nodes @ p / p.sum()
    second = np.einsum("n,in,jn->ij", p, nodes, nodes) / p.sum()
    log_evidence, found_mean, found_second = moments(CHARTS[name], *RULES[dim][name])
    # Quadrature converges to 1e-9 here; the density and not the rule is what is tested.
    assert log_evidence == pytest.approx(np.log(p.sum()), abs=1e-8)
    np.testing.assert_allclose(found_mean, mean, atol=1e-8)
    np.testing.assert_allclose(found_second, second, atol=1e-8)
