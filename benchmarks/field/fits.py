"""Fits, and what may be used of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
from jax.scipy.special import logsumexp
from numpyro import distributions as dist
from scipy import stats

import onebasin as ob
from benchmarks.fits.claims import Moments, misses, too_large
from benchmarks.fits.simulated import independent, known_moments
from benchmarks.fits.simulated import target as simulated

from .cases import Case

SEEDS = (1, 2)
SCHOOLS = """data{int J;vector[J] y;vector[J] s;} parameters{real mu;real<lower=0> tau;vector[J] theta;}
model{mu~normal(0,5);tau~cauchy(0,5);theta~normal(mu,tau);y~normal(theta,s);}"""
EIGHT = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "s": [15, 10, 16, 11, 9, 11, 10, 18]}


def law(known: Any, name: str = "x", size: int = 1) -> Moments:
    """Mean, sd and quantiles of a law of SciPy, of each entry."""
    numbers = known.mean(), known.std(), *known.ppf([0.05, 0.95])
    return {f"{name}[{i}]" if size > 1 else name: numbers for i in range(size)}


def claims(
    make: Callable[[int], Any], wanted: Moments, verdicts: tuple[str, ...] = (), seeds: Any = SEEDS
) -> tuple[bool, str]:
    """Fit with every seed: what the verdict lets one use is right, and the verdict is one of `verdicts` if any."""
    right, told = True, []
    for seed in seeds:
        fit = make(seed)
        diagnosis = ob.diagnose(fit)
        held = not any(too_large(misses(fit, diagnosis, wanted)[1]))
        right &= held and (not verdicts or diagnosis.verdict in verdicts)
        told.append(f"{diagnosis.verdict}{'' if held else ', claims what is wrong'}")
    return right, "; ".join(told)


def refused(call: Callable[[], Any], *words: str) -> tuple[bool, str]:
    """An error that says all of the words."""
    try:
        return False, f"no error: {call()}"[:200]
    except ob.OnebasinError as error:
        return all(word in str(error) for word in words), str(error)[:120]


def normal(rho: float) -> ob.Target:
    """Two correlated coordinates."""
    precision = jnp.linalg.inv(jnp.array([[1, rho], [rho, 1.0]]))
    return ob.target(lambda v: -0.5 * v["x"] @ precision @ v["x"], {"x": ("real", 2)})


def student(nu: float) -> ob.Target:
    """A t distribution."""
    return ob.target(lambda v: -(nu + 1) / 2 * jnp.log1p(v["x"] ** 2 / nu), {"x": "real"})


def two(far: float, share: float = 0.5, sd: float = 0.3) -> tuple[ob.Target, Moments]:
    """A standard normal and a second mode."""
    logs = jnp.log(jnp.array([1 - share, share / sd]))

    def height(v: dict[str, Any]) -> Any:
        return logsumexp(logs - 0.5 * jnp.array([v["x"] ** 2, ((v["x"] - far) / sd) ** 2]))

    rng = np.random.default_rng(0)
    other = rng.random(1_000_000) < share
    x = np.where(other, far + sd * rng.normal(size=len(other)), rng.normal(size=len(other)))
    return ob.target(height, {"x": "real"}), {
        "x": (x.mean(), x.std(), *np.quantile(x, [0.05, 0.95]))
    }


def of(**sites: dist.Distribution) -> ob.Target:
    """A model of independent variables."""
    return ob.numpyro_model(independent(**sites), name="law")


def groups(
    number: int, method: str, verdicts: tuple[str, ...] = (), **how: Any
) -> tuple[bool, str]:
    """A random hierarchy, known by quadrature."""
    from benchmarks.fits import hierarchies
    from benchmarks.fits.claims import moments

    target, draws = hierarchies.made(number)
    try:
        return claims(lambda s: ob.infer(target, method, seed=s, **how), moments(draws), verdicts)
    except ob.OnebasinError as error:  # centred, the log density rises without bound as tau falls
        unbounded = method == "laplace" and "-centred-" in target.name
        return unbounded and "no maximum" in str(error) and "`tau`" in str(error), str(error)[:90]


def schools() -> ob.Target:
    """Eight schools, centred."""
    return ob.stan_program(SCHOOLS, EIGHT)


def arrives(family: str) -> tuple[bool, str]:
    """ADVI of a standard normal meets its criterion."""
    found = [ob.advi(normal(0.0), family=family, weights=False, seed=s) for s in range(5)]
    met = sum(int(fit.attrs["converged"]) for fit in found)
    return met == 5, f"{met} of 5"


def edge() -> tuple[bool, str]:
    """No maximum of a hierarchy around its mean."""
    found = ob.optimize(schools(), seed=1)
    note = found.attrs.get("optimum_note", "")
    return not found.attrs["converged"] and "`tau`" in note, note[:100]


def advice() -> tuple[bool, str]:
    """Full rank is not advised to full rank."""
    fit = ob.advi(simulated("funnel"), family="fullrank", weights=False, seed=1)
    said = str(ob.diagnose(fit))
    return "fullrank" not in said and "full rank" not in said, said.splitlines()[1][:100]


def network() -> tuple[bool, str]:
    """A network's default stays plain."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 1)), rng.normal(size=(20, 1))
    target = ob.networks.BayesianNetwork(ob.networks.Network(1, (3,), 1)).condition(x, y)
    fit = ob.advi(target, iterations=200, seed=1)
    return "worth" not in fit.attrs, f"groups {list(fit.children)}"


