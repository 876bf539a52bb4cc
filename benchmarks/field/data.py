"""Cases about what data mean: numbers, tables, weights, angles, repeated draws, rounding, pictures and files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onebasin as ob

from .cases import Case

Answer = tuple[bool, str]
APART = np.array([0, 0, 6, 6])[:, None]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal numbers."""
    return np.random.default_rng(seed).normal(size=shape or (4, 200))


def verdict(draws: Any, *allowed: str, said: str = "") -> Answer:
    """Diagnose, and compare the verdict; the answer must have some words, if any are given."""
    found = ob.diagnose(draws)
    right = found.verdict in allowed and said in " ".join(str(found).split())
    return right, f"{found.verdict} {', '.join(found.causes)}"


def numbers(
    draws: Any, row: str, answer: str = "usable", error: float = 0.05, **due: float
) -> Answer:
    """Summarise, and compare numbers of a row, relative to what they should be or to one."""
    got, found = ob.diagnose(draws).verdict, ob.summary(draws).loc[row]
    right = got == answer and all(
        abs(found[k] - v) <= error * max(1, abs(v)) for k, v in due.items()
    )
    return right, f"{got}, " + ", ".join(f"{k} {found[k]:.4g}" for k in due)


def drawn(draws: Any, *plots: str) -> Answer:
    """Draw, and let only the package's own errors pass."""
    said = []
    for plot in plots:
        try:
            getattr(ob.plot, plot)(draws)
        except ob.OnebasinError as error:
            said.append(f"{plot}: {type(error).__name__}")
    return True, "; ".join(said) or "pictures"


def frame(order: tuple[str, ...] = ("chain", "draw"), k: bool = False) -> Any:
    """A frame of chains that never meet, with the index in some order, or with three entries a draw."""
    import xarray as xr

    held = {"mu": (("chain", "draw"), normal(4, 200) + APART)}
    if k:
        held["th"] = (("chain", "draw", "k"), normal(4, 200, 3) + 10 * np.arange(3))  # type: ignore[assignment]
    coords = {"chain": range(4), "draw": range(200)} | ({"k": ["a", "b", "c"]} if k else {})
    return xr.Dataset(held, coords=coords).to_dataframe(dim_order=[*order, *(["k"] if k else [])])


def two_axes() -> Any:
    """A frame with two axes in its index besides chain and draw."""
    import pandas as pd

    names = ["draw", "k", "chain", "j"]
    index = pd.MultiIndex.from_product([range(100), ["a", "b"], [0, 1], [0, 1, 2]], names=names)
    return pd.DataFrame({"x": normal(len(index))}, index=index)


def table() -> Any:
    """A wide table with weights for N(1, 1)."""
    import pandas as pd

    x = 3 * normal(4000)
    return pd.DataFrame({"x": x, "log_weight__": -0.5 * (x - 1) ** 2 + 0.5 * (x / 3) ** 2})


