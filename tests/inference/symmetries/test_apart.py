"""Components that are separate parameters or positions are found with all that moves along, and nothing else is."""

import numpy as np
import pytest
from scipy.special import expit

from onebasin.inference.symmetries.find import find
from onebasin.inference.symmetries.separate import families

from .known import OUT, TABLE, Known, X, Y, filtered, logs, logsumexp, mixed, normal

T = np.linspace(0, 30, 16)
GROWTH = 50 * expit(T - 5) + 50 * expit(T - 20)
WIDE = np.stack([Y, np.cos(Y)], axis=1)


def parts(weights, means, sds):
    prior = normal(np.stack(means), 0, 5) + normal(np.stack(sds), 0, 2)
    return mixed(weights, np.stack(means), np.stack(sds)) + prior


def with_simplex(m1, m2, s1, s2, theta):
    return parts(theta, [m1, m2], [s1, s2])


def on_logit_scale(means, sds, eta):
    return parts([expit(eta), expit(-eta)], means, sds) + normal(eta, 0, 1.5)


def of_experts(m1, m2, g0, g1):
    share = expit(g0 + X[:, 0] * g1)
    likelihood = mixed(np.stack([share, 1 - share], axis=1), np.stack([m1, m2]), 0.5, OUT)
    return likelihood + sum(map(normal, (m1, m2, g0, g1)))


def two_rises(a, b, c, d, s):
    mean = 50 * expit(a * T - b) + 50 * expit(c * T - d)
    prior = normal(a, 0, 0.5) + normal(c, 0, 0.5) + normal(b, 0, 20) + normal(d, 0, 20)
    return normal(GROWTH, mean, s) + prior - s


def in_the_plane(m1, m2, s1, s2, w):
    part = [logs(WIDE, m, s).sum(axis=1) for m, s in ((m1, s1), (m2, s2))]
    prior = normal(m1, 0, 5) + normal(m2, 0, 5) - s1.sum() - s2.sum()
    return logsumexp(np.log([w, 1 - w])[:, None] + part, axis=0).sum() + prior


def with_background(means, sds, weights):
    prior = sum(normal(m, 0, 5) - s for m, s in zip(means, sds, strict=True))
    return mixed(weights, np.array([*means, 0]), np.array([*sds, 10])) + prior


def of_states(low, high, leave, back, start):
    moves = [[1 - leave, leave], [back, 1 - back]]
    likelihood = filtered([start, 1 - start], moves, np.stack([low, high]), 1)
    return likelihood + normal(low, 0, 5) + normal(high, 0, 5)


def of_rows(to, stay, means):
    """A hidden chain whose rows are declared by the probability of the second state."""
    moves = [[1 - to, to], [1 - stay, stay]]
    return filtered([0.5, 0.5], moves, means, 1) + normal(means, 0, 5)


def of_tests(prevalence, sens, spec):
    """Two tests of a disease that nobody has seen: whoever is ill for one labelling is healthy for the other."""
    both = prevalence * np.stack([sens**2, sens * (1 - sens), (1 - sens) ** 2])
    none = (1 - prevalence) * np.stack([(1 - spec) ** 2, spec * (1 - spec), spec**2])
    return np.array([40.0, 30.0, 25.0]) @ np.log(both + none)


def of_factors(z1, z2, l1, l2):
    mean = np.outer(z1, l1) + np.outer(z2, l2)
    return normal(TABLE, mean, 0.5) + sum(map(normal, (z1, z2, l1, l2)))


def of_groups(a1, a2, b1, b2):
    """Two mixtures of two, one for each half of the data."""
    likelihood = mixed([0.5, 0.5], np.stack([a1, a2]), 1, Y[:15])
    likelihood += mixed([0.5, 0.5], np.stack([b1, b2]), 1, Y[15:])
    return likelihood + sum(normal(value, 0, 5) for value in (a1, a2, b1, b2))


def regression(b0, b1, b2, s):
    return normal(OUT, X @ [b0, b1, b2], s) - s


