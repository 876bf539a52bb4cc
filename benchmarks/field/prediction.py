"""Predictions, leave-one-out and comparison: what verdicts, masks, names and random rows must do to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import xarray as xr

import onebasin as ob

from .cases import Case

ROWS = np.random.default_rng(39).normal(3, 1, 100)


def minibatch(y: Any) -> None:
    """State a mean of which a run sees ten random rows."""
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    with numpyro.plate("row", len(y), subsample_size=10):
        numpyro.sample("y", dist.Normal(mu, 1), obs=numpyro.subsample(y, 0))


def random_mask(y: Any) -> None:
    """State a mean of which a random key chooses the rows."""
    mu, key = numpyro.sample("mu", dist.Normal(0, 10)), numpyro.prng_key()
    seen = True if key is None else jax.random.bernoulli(key, 0.5, (len(y),))
    with numpyro.plate("row", len(y)), numpyro.handlers.mask(mask=seen):
        numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def latent_rows(y: Any) -> None:
    """State levels of which a run has five random ones."""
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    with numpyro.plate("group", 50, subsample_size=5):
        numpyro.sample("b", dist.Normal(mu, 1))
    numpyro.sample("y", dist.Normal(mu, 1).expand([len(y)]).to_event(1), obs=y)


def scaled(y: Any) -> None:
    """State a mean whose data count twice."""
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    with numpyro.plate("row", len(y), subsample_size=len(y)), numpyro.handlers.scale(scale=2.0):
        numpyro.sample("y", dist.Normal(mu, 1), obs=y)


def imputed(y: Any, seen: Any) -> None:
    """State a mean whose missing data are variables."""
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    with numpyro.plate("row", len(y)):
        numpyro.sample("y", dist.Normal(mu, 1), obs=y, obs_mask=seen)


def states(x: Any) -> None:
    """State two levels, and what each of them and both give at x."""
    mu = numpyro.sample("mu", dist.Normal(0, 3).expand([2]).to_event(1))
    numpyro.deterministic("each", mu * x)
    numpyro.deterministic("both", mu.sum() * x)


def only_a_factor(y: Any) -> None:
    """State a likelihood that predicts nothing."""
    a = numpyro.sample("a", dist.Normal(0, 1))
    numpyro.factor("likelihood", dist.Normal(a, 1).log_prob(jnp.asarray(y)).sum())


def refused(ask: Callable[[], Any], *words: str) -> tuple[bool, str]:
    """Ask, and expect an error with these words."""
    try:
        return False, str(ask())[:80]
    except ob.OnebasinError as error:
        return all(word in str(error) for word in words), str(error)[:120]


def with_method(method: str, model: Callable[..., None], *words: str) -> Callable[[], Any]:
    """Fit a model that must be rejected."""
    target = ob.numpyro_model(model, {"y": ROWS})
    return lambda: refused(lambda: getattr(ob, method)(target, seed=1), *words)


def tree(names: str = "", dims: tuple[str, ...] = ("row",), **groups: Any) -> xr.DataTree:
    """A posterior; observations may have letters for names."""
    coords = {"row": list(names)} if names else {}
    axes = {"posterior": ("k",), "log_likelihood": dims}
    made = {
        g: xr.Dataset(
            {n: (("chain", "draw", *axes[g])[: v.ndim], v) for n, v in own.items()},
            coords=coords if g == "log_likelihood" else {},
        )
        for g, own in groups.items()
    }
    return xr.DataTree.from_dict(made)


def mean_of(names: str = "", seed: int = 0, columns: Any = (), off: float = 0.0, **how: Any) -> Any:
    """A posterior of a mean with log likelihoods of eight observations, others in front of them."""
    mu = 1 + 0.1 * np.random.default_rng(seed).normal(size=(4, 250)) + off * np.arange(4)[:, None]
    y = np.array([0.3 * "abcdefghij".index(n) for n in names or "abcdefgh"])
    terms = -0.5 * (y - mu[..., None]) ** 2
    more = [np.broadcast_to(column, mu.shape)[..., None] for column in columns]
    values = np.concatenate([*more, terms], axis=2)
    return tree(names, posterior={"mu": mu}, log_likelihood={"y": values}, **how)


def switched(seed: int, swapped: tuple[int, ...], wide: float = 1.0, lift: float = 0.0) -> Any:
    """Two levels whose labels are swapped in some chains."""
    rng = np.random.default_rng(seed)
    mu = np.stack([rng.normal(m, wide * sd, (4, 400)) for m, sd in ((-2, 0.1), (2, 0.2))], -1)
    mu[list(swapped)] = mu[list(swapped)][..., ::-1]
    mu += lift * np.arange(4)[:, None, None]
    return tree(posterior={"mu": mu})


def often_switched() -> Any:
    """Two levels whose labels change at every draw."""
    mu = switched(1, ())["posterior"]["mu"].values
    return tree(posterior={"mu": np.random.default_rng(4).permuted(mu, axis=2)})


def first_masked() -> Any:
    """Named observations, the first of which is masked."""
    made = mean_of("abcdefgh")
    made["log_likelihood"]["y"][..., 0] = 0.0
    return made


def predicted(posterior: Any) -> tuple[bool, str]:
    """Predict from two levels at x = 3."""
    found = ob.predict(posterior, {"x": 3.0}, model=states)
    each = np.sort(found.predictions["each"].mean(("chain", "draw")).values)
    right = bool(np.abs(each - [-6, 6]).max() < 0.1) and found.judged.answer == "aligned"
    return right, f"{each.round(2)} {found.judged.answer}"


def of_apart() -> tuple[bool, str]:
    """Predict from chains that disagree."""
    found = ob.predict(switched(1, (), lift=3.0), {"x": 3.0}, model=states)
    return "Do not use" in repr(found), repr(found).splitlines()[1]


def left_out(posterior: Any, count: int, elpd: float | None = None) -> tuple[bool, str]:
    """Leave observations out, which are as many and as likely as is known."""
    found = ob.loo(posterior)
    same = elpd is None or abs(found.elpd - elpd) < 1e-9
    return found.n_data_points == count and same, f"{found.elpd:.3f} of {found.n_data_points}"


def with_columns(*columns: Any, count: int, more: float) -> tuple[bool, str]:
    """Put columns in front of the observations."""
    return left_out(mean_of(columns=columns), count, ob.loo(mean_of()).elpd + more)


def of_imputed(fill: float) -> tuple[bool, str]:
    """Impute every third value."""
    seen = np.arange(20) % 3 > 0
    y = np.where(seen, ROWS[:20], fill)
    found = ob.nuts(
        ob.numpyro_model(imputed, {"y": y, "seen": seen}), seed=1, warmup=300, draws=300
    )
    exact = ROWS[:20][seen].sum() / (seen.sum() + 0.01)
    mean, verdict = float(found["posterior"]["mu"].mean()), ob.diagnose(found).verdict
    right = abs(mean - exact) < 0.05 and verdict == "usable" and ob.loo(found).n_data_points == 13
    return right, f"{mean:.3f} {verdict}"


def full_plate() -> tuple[bool, str]:
    """Sample a model whose plate has all rows."""
    found = ob.nuts(ob.numpyro_model(scaled, {"y": ROWS}), seed=1, warmup=300, draws=500)
    mu = found["posterior"]["mu"]
    mean, sd = float(mu.mean()), float(mu.std())
    return abs(mean - ROWS.mean()) < 0.01 and abs(sd - 200**-0.5) < 0.005, f"{mean:.3f} {sd:.4f}"


def compared(first: Any, other: Any, better: str = "", error: float | None = None) -> Any:
    """Compare two models: which is better, if one is; and the standard error of a difference."""
    found = ob.compare_models({"first": first, "other": other})
    told = found.alike[0] if len(found.alike) == 1 else ""
    off = float(found.table["dse"].iloc[1])
    return told == better and (error is None or abs(off - error) < 1e-9), f"{told or '='} {off:.2g}"


def unusable_model() -> tuple[bool, str]:
    """Compare a sound posterior with one that is not."""
    found = ob.compare_models({"good": mean_of(), "bad": mean_of(off=3.0)})
    return found.sentences[0].startswith("`bad`: Do not use"), found.sentences[0][:60]


def posteriors(first: Any, other: Any, verdict: str, spreads: int, middle: float) -> Any:
    """Compare two posteriors: the verdict, how many sds differ, and the size of the means."""
    found = ob.compare({"first": first, "other": other}, permutations=99)
    own = found.moments["other"]
    size = float(found.means["mean first"].abs().min())
    right = (own.verdict, len(own.spreads)) == (verdict, spreads) and abs(size - middle) < 0.1
    return right, f"{own.verdict} {own.spreads} {size:.2f}"


def equal_laws() -> tuple[bool, str]:
    """Compare samples of equal laws."""
    rng = np.random.default_rng(5)
    laws = (rng.normal, rng.exponential, lambda size: rng.standard_t(3, size=size))
    pairs = [[{"x": law(size=(4, 150, 5))} for _ in range(2)] for law in laws for _ in range(7)]
    found = [ob.compare(dict(zip("ab", p, strict=True)), permutations=199) for p in pairs]
    differ = sum(each.moments["b"].verdict == "differ" for each in found)
    return differ <= 2, f"{differ} of {len(pairs)} differ"


def pymc_missing() -> tuple[bool, str]:
    """Sample a PyMC model of data with gaps."""
    import pymc as pm

    x = np.linspace(-1, 1, 20)
    y = np.where(np.arange(20) % 4, 1 + x, np.nan)
    with pm.Model() as model:
        level = pm.Normal("level", 0, 2)
        pm.Normal("y", level + x, 1, observed=y)
    target = ob.target(model)
    found = ob.nuts(target, seed=1, warmup=300, draws=300)
    predicted = ob.predict(found, {}, model=target).intervals()
    return ob.loo(found).n_data_points == 15 and len(predicted) > 0, f"{len(predicted)} predicted"


TWO = np.where(np.arange(250) % 2, -1.0, -2.0)
TIMES = float(np.log((np.e + np.e**2) / 2))
RARE = np.where(np.arange(250) == 7, -np.inf, -1.0)
NOTHING = tree(
    posterior={"mu": np.random.default_rng(0).normal(size=(4, 50))},
    log_likelihood={"y": np.zeros((4, 50, 3))},
)
SHORT = {"a": np.random.default_rng(0).normal(size=(2, 50))}
METHODS = ("nuts", "hmc", "laplace", "advi", "dadvi", "optimize", "mclmc", "sample_modes")

CASES: tuple[Case, ...] = (
    *(
        Case(f"random rows: {m}", "rejected", with_method(m, minibatch, "plate row", "10"))
        for m in METHODS
    ),
    Case(
        "pathfinder of a NumPyro model",
        "rejected",
        with_method("pathfinder", minibatch, "takes no NumPyro model", "dadvi"),
    ),
    Case("random rows of levels", "rejected", with_method("nuts", latent_rows, "plate group")),
    Case("random keys", "rejected", with_method("nuts", random_mask, "prng_key")),
    Case("whole plate, scaled", "mean of the data, sd .0707", full_plate),
    Case("states are predicted aligned", "-6 and 6", lambda: predicted(switched(1, (1, 2)))),
    Case("predictions of an unusable posterior", "do not use", of_apart),
    Case(
        "only a factor",
        "predicts nothing",
        lambda: refused(
            lambda: ob.predict(SHORT, {"y": [1.0]}, model=only_a_factor), "predicts nothing"
        ),
    ),
    Case("masked observation", "8 of 9, the same elpd", lambda: with_columns(0.0, count=8, more=0)),
    Case(
        "constant log likelihood",
        "9, elpd 1.3 lower",
        lambda: with_columns(-1.3, count=9, more=-1.3),
    ),
    Case("imputed by obs_mask", "usable, 13 seen", lambda: of_imputed(0.0)),
    Case("imputed, NaN", "usable, 13 seen", lambda: of_imputed(np.nan)),
    Case(
        "log likelihood of NaN",
        "names y[0]",
        lambda: refused(lambda: ob.loo(mean_of(columns=[np.nan])), "`y[0]`"),
    ),
    Case(
        "reversed names",
        "no difference, error 0",
        lambda: compared(mean_of("abcdefgh"), mean_of("hgfedcba"), error=0.0),
    ),
    Case(
        "other observations",
        "rejected",
        lambda: refused(lambda: compared(mean_of("abcdefgh"), mean_of("abcdefgi")), "lacks `h`"),
    ),
    Case("a model that is not usable", "said first", unusable_model),
    Case("PyMC's missing data", "15 seen", pymc_missing),
    Case(
        "sds 40 % too small",
        "2 sds differ",
        lambda: posteriors(switched(1, ()), switched(2, (), 0.6), "differ", 2, 2.0),
    ),
    Case(
        "labels that switch, undeclared",
        "agree, means 2",
        lambda: posteriors(switched(1, (1, 3)), switched(2, (0,)), "agree", 0, 2.0),
    ),
    Case("equal laws", "at most 2 of 21 differ", equal_laws),
    Case(
        "new: random rows, calibrated",
        "rejected",
        with_method("find_symmetry", minibatch, "plate row"),
    ),
    Case("new: labels switch at every draw", "-6 and 6", lambda: predicted(often_switched())),
    Case(
        "new: two values of a log likelihood",
        "log of the mean ratio",
        lambda: with_columns(TWO, count=9, more=-TIMES),
    ),
    Case("new: all masked", "rejected", lambda: refused(lambda: ob.loo(NOTHING), "masked")),
    Case(
        "new: minus infinity in one draw",
        "names y[0]",
        lambda: refused(lambda: ob.loo(mean_of(columns=[RARE])), "`y[0]`"),
    ),
    Case("new: masked first, named", "b to h", lambda: left_out(first_masked(), 7)),
    Case(
        "new: shuffled names, another seed",
        "no difference",
        lambda: compared(mean_of("abcdefgh"), mean_of("cahgbdfe", seed=2)),
    ),
    Case(
        "new: names and places",
        "paired by place, error 0",
        lambda: compared(mean_of("abcdefgh"), mean_of(), error=0.0),
    ),
    Case(
        "new: labels switch in the other alone",
        "agree, means 2",
        lambda: posteriors(switched(1, ()), switched(2, (0, 3)), "agree", 0, 2.0),
    ),
    Case(
        "new: narrow, labels switched",
        "2 sds differ",
        lambda: posteriors(switched(1, (2,)), switched(2, (0, 1), 0.6), "differ", 2, 2.0),
    ),
    Case(
        "new: sds 10 % too small",
        "not called different",
        lambda: posteriors(switched(1, ()), switched(2, (), 0.9), "agree", 0, 2.0),
    ),
)