def of_file(held: Any, suffix: str) -> Answer:
    """Write a frame with its index, and diagnose the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"t.{suffix}")
        getattr(held, f"to_{suffix}")(path)
        rows = list(ob.summary(path).index)
        return verdict(path, "unusable")[0] and "th[b]" in rows, ", ".join(rows)


def weighted(where: str = "", log: bool = True, **more: np.ndarray) -> Answer:
    """Draws of N(0, 3) with weights for N(1, 1), under a name."""
    x = 3 * normal(4, 1000)
    lw = -0.5 * (x - 1) ** 2 + 0.5 * (x / 3) ** 2
    held = lw if log else np.exp(lw - lw.max()) / np.exp(lw - lw.max()).sum()
    groups = {"posterior": {"x": x} | more, "sample_stats": {where or "log_weight": held}}
    if where:
        return verdict(groups, "unusable", said="log_weight")
    return numbers(groups, "x", mean=1, sd=1)


def wrapped(
    centre: float, sd: float, first: float = -np.pi, period: float = 2 * np.pi, seed: int = 0
) -> np.ndarray:
    """An angle, cut open at `first`."""
    return (centre + sd * normal(4, 500, seed=seed) - first) % period + first


def angles() -> Answer:
    """Ask of five centres and ten seeds."""
    good = [
        numbers({"phi": wrapped(c, 0.1, seed=s)}, "phi", error=0.015, mean=c, sd=0.1)[0]
        for c in (np.pi, 3.13, 3.12, 3.10, 3.05)
        for s in range(10)
    ]
    return all(good), f"{sum(good)} of 50"


def particles(count: int, *shape: int) -> np.ndarray:
    """So many particles, resampled to 4 x 1,000 draws."""
    rows = np.random.default_rng(1).integers(0, count, size=(4, 1000))
    return normal(count, *shape)[rows]


def metropolis(acceptance: float) -> np.ndarray:
    """Independent proposals that are accepted now and then."""
    moves = np.cumsum(np.random.default_rng(1).random((4, 20000)) < acceptance, axis=1)
    return np.take_along_axis(normal(4, 20001), moves, axis=1)


def offsets(draws: int) -> np.ndarray:
    """Three offsets that sum to zero, chains in two labellings."""
    raw = np.array([-4.0, -0.5, 5]) + 0.1 * normal(4, draws, 3)
    off = raw - raw.mean(-1, keepdims=True)
    off[2:] = off[2:][..., [1, 2, 0]]
    return off


def planted(parts: int, *, by_draw: bool) -> Answer:
    """Give labels of components in a known order for each chain, or each draw, and align: one order is left."""
    rng = np.random.default_rng(parts)
    lead = (4, 300) if by_draw else (4, 1)
    order = rng.permuted(np.broadcast_to(np.arange(parts), (*lead, parts)), axis=-1)
    order = np.broadcast_to(order, (4, 300, parts))
    mu = 1.5 * np.arange(parts) + 0.15 * rng.normal(size=order.shape)
    draws = {"mu": mu, "s": np.exp(0.1 * mu), "who": np.broadcast_to(np.arange(parts), mu.shape)}
    moved = {name: np.take_along_axis(each, order, -1) for name, each in draws.items()}
    own = ob.align(moved, symmetry="mu,s,who").posterior["posterior"]["who"].values
    one = len(np.unique(own.reshape(-1, parts), axis=0)) == 1
    return one, ob.diagnose({"mu": moved["mu"], "s": moved["s"]}).verdict


def switched(dtype: str, draws: int = 1000) -> dict[str, np.ndarray]:
    """Two components with weights, whose chains have two labellings."""
    share = 1 / (1 + np.exp(-0.8 - 0.15 * normal(4, draws)))
    w = np.stack([share, 1 - share], axis=-1).astype(dtype)
    m = (np.array([-3.0, 2.0]) + 0.1 * normal(4, draws, 2, seed=1)).astype(dtype)
    return {name: np.concatenate([v[:2], v[2:, :, ::-1]]) for name, v in (("w", w), ("m", m))}


def shuffled() -> Answer:
    """A table of correlated draws whose rows are in another order: `.iteration` has to be used."""
    import pandas as pd

    x = normal(4, 1000)
    for step in range(1, 1000):
        x[:, step] = 0.97 * x[:, step - 1] + (1 - 0.97**2) ** 0.5 * x[:, step]
    chain, draw = (1 + np.indices(x.shape)).reshape(2, -1)
    rows = pd.DataFrame({".chain": chain, ".iteration": draw, "theta": x.ravel()})
    with tempfile.TemporaryDirectory() as folder:
        rows.sample(frac=1, random_state=3).to_csv(path := Path(folder, "t.csv"), index=False)
        found = [ob.summary(each).loc["theta", "ess_bulk"] for each in (path, {"theta": x})]
    return abs(found[0] - found[1]) < 1e-6, f"ESS {found[0]:.0f}, right {found[1]:.0f}"


def commands(*lines: str) -> Answer:
    """Run commands in a folder with a loop of links; each must fail by one clear line and leave no file."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("loop.nc", "loop.stan"):
            Path(folder, name).symlink_to(name)
        command = "import sys; from onebasin.cli.main import main; sys.exit(main())"
        codes, said = [], ""
        for line in lines:
            done = subprocess.run(
                [sys.executable, "-c", command, *line.split()],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                env=os.environ | {"PYTHONPATH": str(Path.cwd())},
            )
            codes.append(done.returncode)
            said += done.stderr
        left = {path.name for path in Path(folder).iterdir()} - {"loop.nc", "loop.stan"}
    return {*codes} == {1} and not left and "mean loop" not in said, f"exit codes {codes}"


