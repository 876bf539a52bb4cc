"""Components that are separate parameters or positions are found with all that moves along, and nothing else is."""

import numpy as np
from scipy.special import expit, logsumexp

from onebasin.inference.symmetries.find import find

from ...each import each
from .functions import FunctionDensity
from .known import OUT, TABLE, Known, X, Y, logs, normal

T = np.linspace(0, 30, 16)
GROWTH = 50 * expit(T - 5) + 50 * expit(T - 20)
WIDE = np.stack([Y, np.cos(Y)], axis=1)
REAL, POSITIVE, UNIT = ((), "real"), ((), "positive"), ((), "unit")


def mixed(log_weights, means, sds):
    part = np.asarray(log_weights) + logs(Y[:, None], np.stack(means), np.stack(sds))
    prior = normal(np.stack(means), 0, 5) + normal(np.stack(sds), 0, 2)
    return logsumexp(part, axis=1).sum() + prior


def with_simplex(p):
    return mixed(np.log(p["theta"]), [p["m1"], p["m2"]], [p["s1"], p["s2"]])


def without_numbers(p):
    return mixed(np.log(p["w"]), [p["low"], p["mid"], p["high"]], [p["a"], p["b"], p["c"]])


def on_logit_scale(p):
    weights = np.log([expit(p["eta"]), expit(-p["eta"])])
    return mixed(weights, p["m"], p["s"]) + normal(p["eta"], 0, 1.5)


def of_scalars_on_logit_scale(p):
    weights = np.log([expit(p["eta"]), expit(-p["eta"])])
    return mixed(weights, [p["low"], p["high"]], [p["near"], p["far"]]) + normal(p["eta"], 0, 1.5)


def of_experts(p):
    share = expit(p["g0"] + X[:, 0] * p["g1"])
    weights = np.log(np.stack([share, 1 - share], axis=1))
    part = weights + logs(OUT[:, None], np.stack([p["m1"], p["m2"]]), 0.5)
    gate = normal(p["g0"]) + normal(p["g1"])
    return logsumexp(part, axis=1).sum() + normal(p["m1"]) + normal(p["m2"]) + gate


def two_rises(a, b, c, d, s):
    mean = 50 * expit(a * T - b) + 50 * expit(c * T - d)
    prior = normal(a, 0, 0.5) + normal(c, 0, 0.5) + normal(b, 0, 20) + normal(d, 0, 20)
    return normal(GROWTH, mean, s) + prior - s


def in_the_plane(p):
    part = [logs(WIDE, p[f"m{k}"], p[f"s{k}"]).sum(axis=1) for k in (1, 2)]
    prior = sum(normal(p[f"m{k}"], 0, 5) - p[f"s{k}"].sum() for k in (1, 2))
    return logsumexp(np.log([p["w"], 1 - p["w"]])[:, None] + part, axis=0).sum() + prior


def with_background(means, sds, log_weights):
    part = [logs(Y, m, s) for m, s in zip(means, sds, strict=True)]
    part.append(logs(Y, 0, 10))
    prior = sum(normal(m, 0, 5) - s for m, s in zip(means, sds, strict=True))
    return logsumexp(np.asarray(log_weights)[:, None] + part, axis=0).sum() + prior


def of_states(p):
    low, high, leave, back = (p[name] for name in ("low", "high", "leave", "back"))
    moves = np.log([[1 - leave, leave], [back, 1 - back]])
    log_p = np.log([p["start"], 1 - p["start"]])
    for y in Y:
        log_p = logsumexp(log_p[:, None] + moves, axis=0) + logs(y, np.stack([low, high]), 1)
    return logsumexp(log_p) + normal(low, 0, 5) + normal(high, 0, 5)


def of_factors(p):
    mean = np.outer(p["z1"], p["l1"]) + np.outer(p["z2"], p["l2"])
    return normal(TABLE, mean, 0.5) + sum(normal(value) for value in p.values())


def unlike(p):
    return with_simplex(p) + 0.3 * p["m1"]


def of_groups(p):
    """Two mixtures of two, one for each half of the data."""
    return sum(
        logsumexp(
            np.log([0.5, 0.5]) + logs(y[:, None], np.stack([p[f"{g}1"], p[f"{g}2"]]), 1), axis=1
        ).sum()
        + normal(p[f"{g}1"], 0, 5)
        + normal(p[f"{g}2"], 0, 5)
        for g, y in (("a", Y[:15]), ("b", Y[15:]))
    )


