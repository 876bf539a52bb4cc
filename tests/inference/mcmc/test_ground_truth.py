"""Stan's and NumPyro's NUTS are the same posterior, in every parametrisation."""

from __future__ import annotations

import itertools

import arviz_stats
import numpy as np
import pytest

from onebasin.inference import Nuts, infer
from onebasin.models import BayesianNetwork, Network, Parametrisation, predict
from onebasin.models.data import load_data
from onebasin.models.networks.parametrisation import BIASES, WEIGHTS

from ...each import each

SETTINGS = Nuts(chains=4, warmup=600, draws=1000, target_acceptance=0.9)


def _quantities(engine: str, parametrisation: Parametrisation) -> dict[str, np.ndarray]:
    """Draws (chain, draw) of what permutations and scalings leave alone."""
    data = load_data("relu-teacher")
    model = BayesianNetwork(Network(2, (2,), 1), parametrisation=parametrisation)
    target = model.condition(data.x, data.y, name="relu-teacher")
    tree = infer(target, SETTINGS, engine=engine, seed=20)
    post = tree.posterior
    outputs = predict(model, post, data.held_out.x)[..., 0]
    norms = np.linalg.norm(post["W1"].to_numpy(), axis=-2)
    slopes = norms * post["W2"].to_numpy()[..., 0]
    out = {f"output {i}": outputs[..., i] for i in range(outputs.shape[-1])}
    out["sigma"] = post["sigma"].to_numpy()
    out["sum of slopes"] = slopes.sum(-1)
    out["larger slope"] = slopes.max(-1)
    return out


@pytest.mark.slow
@pytest.mark.stan
@each(("weights", "biases"), itertools.product(WEIGHTS, BIASES))
def test_engines_agree_on_predictions_and_invariants(weights: str, biases: str) -> None:
    parametrisation = Parametrisation(weights, biases)
    one, other = (_quantities(e, parametrisation) for e in ("numpyro", "stan"))
    for name in one:
        # A stuck chain would blow up the MCSE and so agree with everything: convergence first.
        for draws in (one[name], other[name]):
            assert float(arviz_stats.rhat(draws)) < 1.05, name
            assert float(arviz_stats.ess(draws)) > 100, name
        mcse = np.hypot(*(float(arviz_stats.mcse(d[name])) for d in (one, other)))
        assert abs(one[name].mean() - other[name].mean()) < 5 * mcse, name
