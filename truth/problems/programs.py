"""Problems defined by programs: mixtures, item response, factors, topics, hidden Markov, latent classes, schools.

Each model has two definitions, in NumPyro here and in Stan (`programs/`). The arguments of the functions have the
names of the programs' data, and the sites have the names of their parameters. The data are files (`data/`). Some
models have a family: the unconditioned model with a simulator in NumPy. The simulator shares no code with the density,
so calibration detects errors in either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp
from scipy.special import expit

from onebasin.base.errors import StudyError
from onebasin.base.text import read_json_file
from onebasin.models import Target
from onebasin.models.numpyro_target import numpyro_model

from . import problem
from .problem import ADAPTED, RECIPE, Invariant, Problem

if TYPE_CHECKING:
    from onebasin.inference.calibration.family import Family

HERE = Path(__file__).parent
PROGRAMS, DATA = HERE / "programs", HERE / "data"
Array = Any  # A NumPy or JAX array.


def mixture_of_two(N: int, y: Array) -> None:
    """Define a mixture of two Gaussian components; `theta` is the weight of the first."""
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand([2]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0).expand([2]).to_event(1))
    theta = numpyro.sample("theta", dist.Beta(5.0, 5.0))
    numpyro.sample("y", _mixed(jnp.stack([theta, 1 - theta]), mu, sigma, N), obs=y)


def mixture(num_components: int, num_obs: int, y: Array) -> None:
    """Define a mixture of Gaussian components whose weights form a simplex."""
    weight = numpyro.sample("weight", dist.Dirichlet(jnp.full(num_components, 2.0)))
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand([num_components]).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(0.0, 0.5).expand([num_components]).to_event(1))
    numpyro.sample("y", _mixed(weight, mu, sigma, num_obs), obs=y)


def _mixed(weight: jax.Array, mu: jax.Array, sigma: jax.Array, num_obs: int) -> dist.Distribution:
    weight, mu, sigma = (jnp.broadcast_to(v, (num_obs, *v.shape)) for v in (weight, mu, sigma))
    return dist.MixtureSameFamily(dist.Categorical(probs=weight), dist.Normal(mu, sigma))


def item_response(I: int, J: int, y: Array) -> None:  # noqa: E741
    """Define an item response model with discrimination `a` and difficulty `b` per item, and abilities `theta`."""
    theta = numpyro.sample("theta", dist.Normal(0.0, 1.0).expand([J]).to_event(1))
    a = numpyro.sample("a", dist.Normal(0.0, 2.0).expand([I]).to_event(1))
    b = numpyro.sample("b", dist.Normal(0.0, 3.0).expand([I]).to_event(1))
    logits = a[:, None] * theta[None, :] - b[:, None]
    numpyro.sample("y", dist.Bernoulli(logits=logits).to_event(2), obs=y)


def factors(
    num_factors: int, num_items: int, num_obs: int, scatter: Array, loading_scale: float
) -> None:
    """Define a factor analysis with sparse loadings, marginalised over the factors."""
    shape = [num_items, num_factors]
    loadings = numpyro.sample("L", dist.Laplace(0.0, loading_scale).expand(shape).to_event(2))
    psi = numpyro.sample("psi", dist.LogNormal(-0.5, 0.5).expand([num_items]).to_event(1))
    root = jnp.linalg.cholesky(loadings @ loadings.T + jnp.diag(psi**2))
    spread = jax.scipy.linalg.cho_solve((root, True), jnp.asarray(scatter))
    log_det = 2 * jnp.log(jnp.diagonal(root)).sum()
    numpyro.factor("scatter", -0.5 * (num_obs * log_det + jnp.trace(spread)))


def topics(
    num_topics: int, num_docs: int, num_words: int, counts: Array, alpha: float, beta: float
) -> None:
    """Define latent Dirichlet allocation, marginalised over the topics of the tokens."""
    topic, word = jnp.full(num_topics, float(alpha)), jnp.full(num_words, float(beta))
    theta = numpyro.sample("theta", dist.Dirichlet(topic).expand([num_docs]).to_event(1))
    phi = numpyro.sample("phi", dist.Dirichlet(word).expand([num_topics]).to_event(1))
    numpyro.factor("counts", (counts * jnp.log(theta @ phi)).sum())


def hidden_markov(num_states: int, num_obs: int, y: Array) -> None:
    """Define a hidden Markov model with normal emissions, marginalised over the paths."""
    ones = jnp.ones(num_states)
    start = numpyro.sample("start", dist.Dirichlet(ones))
    transition = numpyro.sample("A", dist.Dirichlet(ones).expand([num_states]).to_event(1))
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand([num_states]).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(0.0, 0.5).expand([num_states]).to_event(1))
    emission = dist.Normal(mu[None, :], sigma[None, :]).log_prob(jnp.asarray(y)[:, None])
    # Multiply (state, state) matrices in a tree of depth log(N), because a scan needs N tiny steps.
    first = jnp.log(start) + emission[0]
    steps = jnp.log(transition)[None] + emission[1:, None, :]
    while len(steps) > 1:
        pairs = steps[: len(steps) // 2 * 2].reshape(-1, 2, num_states, num_states)
        joined = logsumexp(pairs[:, 0, :, :, None] + pairs[:, 1, None, :, :], axis=2)
        steps = jnp.concatenate([joined, steps[len(pairs) * 2 :]])
    numpyro.factor("y", logsumexp(first[:, None] + steps[0]))


def latent_classes(K: int, J: int, I: int, y: Array) -> None:  # noqa: E741
    """Define latent classes of persons, with yes probabilities per class and item, marginalised over the classes."""
    share = numpyro.sample("share", dist.Dirichlet(jnp.full(K, 2.0)))
    q = numpyro.sample("q", dist.Beta(2.0, 2.0).expand([K, I]).to_event(2))
    yes = np.asarray(y, dtype=np.float64)
    part = yes @ jnp.log(q).T + (1 - yes) @ jnp.log1p(-q).T
    numpyro.factor("y", logsumexp(jnp.log(share)[None, :] + part, axis=1).sum())


def schools(J: int, y: Array, sigma: Array) -> None:
    """Define Rubin's eight schools, non-centred."""
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    eta = numpyro.sample("eta", dist.Normal(0.0, 1.0).expand([J]).to_event(1))
    theta = numpyro.deterministic("theta", mu + tau * eta)
    numpyro.sample("y", dist.Normal(theta, np.asarray(sigma, np.float64)).to_event(1), obs=y)