def case(name: str, right: str, ask: Callable[[], Answer]) -> Case:
    """Make a case."""
    return Case(f"data: {name}", right, ask)


M = 2 + 0.1 * (normal(4, 200, 2) + APART[..., None])
PLOTS = ("densities", "ranks", "forest", "traces")
OTHER = normal(seed=9)

CASES: tuple[Case, ...] = (
    *(
        case(f"labels of {k} components", "one order", lambda k=k, by=by: planted(k, by_draw=by))
        for k, by in ((12, False), (12, True), (30, False))
    ),
    case("weights in single precision", "aligned", lambda: verdict(switched("float32"), "aligned")),
    case("a million draws", "aligned", lambda: verdict(switched("float64", 250_000), "aligned")),
    case("rows of a table in another order", "the same ESS", shuffled),
    case("vector near 2e16", "unusable", lambda: verdict({"M": 1e16 * M, "a": OTHER}, "unusable")),
    case(
        "vector near 5e7 in single precision",
        "unusable",
        lambda: verdict({"M": (3e7 * M).astype("f4"), "a": OTHER}, "unusable"),
    ),
    case(
        "1e15 +- 1 in chains that disagree",
        "unusable",
        lambda: verdict({"T": 1e15 + normal() + APART, "a": OTHER}, "unusable"),
    ),
    case("frame with index (chain, draw)", "unusable", lambda: verdict(frame(), "unusable")),
    case(
        "frame with index (draw, chain)",
        "unusable",
        lambda: verdict(frame(("draw", "chain")), "unusable"),
    ),
    case(
        "long frame",
        "th[b] near 10",
        lambda: numbers(frame(k=True), "th[b]", "unusable", 0.2, mean=10),
    ),
    case("long frame in CSV", "th[a] to th[c]", lambda: of_file(frame(k=True), "csv")),
    case("long frame in Parquet", "th[a] to th[c]", lambda: of_file(frame(k=True), "parquet")),
    case(
        "one column per chain",
        "unusable",
        lambda: verdict(frame()["mu"].unstack("chain"), "unusable"),
    ),
    case("weights as log_weight", "mean 1, sd 1", weighted),
    case("weights under another name", "unusable, rename", lambda: weighted("logwt")),
    case("weights, not logs", "unusable, rename", lambda: weighted("weights", log=False)),
    case("angle across pi", "50 of 50", angles),
    case(
        "angle across 180 degrees",
        "mean 180, sd 6",
        lambda: numbers({"w": wrapped(180, 6, -180, 360)}, "w", mean=180, sd=6),
    ),
    case(
        "20 particles",
        "unusable",
        lambda: verdict({"x": particles(20)}, "unusable", said="20 distinct draws"),
    ),
    case(
        "Metropolis at 20 % acceptance", "usable", lambda: verdict({"x": metropolis(0.2)}, "usable")
    ),
    case(
        "offsets that sum to zero",
        "aligned",
        lambda: verdict(
            {"off": offsets(200), "b": OTHER}, "aligned", said="Label-free quantities agree"
        ),
    ),
    case(
        "pictures of 1e15 +- 1",
        "pictures or own errors",
        lambda: drawn({"x": 1e15 + normal()}, *PLOTS),
    ),
    case(
        "pictures of one chain",
        "pictures or own errors",
        lambda: drawn({"x": normal(1, 200)}, *PLOTS),
    ),
    case(
        "loop of links",
        "exit code 1",
        lambda: commands(
            "align loop.nc", "report loop.nc", "compare loop.nc loop.nc", "diagnose loop.nc"
        ),
    ),
    case(
        "new: single precision, widened",
        "unusable",
        lambda: verdict({"M": (3e7 * M).astype("f4").astype(float), "a": OTHER}, "unusable"),
    ),
    case(
        "new: six digits of 1.5e6 +- 100",
        "unusable",
        lambda: verdict(
            {
                "N": np.round(1.5e6 + 100 * (normal() + APART), -1)[..., None].repeat(2, -1),
                "a": OTHER,
            },
            "unusable",
        ),
    ),
    case(
        "new: allocations as floats are integers",
        "usable",
        lambda: verdict(
            {"z": (normal(4, 200, 5) > APART[..., None] / 6).astype(float), "a": OTHER}, "usable"
        ),
    ),
    case(
        "new: 4e15 +- 1, chains 12 apart",
        "unusable",
        lambda: verdict({"T": 4e15 + normal() + 2 * APART, "a": OTHER}, "unusable"),
    ),
    case(
        "new: sum of offsets as a quantity",
        "aligned",
        lambda: verdict(
            {"off": offsets(300), "total": offsets(300).sum(-1)},
            "aligned",
            said="the same in every draw",
        ),
    ),
    case(
        "new: a rate of 1e-17 is no rounding",
        "unusable",
        lambda: verdict({"rate": 1e-17 * (normal() + APART), "a": OTHER}, "unusable"),
    ),
    case(
        "new: long frame, rows shuffled",
        "th[b] near 10",
        lambda: numbers(
            frame(k=True).sample(frac=1, random_state=0), "th[b]", "unusable", 0.2, mean=10
        ),
    ),
    case(
        "new: two axes in the index",
        "x[b,1]",
        lambda: (lambda rows: ("x[b,1]" in rows and len(rows) == 6, ", ".join(rows)))(
            list(ob.summary(two_axes()).index)
        ),
    ),
    case(
        "new: weights of chains that disagree",
        "unusable",
        lambda: verdict(
            {
                "posterior": {"x": normal() + APART},
                "sample_stats": {"log_weight": 0.1 * normal(seed=3)},
            },
            "unusable",
        ),
    ),
    case(
        "new: log_weight__ in a table", "mean 1, sd 1", lambda: numbers(table(), "x", mean=1, sd=1)
    ),
    case(
        "new: a scalar parameter called weight",
        "usable",
        lambda: verdict({"weight": 70 + 5 * normal(4, 500)}, "usable"),
    ),
    case(
        "new: angle across 0 of (0, 2 pi)",
        "mean 0, sd .2",
        lambda: numbers({"a": wrapped(0.0, 0.2, 0.0)}, "a", error=0.02, mean=0, sd=0.2),
    ),
    case(
        "new: angle with 1 % beyond the cut",
        "mean 2.91, sd .1",
        lambda: numbers({"a": wrapped(2.91, 0.1)}, "a", error=0.02, mean=2.91, sd=0.1),
    ),
    case(
        "new: signs of 3.1 +- .01 are labels",
        "aligned",
        lambda: verdict(
            {"x": (3.1 + 0.01 * normal(4, 500)) * np.sign(normal(4, 500, seed=2))}, "aligned"
        ),
    ),
    case(
        "new: 3,000 particles",
        "usable, ESS below 3,000",
        lambda: (
            lambda d: (
                d.verdict == "usable" and d.ess_bulk.value < 3000,
                f"{d.verdict}, {d.ess_bulk.value:.0f}",
            )
        )(ob.diagnose({"x": particles(3000)})),
    ),
    case(
        "new: rounded to one decimal",
        "usable",
        lambda: verdict({"x": normal(4, 1000).round(1)}, "usable"),
    ),
    case(
        "new: pictures of 1e-310, inf, constants",
        "pictures or own errors",
        lambda: drawn(
            {
                "x": 1e-310 * normal(),
                "c": np.ones((4, 200)),
                "i": np.where(OTHER > 2, np.inf, OTHER),
            },
            *PLOTS,
        ),
    ),
    case(
        "new: a program that is a loop of links",
        "exit code 1",
        lambda: commands("sample loop.stan loop.nc --out z.nc", "symmetry loop.stan loop.nc"),
    ),
)
