"""Cases of symmetries: searched from Python, in fits, of sticks, of surplus components, and of files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import xarray as xr
from jax.scipy.special import logsumexp
from numpyro.handlers import scope

import onebasin as ob

from .cases import Case

PROGRAMS = Path(__file__).parent / "programs"
Answer = tuple[bool, str]


def program(name: str, **data: Any) -> ob.Target:
    """A Stan program of the folder, with its own data unless some are given."""
    return ob.stan_program(PROGRAMS / f"{name}.stan", data or PROGRAMS / f"{name}.json")


def normals(seed: int, *counts: int, apart: float = 6.0) -> np.ndarray:
    """Numbers from normal distributions so far apart."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(apart * k, 0.8, n) for k, n in enumerate(counts)]) - apart / 2


def mixture(k: int, y: np.ndarray, prior: float = 4.0) -> ob.Target:
    """A mixture of k normals."""
    return program("mixture", N=len(y), K=k, prior=prior, y=y)


def factors(k: int, seed: int = 1, n: int = 100) -> ob.Target:
    """A model of k factors; the data have two."""
    rng, load = np.random.default_rng(seed), np.kron(np.eye(2), 0.8 * np.ones((4, 1)))
    y = rng.normal(size=(n, 2)) @ load.T + 0.5 * rng.normal(size=(n, 8))
    return program("factors", N=n, P=8, K=k, C=y.T @ y)


def sticks(k: int, y: np.ndarray, *, stan: bool = True, named: bool = True) -> ob.Target:
    """A mixture whose weights are broken off a stick."""

    def model(y: np.ndarray) -> None:
        alpha = numpyro.sample("alpha", dist.Gamma(2.0, 2.0))
        v = numpyro.sample("v", dist.Beta(1.0, alpha).expand([k - 1]).to_event(1))
        mu = numpyro.sample("mu", dist.Normal(0, 5).expand([k]).to_event(1))
        sigma = numpyro.sample("sigma", dist.LogNormal(0, 0.5).expand([k]).to_event(1))
        w = jnp.append(v, 1.0) * jnp.append(1.0, jnp.cumprod(1 - v))
        w = numpyro.deterministic("w", w) if named else w
        parts = dist.Normal(mu, sigma).log_prob(jnp.asarray(y)[:, None])
        numpyro.factor("y", logsumexp(jnp.log(w) + parts, axis=1).sum())

    if stan:
        return program("stick_breaking", N=len(y), K=k, y=y)
    return ob.numpyro_model(model, {"y": y})


def sampled(target: ob.Target, seed: int, fit: Any = None, **how: Any) -> xr.DataTree:
    """Draws, of NUTS unless another method is named."""
    how = {"warmup": 500, "draws": 500} | how if fit is None else how
    return (fit or ob.nuts)(target, seed=seed, progress=False, **how)


def judge(
    make: Callable[[], ob.Target], verdicts: str, *, seeds: Sequence[int] = (1, 2), **how: Any
) -> Answer:
    """Ask for the verdicts of a target's draws by several seeds; `verdicts` are those that are right."""
    target = make()
    found = [ob.diagnose(sampled(target, seed, **how)).verdict for seed in seeds]
    return all(each in verdicts.split() for each in found), " ".join(found)


def weights(seed: int, **how: Any) -> Answer:
    """The weights of a mixture of regressions by Pathfinder, which meets several labellings."""
    fit = sampled(program("regressions"), seed, fit=ob.pathfinder, **how)
    w = np.sort(ob.align(fit).posterior["posterior"]["w"].mean(("chain", "draw")))
    verdict = ob.diagnose(fit).verdict
    return verdict == "aligned" and np.abs(
        w - (0.187, 0.267, 0.546)
    ).max() < 0.01, f"{verdict}, {w}"


def derived(seed: int, **how: Any) -> Answer:
    """Quantities of sigma, which is alike in both components, have to be those of the aligned sigma."""
    target = program("derived", N=50, y=normals(3, 25, 25))
    aligned = ob.align(sampled(target, seed, **how), log_density=partial(ob.log_density, target))
    own = aligned.posterior["posterior"]
    off = float(np.abs(own["square"].values - own["sigma"].values ** 2).max())
    return off < 1e-9, f"off by {off:.1g}"