@dataclass(frozen=True)
class Stated:
    """A model not yet conditioned on data, defined for both engines."""

    model: Callable[..., None]
    """NumPyro model whose arguments are the data of the Stan program, which has the model's name."""
    symmetry: str = ""  # Declaration of the symmetry (`models.symmetry.words`); empty without one.
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def condition(self, name: str, data: Mapping[str, Any]) -> Target:
        """Condition the model on data."""
        from onebasin.stan import stan_program

        target = numpyro_model(
            self.model, dict(data), symmetry=self.symmetry or (), name=name, dims=self.dims
        )
        program = stan_program(PROGRAMS / f"{self.model.__name__}.stan", dict(data))
        return replace(target, stan_program=program.stan_program)


Values = dict[str, np.ndarray]
Sizes = Mapping[str, int]
Simulated = tuple[Values, np.ndarray]  # Parameters and the data `y`.
Simulate = Callable[[np.random.Generator, Sizes], Simulated]


def simulate_mixture_of_two(rng: np.random.Generator, sizes: Sizes) -> Simulated:
    """Simulate `mixture-2`."""
    mu, sigma, theta = rng.normal(0, 5, 2), np.abs(rng.normal(0, 2, 2)), rng.beta(5, 5)
    part = np.where(rng.uniform(size=sizes["N"]) < theta, 0, 1)
    values = {"mu": mu, "sigma": sigma, "theta": np.array(theta)}
    return values, rng.normal(mu[part], sigma[part])


