"""Components that are separate parameters or positions are named, with a declaration, but not searched."""

import numpy as np
import pytest
from scipy.special import expit

from onebasin.inference.symmetries.find import find

from .known import OUT, TABLE, Known, X, Y, mixed, normal

T = np.linspace(0, 30, 16)
GROWTH = 50 * expit(T - 5) + 50 * expit(T - 20)


def parts(weights, means, sds):
    prior = normal(np.stack(means), 0, 5) + normal(np.stack(sds), 0, 2)
    return mixed(weights, np.stack(means), np.stack(sds)) + prior


def on_logit_scale(means, sds, eta):
    return parts([expit(eta), expit(-eta)], means, sds) + normal(eta, 0, 1.5)


def two_rises(a, b, c, d, s):
    mean = 50 * expit(a * T - b) + 50 * expit(c * T - d)
    prior = normal(a, 0, 0.5) + normal(c, 0, 0.5) + normal(b, 0, 20) + normal(d, 0, 20)
    return normal(GROWTH, mean, s) + prior - s


def with_background(means, sds, weights):
    prior = sum(normal(m, 0, 5) - s for m, s in zip(means, sds, strict=True))
    return mixed(weights, np.array([*means, 0]), np.array([*sds, 10])) + prior


def of_tests(prevalence, sens, spec):
    """Two tests of a disease that nobody has seen: whoever is ill for one labelling is healthy for the other."""
    both = prevalence * np.stack([sens**2, sens * (1 - sens), (1 - sens) ** 2])
    none = (1 - prevalence) * np.stack([(1 - spec) ** 2, spec * (1 - spec), spec**2])
    return np.array([40.0, 30.0, 25.0]) @ np.log(both + none)


def of_factors(z1, z2, l1, l2):
    mean = np.outer(z1, l1) + np.outer(z2, l2)
    return normal(TABLE, mean, 0.5) + sum(map(normal, (z1, z2, l1, l2)))


def regression(b0, b1, b2, s):
    return normal(OUT, X @ [b0, b1, b2], s) - s


PAIR = "m1, m2, s1 positive, s2 positive"
CASES = {
    "a simplex moves along": (
        lambda m1, m2, s1, s2, theta: parts(theta, [m1, m2], [s1, s2]),
        f"{PAIR}, theta 2 simplex",
        "m1~m2,s1~s2",
    ),
    "three without numbers in their names": (
        lambda low, mid, high, a, b, c, w: parts(w, [low, mid, high], [a, b, c]),
        "low, mid, high, a positive, b positive, c positive, w 3 simplex",
        "low~mid~high,a~b~c",
    ),
    "a sign changes": (
        lambda low, high, near, far, eta: on_logit_scale([low, high], [near, far], eta),
        "low, high, near positive, far positive, eta",
        "low~high,near~far",
    ),
    "pairs": (two_rises, "a positive, b positive, c positive, d positive, s positive", "a~c,b~d"),
    "pairs of positions": (
        lambda p, s: two_rises(*p, s),
        "p 4 positive, s positive",
        "p[0]~p[2],p[1]~p[3]",
    ),
    "three places of a simplex of four": (
        lambda m, s, theta: with_background(m, s, theta),
        "m 3, s 3 positive, theta 4 simplex",
        "m[0]~m[1]~m[2],s[0]~s[1]~s[2]",
    ),
    "complements of one another": (
        of_tests,
        "prevalence unit, sens unit, spec unit",
        "sens~1-spec",
    ),
    "factors whose signs are free": (of_factors, "z1 8, z2 8, l1 5, l2 5", "z1~z2,l1~l2"),
    "a position and a scalar": (
        lambda m, n, w: parts([w, 1 - w], [m[0], n], [1.0, 1.0]),
        "m 1, n, w unit",
        "n~m[0]",
    ),
    "nothing sets them against another": (
        lambda e1, e2, slope: normal(e1) + normal(e2) + normal(Y, slope) + normal(slope),
        "e1, e2, slope",
        "",
    ),
    "a regression": (regression, "b0, b1, b2, s positive", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_components_apart_are_named_and_no_others(name):
    function, text, words = CASES[name]
    found = find(Known.of(function, text).density(), seconds=np.inf)
    assert all("~" not in word for word in found.words)
    told = [sentence for sentence in found.open if f"declare `{words}` with everything" in sentence]
    assert found.open == tuple(told)
    assert len(told) == bool(words)
    assert (f"declare `{words}`" in found.sentence) == bool(words)


def test_a_sign_is_looked_for_whatever_the_random_points_have():
    """With seed 18 the scalar has one sign at all random points; seed 2 loses its share's digits at a wide one."""
    model = Known.of(lambda m, s, eta: on_logit_scale(m, s, eta), "m 2, s 2 positive, eta")
    for seed in (0, 2, 18):
        found = find(model.density(), seconds=np.inf, seed=seed)
        assert (found.words, found.open) == (("m,s,+-eta:",), ()), seed


def test_some_of_the_components_of_arrays_are_found():
    model = Known.of(lambda m, theta: parts(theta, m, [1.0, 2.0, 1.0]), "m 3, theta 3 simplex")
    (block,) = find(model.density(), seconds=np.inf).blocks
    assert (block.word, block.parts, block.status) == ("m[0]~m[2],theta[0]~theta[2]", 2, "live")