def no_alignment(target: ob.Target, words: str | None) -> Answer:
    """An alignment that would leave the posterior has to be rejected."""
    draws = sampled(target, 1)
    try:
        ob.align(draws, words)
    except ValueError as error:
        return True, str(error)[-90:]
    return False, "aligned"


def both_doors(seed: int) -> Answer:
    """The same draws with the search and without, and the symmetry recorded by the search alone."""
    target = mixture(2, normals(1, 20, 20))
    one, other = sampled(target, seed), sampled(target, seed, symmetry=False)
    same = all(one["posterior"][n].equals(other["posterior"][n]) for n in ("mu", "w"))
    words = json.loads(one.attrs["symmetry_found"])["exchangeable"]
    return same and words == ["w,mu,sigma"] and other.attrs["symmetry"] == "[]", f"{same}, {words}"


def bad_file() -> Answer:
    """A file whose own symmetry names an axis that is not there."""
    tree = sampled(mixture(2, normals(1, 20, 20)), 1, symmetry=False, draws=50)
    tree.attrs["symmetry"] = '[{"kind": "exchangeable", "axes": {"mu": 4}}]'
    try:
        ob.diagnose(tree)
    except ValueError as error:
        return "attribute 'symmetry'" in str(error), str(error)[:90]
    return False, "judged"


def plain(k: int) -> ob.Target:
    """A normal distribution of that many entries with a scale, and no symmetry."""
    return ob.stan_program(
        f"parameters {{ vector[{k}] x; real<lower=0> s; }} "
        f"model {{ for (i in 1 : {k}) x[i] ~ normal(i, s); s ~ lognormal(0, 0.2); }}"
    )


def row(fit: Any, seed: int) -> Answer:
    """The row on labels of an approximation of a model that has none."""
    found = ob.diagnose(sampled(plain(3), seed, fit=fit)).judgement.rows[0]
    return found.outcome == "passed", found.sentence


def enumerated() -> Answer:
    """A discrete variable that NumPyro would sum over is rejected."""

    def model() -> None:
        w = numpyro.sample("w", dist.Dirichlet(jnp.ones(2)))
        z = numpyro.sample("z", dist.Categorical(w), infer={"enumerate": "parallel"})
        numpyro.sample("y", dist.Normal(z, 1.0), obs=0.3)

    try:
        return False, str(ob.nuts(ob.numpyro_model(model)))[:60]
    except ob.OnebasinError as error:
        return "discrete variable z" in str(error), str(error)[:60]


def scoped(divider: str) -> Answer:
    """A mixture inside a scope: its symmetry is found, and draws are aligned, by either name."""

    def model() -> None:
        with scope(prefix="mix", divider=divider):
            w = numpyro.sample("w", dist.Dirichlet(jnp.ones(2)))
            m = numpyro.sample("m", dist.Normal(0, 6).expand([2]).to_event(1))
        law = dist.MixtureSameFamily(dist.Categorical(w), dist.Normal(m, 1.0))
        numpyro.sample("y", law, obs=TWO)

    draws = sampled(ob.numpyro_model(model), 1)
    words = json.loads(draws.attrs["symmetry_found"])["exchangeable"]
    ob.align(draws, f"mix{divider}w,mix{divider}m")
    return set(words[0].split(",")) == {"mix.m", "mix.w"}, ob.diagnose(draws).verdict