def dead() -> tuple[bool, str]:
    """Weights of many coordinates are dead: the fit stays plain and says so."""
    fit = ob.advi(simulated_many(), iterations=300, seed=1)
    note = fit.attrs.get("weights_note", "")
    return bool(note) and ob.diagnose(fit).verdict == "unusable", note[:90]


def simulated_many() -> ob.Target:
    """Eighty coordinates of a banana each."""

    def model() -> None:
        x = numpyro.sample("x", dist.Normal(0, 1).expand([40]).to_event(1))
        numpyro.sample("y", dist.Normal(2 * x**2, 0.3).to_event(1))

    return ob.numpyro_model(model, name="bananas")


def heavy() -> tuple[bool, str]:
    """A parameter with a heavy tail among others: what is claimed of it is right, and nothing else is named."""
    target = of(k=dist.InverseGamma(2.2, 1.0), z=dist.Normal(0, 1).expand([3]).to_event(1))
    known = law(stats.invgamma(2.2), "k") | law(N(), "z", 3)
    named, right, verdicts = set[str](), True, list[str]()
    for seed in SEEDS:
        diagnosis = ob.diagnose(fit := ob.dadvi(target, seed=seed))
        right &= not any(too_large(misses(fit, diagnosis, known)[1]))
        for cause in diagnosis.judgement.causes:
            named |= {*cause.numbers.get("sds", ()), *cause.numbers.get("means", ())}
        verdicts.append(diagnosis.verdict)
    return right and named <= {"k"} and "unusable" not in verdicts, f"{verdicts}, names {named}"