def simulate_mixture(rng: np.random.Generator, sizes: Sizes) -> Simulated:
    """Simulate `mixture-3`, `mixture-3-overlap` and `mixture-5`."""
    count = sizes["num_components"]
    weight, mu = rng.dirichlet(np.full(count, 2.0)), rng.normal(0, 5, count)
    sigma = rng.lognormal(0, 0.5, count)
    values = {"weight": weight, "mu": mu, "sigma": sigma}
    part = rng.choice(count, size=sizes["num_obs"], p=weight)
    return values, rng.normal(mu[part], sigma[part])


def simulate_item_response(rng: np.random.Generator, sizes: Sizes) -> Simulated:
    """Simulate `item-response-2pl`."""
    theta, a = rng.normal(size=sizes["J"]), rng.normal(0, 2, sizes["I"])
    b = rng.normal(0, 3, sizes["I"])
    right = rng.uniform(size=(sizes["I"], sizes["J"])) < expit(np.outer(a, theta) - b[:, None])
    return {"theta": theta, "a": a, "b": b}, right.astype(int)


def simulate_hidden_markov(rng: np.random.Generator, sizes: Sizes) -> Simulated:
    """Simulate `hidden-markov`."""
    count = sizes["num_states"]
    start, transition = rng.dirichlet(np.ones(count)), rng.dirichlet(np.ones(count), size=count)
    mu, sigma = rng.normal(0, 5, count), rng.lognormal(0, 0.5, count)
    values = {"start": start, "A": transition, "mu": mu, "sigma": sigma}
    states = [rng.choice(count, p=start)]
    for _ in range(sizes["num_obs"] - 1):
        states.append(rng.choice(count, p=transition[states[-1]]))
    return values, rng.normal(mu[states], sigma[states])


def _family(
    name: str,
    stated: Stated,
    data: Mapping[str, Any],
    simulate: Simulate,
    invariants: Mapping[str, Invariant],
) -> Family:
    """Make the family of a problem: its model in both engines, and a simulator of data of the same size.

    The invariants of the problem become test quantities.
    """
    from onebasin.inference.calibration.family import Family

    sizes = {key: value for key, value in data.items() if isinstance(value, int)}

    def simulated(rng: np.random.Generator) -> tuple[Values, dict[str, np.ndarray]]:
        values, y = simulate(rng, sizes)
        return values, {"y": y}

    def of_points(f: Invariant, values: Mapping[str, np.ndarray], data: object) -> np.ndarray:
        return f({key: np.asarray(value)[None] for key, value in values.items()})[0]

    return Family(
        name,
        simulated,
        lambda drawn: stated.condition(name, {**sizes, **drawn}),
        model=lambda drawn: partial(stated.model, **sizes, **drawn),
        quantities={key: partial(of_points, f) for key, f in invariants.items()},
    )


_PART = ("component",)
MIXTURE_OF_TWO = Stated(mixture_of_two, "mu,sigma,1-theta", {"mu": _PART, "sigma": _PART})
MIXTURE = Stated(mixture, "weight,mu,sigma", dict.fromkeys(("weight", "mu", "sigma"), _PART))
ITEM_RESPONSE = Stated(
    item_response, "+-theta:,+-a:", {"theta": ("person",), "a": ("item",), "b": ("item",)}
)
FACTORS = Stated(factors, "+-L:1", {"L": ("item", "factor"), "psi": ("item",)})
TOPICS = Stated(topics, "theta:1,phi", {"theta": ("doc", "topic"), "phi": ("topic", "word")})
HIDDEN_MARKOV = Stated(
    hidden_markov,
    "A:0:1,mu,sigma,start",
    {"A": ("state", "next"), "mu": ("state",), "sigma": ("state",), "start": ("state",)},
)
LATENT_CLASSES = Stated(latent_classes, "share,q", {"share": ("class",), "q": ("class", "item")})
SCHOOLS = Stated(schools, dims={"eta": ("school",), "theta": ("school",)})


def read_data(name: str) -> dict[str, Any]:
    """Read the data of a problem."""
    return read_json_file(DATA / f"{name}.json", error=StudyError)


def _problem(
    name: str,
    title: str,
    stated: Stated,
    *,
    simulate: Simulate | None = None,
    invariants: Mapping[str, Invariant],
    **more: Any,
) -> Problem:
    return Problem(
        name,
        title,
        lambda: stated.condition(name, read_data(name)),
        family=None
        if simulate is None
        else lambda: _family(name, stated, read_data(name), simulate, invariants),
        invariants=invariants,
        **more,
    )