PAIR = "m1, m2, s1 positive, s2 positive"
CASES = {
    "a simplex moves along": Known.of(
        with_simplex, f"{PAIR}, theta 2 simplex", "m1~m2,s1~s2,theta"
    ),
    "three without numbers in their names": Known.of(
        lambda low, mid, high, a, b, c, w: parts(w, [low, mid, high], [a, b, c]),
        "low, mid, high, a positive, b positive, c positive, w 3 simplex",
        "low~mid~high,a~b~c,w",
    ),
    "a sign changes": Known.of(
        lambda m, s, eta: on_logit_scale(m, s, eta), "m 2, s 2 positive, eta", "m,s,+-eta:"
    ),
    "a sign changes with scalars": Known.of(
        lambda low, high, near, far, eta: on_logit_scale([low, high], [near, far], eta),
        "low, high, near positive, far positive, eta",
        "low~high,near~far,+-eta:",
    ),
    "two signs change": Known.of(of_experts, "m1, m2, g0, g1", "m1~m2,+-g0:,+-g1:"),
    "pairs": Known.of(
        two_rises, "a positive, b positive, c positive, d positive, s positive", "a~c,b~d"
    ),
    "pairs of positions": Known.of(
        lambda p, s: two_rises(*p, s), "p 4 positive, s positive", "p[0]~p[2],p[1]~p[3]"
    ),
    "vectors and a weight": Known.of(
        in_the_plane, "m1 2, m2 2, s1 2 positive, s2 2 positive, w unit", "m1~m2,s1~s2,1-w"
    ),
    "two places of a simplex of three": Known.of(
        lambda m1, m2, s1, s2, theta: with_background([m1, m2], [s1, s2], theta),
        f"{PAIR}, theta 3 simplex",
        "m1~m2,s1~s2,theta[0]~theta[1]",
    ),
    "three places of a simplex of four": Known.of(
        lambda m, s, theta: with_background(m, s, theta),
        "m 3, s 3 positive, theta 4 simplex",
        "theta[0]~theta[1]~theta[2],m,s",
    ),
    "two states and the first one's probability": Known.of(
        of_states, "low, high, leave unit, back unit, start unit", "low~high,leave~back,1-start"
    ),
    "two rows of one state": Known.of(of_rows, "to unit, stay unit, means 2", "to~1-stay,means"),
    "complements of one another": Known.of(
        of_tests, "prevalence unit, sens unit, spec unit", "sens~1-spec,1-prevalence"
    ),
    "factors whose signs are free": Known.of(
        of_factors, "z1 8, z2 8, l1 5, l2 5", "+-z1~z2,+-l1~l2"
    ),
    "a position and a scalar": Known.of(
        lambda m, n, w: parts([w, 1 - w], [m[0], n], [1.0, 1.0]), "m 1, n, w unit", "n~m[0],1-w"
    ),
    "two of three means": Known.of(
        lambda m, theta: parts(theta, m, [1.0, 2.0, 1.0]),
        "m 3, theta 3 simplex",
        "m[0]~m[2],theta[0]~theta[2]",
    ),
    "two groups": Known.of(of_groups, "a1, a2, b1, b2", "a1~a2; b1~b2"),
    "unlike priors": Known.of(
        lambda m1, **p: with_simplex(m1, **p) + 0.3 * m1, f"{PAIR}, theta 2 simplex"
    ),
    "a regression": Known.of(regression, "b0, b1, b2, s positive"),
}


def test_parameters_of_one_mode_are_not_exchanged():
    """Their sum is what the data know: the copies of a draw lie on one ridge."""
    ridge = Known.of(
        lambda a, b, s: normal(Y, a + b, s) + normal(a, 0, 5) + normal(b, 0, 5) - s,
        "a, b, s positive",
        ascents=True,
    )
    found = {block.word: block.status for block in find(ridge.density(), seconds=np.inf).blocks}
    assert found["a~b"] == "harmless"
    assert "live" not in found.values()


def test_a_sign_is_looked_for_whatever_the_random_points_have():
    """With seed 18 the scalar has one sign at all random points; seed 2 loses its share's digits at a wide one."""
    model = CASES["a sign changes"]
    for seed in (2, 18):
        assert find(model.density(), seconds=np.inf, seed=seed).words == model.live, seed


@pytest.mark.parametrize("name", CASES)
def test_components_apart_are_found_and_no_others(name):
    density = CASES[name].density()
    found = find(density, seconds=np.inf)
    assert found.words == CASES[name].live
    assert {block.status for block in found.blocks} <= {"live"}
    assert found.open == ()
    assert found.evaluations == density.calls < 3000


def test_families_are_of_one_shape_and_differ_in_what_counts_them():
    names = ("mu10", "mu2", "b_x_raw", "b_y_raw", "beta", "L1")
    assert families({**dict.fromkeys(names, ()), "mu3": (4,)}) == {
        "(mu2, mu10)": ("mu2", "mu10"),
        "(b_x_raw, b_y_raw)": ("b_x_raw", "b_y_raw"),
    }


def test_sentences_name_parameters_and_what_nothing_sets_against_another_is_harmless():
    (block,) = find(CASES["a simplex moves along"].density(), seconds=np.inf).blocks
    assert (block.parts, block.status) == (2, "live")
    assert "leaves the log density unchanged" in block.evidence[0]
    assert "m1~m2, s1~s2 and theta:0" in block.evidence[0]
    effects = Known.of(
        lambda e1, e2, slope: normal(e1) + normal(e2) + normal(Y, slope) + normal(slope),
        "e1, e2, slope",
    )
    assert {b.status for b in find(effects.density(), seconds=np.inf).blocks} == {"harmless"}