usable, plain = ("usable",), {"weights": False, "draws": 4000}  # errors of quantiles: .03 sds
N = stats.norm
CASES: tuple[Case, ...] = (
    Case(
        "mean field of a correlated normal, plain",
        "sds named, or not usable",
        lambda: claims(
            lambda s: ob.advi(normal(0.9), seed=s, **plain),
            law(N(), size=2),
            ("unusable", "partly"),
        ),
    ),
    Case(
        "mean field of a correlated normal",
        "usable",
        lambda: claims(lambda s: ob.advi(normal(0.9), seed=s), law(N(), size=2), usable),
    ),
    Case(
        "full rank of a normal, plain",
        "usable",
        lambda: claims(
            lambda s: ob.advi(normal(0.7), family="fullrank", seed=s, **plain),
            law(N(), size=2),
            usable,
        ),
    ),
    Case(
        "Laplace of an exponential, plain",
        "not usable (mean 1.6, sd 2)",
        lambda: claims(
            lambda s: ob.laplace(of(x=dist.Exponential(1.0)), seed=s, **plain),
            law(stats.expon()),
            seeds=range(5),
        ),
    ),
    Case(
        "Laplace of an exponential",
        "usable",
        lambda: claims(
            lambda s: ob.laplace(of(x=dist.Exponential(1.0)), seed=s), law(stats.expon()), usable
        ),
    ),
    *(
        Case(
            f"t with {nu} degrees of freedom",
            "no sd is claimed that is wrong",
            partial(
                lambda nu: claims(
                    lambda s: ob.dadvi(student(nu), seed=s), law(stats.t(nu)), seeds=range(4)
                ),
                nu,
            ),
        )
        for nu in (2.05, 2.2, 2.5, 3.0)
    ),
    Case(
        "t with 1.5 degrees of freedom",
        "no sd",
        lambda: claims(
            lambda s: ob.laplace(student(1.5), seed=s),
            law(stats.t(1.5)) | {"x": (0.0, 1e9, *stats.t(1.5).ppf([0.05, 0.95]))},
            ("partly", "unusable"),
        ),
    ),
    *(
        Case(
            f"a second mode at {far:g}",
            "usable",
            partial(
                lambda far: claims(lambda s: ob.dadvi(two(far)[0], seed=s), two(far)[1], usable),
                far,
            ),
        )
        for far in (4.0, 10.0, 30.0)
    ),
    *(
        Case(
            f"a hierarchy of {kind}, {method}",
            "what is claimed is right",
            partial(groups, number, method),
        )
        for number, kind in ((4, "successes"), (5, "counts"), (6, "measurements"), (7, "answers"))
        for method in ("dadvi", "advi", "laplace")
    ),
    *(
        Case(
            f"a hierarchy of {kind}, plain {method}",
            "what is claimed is right",
            partial(groups, number, method, **plain),
        )
        for number, kind in ((4, "successes"), (5, "counts"))
        for method in ("dadvi", "advi", "laplace")
    ),
    Case(
        "ADVI of a standard normal, full rank", "meets its criterion", partial(arrives, "fullrank")
    ),
    Case(
        "ADVI of a standard normal, mean field",
        "meets its criterion",
        partial(arrives, "meanfield"),
    ),
    Case("optimum of centred eight schools", "no maximum: tau", edge),
    Case(
        "Laplace of centred eight schools",
        "no maximum: tau",
        lambda: refused(lambda: ob.laplace(schools(), seed=1), "no maximum", "`tau`"),
    ),
    Case("advice to a full-rank fit", "not full rank", advice),
    Case("one heavy parameter among others", "claims are right, no other is named", heavy),
    Case("ADVI of a network", "plain by default", network),
    Case("ADVI of eighty coordinates", "plain, with a note", dead),
    Case(
        "new: logistic regression of separated data, Laplace",
        "no maximum: b",
        lambda: refused(
            lambda: ob.laplace(
                ob.target(
                    lambda v: -jnp.logaddexp(0.0, -v["b"] * jnp.array([1.0, 2.0])).sum(),
                    {"b": "real"},
                ),
                seed=1,
            ),
            "no maximum",
            "`b`",
        ),
    ),
    Case(
        "new: a mode of 5 % at 12 sds",
        "no quantile is claimed that is wrong",
        lambda: claims(lambda s: ob.dadvi(two(12.0, 0.05)[0], seed=s), two(12.0, 0.05)[1]),
    ),
    Case(
        "new: a beta with both ends open",
        "usable",
        lambda: claims(
            lambda s: ob.dadvi(of(x=dist.Beta(0.5, 0.5)), seed=s), law(stats.beta(0.5, 0.5)), usable
        ),
    ),
    Case(
        "new: a lognormal of sd 1.5, plain Laplace",
        "usable: it is exact",
        lambda: claims(
            lambda s: ob.laplace(of(x=dist.LogNormal(0, 1.5)), seed=s, **plain),
            law(stats.lognorm(1.5)),
        ),
    ),
    *(
        Case(
            f"new: {name}",
            "what is claimed is right",
            partial(
                lambda n: claims(lambda s: ob.dadvi(simulated(n), seed=s), known_moments(n)), name
            ),
        )
        for name in ("funnel", "banana", "horseshoe-prior", "hierarchy-small", "spike-and-slab")
    ),
    Case(
        "new: a precision, plain mean field",
        "what is claimed is right",
        lambda: claims(
            lambda s: ob.advi(of(x=dist.Gamma(0.7, 1.0)), seed=s, **plain), law(stats.gamma(0.7))
        ),
    ),
)