TWO, THREE = normals(0, 35, 25), normals(1, 30, 25, 20)
LONG = {"seeds": (1,), "warmup": 1000, "draws": 2000, "target_acceptance": 0.98}
JUDGED: tuple[tuple[str, str, Callable[[], ob.Target], dict[str, Any]], ...] = (
    # (name, right verdicts, target, settings); the first are the earlier round's
    ("near mirror modes", "unusable", partial(program, "near"), {}),
    ("sorted simplex", "aligned unusable", partial(program, "sorted_simplex"), {}),
    ("flip-flop kinetics", "unusable usable", partial(program, "flip_flop"), {}),
    ("components as scalars", "aligned", partial(program, "scalars"), {}),
    ("a share on the logit scale", "aligned", partial(program, "logit"), {}),
    ("two tones", "aligned unusable invariant", partial(program, "tones"), {}),
    ("an order of a first coordinate", "unusable", partial(program, "ordered_first"), {}),
    ("phases of a wave", "unusable", partial(program, "phase"), {}),
    ("two rises", "aligned", partial(program, "two_rises"), {}),
    ("two kernels", "aligned unusable", partial(program, "two_kernels"), {}),
    ("two breaks at unknown times", "aligned", partial(program, "breaks"), {}),
    ("a mixture of experts", "aligned", partial(program, "experts"), {"seeds": (1,)}),
    ("two abilities", "aligned", partial(program, "abilities"), {"seeds": (1,), "draws": 1200}),
    ("sparse weights, empty components", "invariant unusable", partial(program, "empty"), {}),
    ("blocks with mixed members", "aligned", partial(program, "blocks"), {"seeds": (1,)}),
    ("clusters with correlations", "aligned", partial(program, "mvn_lkj"), {"seeds": (1,)}),
    ("states with regressions", "aligned", partial(program, "hmm_logit"), {"seeds": (1,)}),
    ("two components, two needed", "aligned", partial(mixture, 2, TWO), {}),
    ("three components, two needed", "invariant unusable", partial(mixture, 3, TWO), {}),
    ("two factors, two needed", "aligned", partial(factors, 2), {}),
    ("three factors, two needed", "invariant unusable", partial(factors, 3), {}),
    ("sticks, two groups", "invariant", partial(sticks, 6, TWO), LONG),
    ("sticks, three groups", "invariant unusable usable", partial(sticks, 6, THREE), {}),
    ("new: four factors, two needed", "invariant unusable", partial(factors, 4), {}),
    ("new: three factors, 400 rows", "invariant unusable", partial(factors, 3, n=400), {}),
    ("new: two factors, 40 rows", "aligned", partial(factors, 2, n=40), {}),
    ("new: Pathfinder without labels", "usable", partial(plain, 4), {"fit": ob.pathfinder}),
    ("new: empty components", "invariant unusable", partial(mixture, 4, TWO, 0.3), {}),
)
CASES: tuple[Case, ...] = (
    *(
        Case(name, verdicts.replace(" ", " or "), partial(judge, make, verdicts, **how))
        for name, verdicts, make, how in JUDGED
    ),
    Case("an enumerated variable", "rejected", enumerated),
    Case("a mixture inside a scope", "mix.w and mix.m", partial(scoped, "/")),
    Case("a mixture inside a scope, dots", "mix.w and mix.m", partial(scoped, ".")),
    Case("search from Python", "same draws, w,mu,sigma recorded", partial(both_doors, 1)),
    Case("labels of Pathfinder", "aligned, .187 .267 .546", partial(weights, 1)),
    Case("labels of Pathfinder, no search", "the same", partial(weights, 2, symmetry=False)),
    Case("derived of alike components", "equal", partial(derived, 1, symmetry=False)),
    Case("new: derived, three chains", "equal", partial(derived, 4, symmetry=False, chains=3)),
    Case("new: derived, searched", "equal", partial(derived, 2)),
    Case("sticks are not aligned", "rejected", partial(no_alignment, sticks(6, TWO), None)),
    Case("new: sticks by words", "rejected", partial(no_alignment, sticks(6, TWO), "mu,sigma,w")),
    Case(
        "new: sticks of NumPyro without weights",
        "rejected",
        partial(no_alignment, sticks(5, TWO, stan=False, named=False), "mu,sigma"),
    ),
    Case("a file's symmetry does not fit", "the file is named", bad_file),
    Case("labels row of Laplace", "passed", partial(row, ob.laplace, 1)),
    Case("new: labels row of DADVI", "passed", partial(row, ob.dadvi, 2)),
)