PAIR = {"m1": REAL, "m2": REAL, "s1": POSITIVE, "s2": POSITIVE}
CASES = {
    "a simplex moves along": Known(
        {**PAIR, "theta": ((2,), "simplex")}, with_simplex, ("m1~m2,s1~s2,theta",)
    ),
    "three without numbers in their names": Known(
        {
            **dict.fromkeys(("low", "mid", "high"), REAL),
            **dict.fromkeys("abc", POSITIVE),
            "w": ((3,), "simplex"),
        },
        without_numbers,
        ("low~mid~high,a~b~c,w",),
    ),
    "a sign changes": Known(
        {"m": ((2,), "real"), "s": ((2,), "positive"), "eta": REAL},
        on_logit_scale,
        ("m,s,+-eta:",),
    ),
    "a sign changes with scalars": Known(
        {"low": REAL, "high": REAL, "near": POSITIVE, "far": POSITIVE, "eta": REAL},
        of_scalars_on_logit_scale,
        ("low~high,near~far,+-eta:",),
    ),
    "two signs change": Known(
        dict.fromkeys(("m1", "m2", "g0", "g1"), REAL), of_experts, ("m1~m2,+-g0:,+-g1:",)
    ),
    "pairs": Known(
        dict.fromkeys("abcds", POSITIVE),
        lambda p: two_rises(*(p[n] for n in "abcds")),
        ("a~c,b~d",),
    ),
    "pairs of positions": Known(
        {"p": ((4,), "positive"), "s": POSITIVE},
        lambda p: two_rises(*p["p"], p["s"]),
        ("p[0]~p[2],p[1]~p[3]",),
    ),
    "vectors and a weight": Known(
        {
            **dict.fromkeys(("m1", "m2"), ((2,), "real")),
            **dict.fromkeys(("s1", "s2"), ((2,), "positive")),
            "w": UNIT,
        },
        in_the_plane,
        ("m1~m2,s1~s2,1-w",),
    ),
    "two places of a simplex of three": Known(
        {**PAIR, "theta": ((3,), "simplex")},
        lambda p: with_background([p["m1"], p["m2"]], [p["s1"], p["s2"]], np.log(p["theta"])),
        ("m1~m2,s1~s2,theta[0]~theta[1]",),
    ),
    "three places of a simplex of four": Known(
        {"m": ((3,), "real"), "s": ((3,), "positive"), "theta": ((4,), "simplex")},
        lambda p: with_background(p["m"], p["s"], np.log(p["theta"])),
        ("theta[0]~theta[1]~theta[2],m,s",),
    ),
    "two states and the first one's probability": Known(
        {"low": REAL, "high": REAL, "leave": UNIT, "back": UNIT, "start": UNIT},
        of_states,
        ("low~high,leave~back,1-start",),
    ),
    "factors whose signs are free": Known(
        {f"{name}{k}": ((size,), "real") for name, size in (("z", 8), ("l", 5)) for k in (1, 2)},
        of_factors,
        ("+-z1~z2,+-l1~l2",),
    ),
    "a position and a scalar": Known(
        {"m": ((1,), "real"), "n": REAL, "w": UNIT},
        lambda p: mixed(np.log([p["w"], 1 - p["w"]]), [p["m"][0], p["n"]], [1.0, 1.0]),
        ("n~m[0],1-w",),
    ),
    "two of three means": Known(
        {"m": ((3,), "real"), "theta": ((3,), "simplex")},
        lambda p: mixed(np.log(p["theta"]), p["m"], [1.0, 2.0, 1.0]),
        ("m[0]~m[2],theta[0]~theta[2]",),
    ),
    "two groups": Known(
        dict.fromkeys(("a1", "a2", "b1", "b2"), REAL), of_groups, ("a1~a2", "b1~b2")
    ),
    "unlike priors": Known({**PAIR, "theta": ((2,), "simplex")}, unlike),
    "a regression": Known(
        {**{f"b{k}": REAL for k in range(3)}, "s": POSITIVE},
        lambda p: normal(OUT, X @ [p["b0"], p["b1"], p["b2"]], p["s"]) - p["s"],
    ),
}


def test_parameters_of_one_mode_are_not_exchanged():
    """Their sum is what the data know: the copies of a draw lie on one ridge."""
    parameters = {"a": REAL, "b": REAL, "s": POSITIVE}
    density = FunctionDensity(
        parameters,
        lambda p: (
            normal(Y, p["a"] + p["b"], p["s"])
            + normal(p["a"], 0, 5)
            + normal(p["b"], 0, 5)
            - p["s"]
        ),
        ascents=True,
    )
    found = {block.word: block.status for block in find(density, seconds=np.inf).blocks}
    assert found["a~b"] == "harmless"
    assert "live" not in found.values()


def test_a_sign_is_looked_for_whatever_the_random_points_have():
    """With seed 18 the scalar has one sign at all random points; seed 2 loses its share's digits at a wide one."""
    model = CASES["a sign changes"]
    for seed in (2, 18):
        density = FunctionDensity(model.parameters, model.function)
        assert find(density, seconds=np.inf, seed=seed).words == model.live, seed


@each("name", CASES)
def test_components_apart_are_found_and_no_others(name):
    model = CASES[name]
    density = FunctionDensity(model.parameters, model.function)
    found = find(density, seconds=np.inf)
    assert found.words == model.live
    assert {block.status for block in found.blocks} <= {"live", "near"}
    assert found.open == ()
    assert found.evaluations == density.calls < 3000