_LABELS = ("label switching",)


def _mixture(
    name: str,
    title: str,
    stated: Stated,
    simulate: Simulate,
    points: tuple[float, ...],
    *keywords: str,
    **more: Any,
) -> Problem:
    """Make the problem of a mixture; its density at some points is an invariant."""
    invariants: dict[str, Invariant] = {
        "ordered(mu)": problem.ordered("mu"),
        "mean(y)": problem.mixture_mean,
        "sd(y)": problem.mixture_sd,
        "density(y)": problem.mixture_density(points),
    }
    more["references"] = ("Stephens 2000, Dealing with label switching in mixture models",)
    more["keywords"] = ("mixture", *_LABELS, *keywords)
    return _problem(name, title, stated, simulate=simulate, invariants=invariants, **more)


def problems() -> tuple[Problem, ...]:
    """Return all problems that are programs."""
    return (
        _mixture(
            "mixture-2",
            "Two normals whose labels nothing tells apart; the weight becomes its complement",
            *(MIXTURE_OF_TWO, simulate_mixture_of_two, (-4.0, -2.0, 0.0, 2.0, 4.0)),
        ),
        _mixture(
            "mixture-3",
            "Three normals, apart from each other",
            *(MIXTURE, simulate_mixture, (-4.0, -2.0, 0.0, 2.0, 4.0)),
        ),
        _mixture(
            "mixture-3-overlap",
            "Three normals that overlap, so that labels switch within chains and aligned means depend on the rule",
            *(MIXTURE, simulate_mixture, (-2.0, -1.0, 0.0, 1.0, 2.0), "overlap"),
            settings=replace(ADAPTED, target_acceptance=0.95),
        ),
        _mixture(
            "mixture-5",
            "Five normals, apart from each other: 120 labellings",
            *(MIXTURE, simulate_mixture, (-8.0, -4.0, 0.0, 4.0, 8.0)),
            settings=replace(ADAPTED, init="optimum"),
        ),
        _problem(
            "item-response-2pl",
            "Item response with two parameters an item: abilities and discriminations may change sign together",
            ITEM_RESPONSE,
            simulate=simulate_item_response,
            invariants={"|a|": problem.sizes("a"), "right": problem.right_answers},
            keywords=("item response", "reflection"),
        ),
        _problem(
            "factors",
            "Factor analysis with three sparse factors, their scores summed out: 48 labellings",
            FACTORS,
            settings=ADAPTED,
            invariants={"covariance": problem.covariances},
            keywords=("factor analysis", "sign symmetry", *_LABELS),
        ),
        _problem(
            "topics",
            "Latent Dirichlet allocation with two topics and 30 documents",
            TOPICS,
            settings=ADAPTED,
            invariants={"word": problem.word_shares(3)},
            references=("Blei, Ng and Jordan 2003, Latent Dirichlet allocation",),
            keywords=("topic model", *_LABELS),
        ),
        _problem(
            "hidden-markov",
            "A hidden Markov model with three states: rows and columns of the transition matrix move together",
            HIDDEN_MARKOV,
            settings=ADAPTED,
            simulate=simulate_hidden_markov,
            invariants={"ordered(mu)": problem.ordered("mu"), "staying": problem.staying},
            keywords=("hidden Markov model", *_LABELS),
        ),
        _problem(
            "latent-classes",
            "Three latent classes of 300 persons who answer eight questions with yes or no",
            LATENT_CLASSES,
            invariants={"ordered(share)": problem.ordered("share"), "yes": problem.item_shares},
            keywords=("latent class analysis", *_LABELS),
        ),
        _problem(
            "eight-schools",
            "Rubin's eight schools, non-centred: no symmetry, and public references to hold this one against",
            SCHOOLS,
            invariants={"theta": problem.school_effects},
            settings=replace(RECIPE, target_acceptance=0.99),
            references=("Rubin 1981, Estimation in parallel randomized experiments",),
            keywords=("hierarchical model",),
        ),
    )
