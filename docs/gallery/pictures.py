"""Draw the figures of the plot reference and the gallery: `make pictures`, or `python docs/gallery/pictures.py`.

`make.py` samples the posteriors that are missing from FOLDER (`build/gallery` by default). The figures are written to
`docs/images/plot-NAME.png`.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist

import onebasin as ob

HERE = Path(__file__).parent
IMAGES = HERE.parent / "images"
SHOWN_DPI = 80


def plots(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return a function that draws an example for each function of `ob.plot`."""

    def run(name: str) -> Any:
        return ob.open_posterior(folder / f"{name}.nc")

    schools = {"NUTS": "schools", "centred": "schools_centred", "ADVI": "schools_advi"}
    mixture, centred = run("mixture"), run("schools_centred")
    regression, network = run("regression"), run("network")
    several = {name: run(path) for name, path in schools.items()}
    names = ["mu", "tau", "theta"]
    return {
        "labels": lambda: ob.plot.labels(mixture),
        "aligned": lambda: ob.plot.aligned(ob.align(mixture)),
        "traces": lambda: ob.plot.traces(mixture, rows=3),
        "ranks": lambda: ob.plot.ranks(mixture),
        "rhat": lambda: ob.plot.rhat(centred),
        "ess": lambda: ob.plot.ess(centred),
        "autocorrelation": lambda: ob.plot.autocorrelation(centred),
        "energy": lambda: ob.plot.energy(centred),
        "forest": lambda: ob.plot.forest(several, var_names=names),
        "densities": lambda: ob.plot.densities(mixture),
        "pair": lambda: ob.plot.pair(centred, "mu", "tau", "theta[0]"),
        "predictive": lambda: ob.plot.predictive(network),
        "loo_pit": lambda: ob.plot.loo_pit(regression),
        "khat": lambda: ob.plot.khat(several["NUTS"]),
        "uncertainty": lambda: ob.plot.uncertainty(network),
        "comparison": lambda: ob.plot.comparison(ob.compare(several, var_names=names)),
        "elbo": lambda: ob.plot.elbo(several["ADVI"]),
        "barriers": lambda: ob.plot.barriers(network),
        "predictions": _predictions,
        "prior": _prior,
        "calibration": _calibration,
    }


def _normal(y: Any = None) -> None:
    """Define a model of the mean and standard deviation of 20 numbers, with wide priors."""
    mu = numpyro.sample("mu", dist.Normal(0, 3))
    sigma = numpyro.sample("sigma", dist.HalfNormal(3))
    numpyro.sample("y", dist.Normal(mu, sigma).expand([20]), obs=y)


def _prior() -> Any:
    """Plot the priors of `_normal` next to a posterior."""
    target = ob.numpyro_model(_normal, {"y": np.random.default_rng(1).normal(1, 2, 20)})
    return ob.plot.prior(ob.prior(target, seed=1), ob.nuts(target, seed=1))


def _line(x: Any, y: Any = None) -> None:
    """Define a model of a line through the origin."""
    slope = numpyro.sample("slope", dist.Normal(0, 2))
    with numpyro.plate("obs", len(x)):
        numpyro.sample("y", dist.Normal(slope * x, 1), obs=y)


def _predictions() -> Any:
    """Plot predictions of a line at new inputs."""
    data = {"x": np.arange(4.0), "y": np.array([0.1, 0.9, 2.2, 2.8])}
    posterior = ob.nuts(ob.numpyro_model(_line, data), seed=1)
    found = ob.predict(posterior, {"x": np.linspace(0, 10, 30)}, model=_line)
    return ob.plot.predictions(found)


def _calibration() -> Any:
    """Plot the calibration of NUTS on data simulated from `_normal`."""
    family = ob.truth.Family.of_numpyro(_normal, observed="y")
    settings = ob.Nuts(chains=1, warmup=300, draws=300)
    return ob.plot.calibration(ob.calibrate(family, settings, simulations=100, seed=1))


def main(folder: Path) -> None:
    """Sample the missing posteriors, and draw all figures."""
    sys.path.insert(0, str(HERE))
    from make import sample

    folder.mkdir(parents=True, exist_ok=True)
    sample(folder)
    for name, draw in plots(folder).items():
        (IMAGES / f"plot-{name}.png").write_bytes(draw().png(dpi=SHOWN_DPI))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/gallery"))
