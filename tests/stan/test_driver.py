"""The driver behind plain cmdstanpy: draws against closed forms, files, seeds, initial values.

NUTS, optima, Laplace, Pathfinder and ADVI have their digits in `test_recorded_draws.py`, and known answers in
`tests/inference`.
"""

import json
from pathlib import Path

import arviz as az
import cmdstanpy
import numpy as np
import pytest

from .driver_runs import BETA_MEAN, BETA_VARIANCE, DATA, GAUSS, Rows, call, run, sample

pytestmark = [pytest.mark.stan, pytest.mark.usefixtures("quiet")]


def assert_mean(draws: np.ndarray, truth: float, variance: float) -> None:
    """Within five Monte Carlo standard errors; `draws` is (draw, chain)."""
    chains = draws.T
    ess = az.ess(chains, method="mean")
    assert ess > 200
    assert abs(chains.mean() - truth) < 5 * np.sqrt(variance / ess)


@pytest.mark.parametrize("metric", ["unit_e", "diag_e", "dense_e"])
@pytest.mark.parametrize("engaged", [0, 1])
def test_static_hmc_finds_the_posterior(bernoulli, tmp_path, metric, engaged):
    words = f"sample adapt engaged={engaged} algorithm=hmc engine=static int_time=2 metric={metric}"
    rows = run(bernoulli, tmp_path, f"{words} stepsize=0.5 random seed=3")
    assert rows.names[:5] == ["lp__", "accept_stat__", "stepsize__", "int_time__", "energy__"]
    assert_mean(rows["theta"][:, None], BETA_MEAN, BETA_VARIANCE)


@pytest.mark.slow
def test_chains_of_one_process_equal_those_of_several(bernoulli, compiled):
    threaded = compiled("bernoulli", STAN_THREADS="TRUE")
    assert threaded.exe_info()["STAN_THREADS"].lower() == "true"
    together = sample(threaded, chains=3, sig_figs=18)
    apart = sample(bernoulli, chains=3, sig_figs=18)
    forced = sample(threaded, chains=3, sig_figs=18, force_one_process_per_chain=True)
    np.testing.assert_array_equal(together.draws(), apart.draws())
    np.testing.assert_array_equal(together.draws(), forced.draws())


def test_thinned_draws_are_every_nth(gauss):
    every = sample(gauss, GAUSS).draws()
    third = sample(gauss, GAUSS, thin=3).draws()
    np.testing.assert_array_equal(every[::3], third)


def test_step_size_and_metric_are_kept_without_adaptation(gauss):
    metric = {"metric": "diag_e", "inv_metric": {"inv_metric": [1.0, 2.0]}}
    fit = sample(gauss, GAUSS, adapt_engaged=False, step_size=0.25, **metric)
    assert fit.step_size is not None
    assert fit.step_size[0] == 0.25
    assert fit.inv_metric is not None
    np.testing.assert_array_equal(fit.inv_metric[0], [1.0, 2.0])
    assert set(fit.method_variables()["stepsize__"].ravel()) == {0.25}


def test_fixed_param_keeps_the_initial_values(bernoulli):
    fit = sample(bernoulli, fixed_param=True, iter_sampling=20, inits={"theta": 0.125})
    assert set(fit.stan_variable("theta")) == {0.125}
    assert len(set(fit.stan_variable("successes"))) > 1


def test_a_model_without_parameters_goes_through_nuts(compiled, tmp_path):
    """As from CmdStan 2.36 on: seven columns of the sampler, and an adaptation of nothing."""
    fit = sample(compiled("nothing"), None, iter_sampling=2000, save_warmup=True)
    assert_mean(fit.draws_xr("z").z.values.T, 3.0, 4.0)
    assert len(fit.method_variables()) == 7
    text = Path(fit.runset.csv_files[0]).read_text()
    assert "# Step size = nan\n# Diagonal elements of inverse mass matrix:\n# \n" in text
    run(compiled("nothing"), tmp_path, "sample adapt save_metric=1 random seed=1", {})
    metric = (tmp_path / "out_metric.json").read_text()
    assert '"stepsize" : NaN' in metric
    assert '"inv_metric" : [  ]' in metric


def first_theta(model: cmdstanpy.CmdStanModel, inits, chains: int = 1) -> np.ndarray:
    """With no step at all, a chain stays where it begins."""
    fit = sample(model, inits=inits, chains=chains, fixed_param=True, iter_sampling=1)
    return fit.draws_xr("theta").theta.values[:, 0]


def test_inits_are_taken_from_number_file_dict_and_list(bernoulli, tmp_path):
    file = tmp_path / "init.json"
    file.write_text('{"theta": 0.3}')
    assert first_theta(bernoulli, 0) == 0.5
    assert first_theta(bernoulli, str(file)) == 0.3
    assert first_theta(bernoulli, {"theta": 0.4}) == 0.4
    np.testing.assert_array_equal(
        first_theta(bernoulli, [{"theta": 0.1}, {"theta": 0.2}], chains=2), [0.1, 0.2]
    )
    theta = first_theta(bernoulli, 0.5, chains=4)  # a radius of unconstrained values
    assert np.all(np.abs(np.log(theta / (1 - theta))) < 0.5)
    assert len(set(theta)) == 4


@pytest.mark.parametrize("jacobian", [True, False])
def test_log_prob_matches_the_closed_form(bernoulli, jacobian):
    theta = 0.3
    found = bernoulli.log_prob({"theta": theta}, data=DATA, jacobian=jacobian, sig_figs=17)
    # beta(1, 1) is constant; the Jacobian adds log theta + log(1 - theta).
    a, b = (3, 9) if jacobian else (2, 8)
    expected = a * np.log(theta) + b * np.log1p(-theta)
    assert found["lp__"][0] == pytest.approx(expected, rel=1e-12)
    assert found["g_theta"][0] == pytest.approx(a * (1 - theta) - b * theta, rel=1e-12)


def test_generate_quantities_follows_the_draws(bernoulli):
    fit = sample(bernoulli, chains=2)
    again = bernoulli.generate_quantities(DATA, previous_fit=fit, seed=5)
    theta, successes = fit.stan_variable("theta"), again.stan_variable("successes")
    assert successes.shape == theta.shape
    noise = np.mean(10 * theta * (1 - theta)) / theta.size
    assert abs(successes.mean() - 10 * theta.mean()) < 5 * np.sqrt(noise)
    rows = Path(fit.runset.csv_files[0]).read_text().splitlines()
    written = {row.rpartition(",")[2] for row in rows if not row.startswith(("#", "lp__"))}
    assert written <= set(map(str, range(11)))  # integers stay integers


def test_diagnose_compares_gradients(gauss):
    table = gauss.diagnose(data=GAUSS)
    assert list(table["param_idx"]) == [0, 1]
    np.testing.assert_allclose(table["model"], table["finite_diff"], atol=1e-6)


def test_diagnostic_file_holds_the_unconstrained_state(bernoulli):
    fit = sample(bernoulli, save_latent_dynamics=True, iter_sampling=20)
    rows = Rows(Path(fit.runset.diagnostic_files[0]))
    assert rows.names[7:] == ["theta", "p_theta", "g_theta"]
    assert rows.values.shape == (20, 10)
    # The gradient of the potential on the unconstrained scale, which is minus the log density.
    theta = fit.stan_variable("theta")
    np.testing.assert_allclose(rows["g_theta"], 12 * theta - 3, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize(
    ("arguments", "full"),
    [
        ("method=sample output file=full.csv", "full.csv"),
        ("method=sample output diagnostic_file=full.csv", "full.csv"),
        ("method=optimize output file=full.csv", "full.csv"),
        ("method=variational output file=full.csv", "full.csv"),
        ("method=pathfinder output file=full.csv", "full.csv"),
        ("method=sample num_chains=2 output file=good.csv,full.csv", "full.csv"),
        ("method=sample adapt save_metric=1 output file=out.csv", "out_metric.json"),
    ],
)
def test_what_cannot_be_written_is_an_error(bernoulli, tmp_path, arguments, full):
    (tmp_path / full).symlink_to("/dev/full")
    (tmp_path / "data.json").write_text(json.dumps(DATA))
    done = call(bernoulli, tmp_path, f"data file=data.json random seed=4 {arguments}")
    assert done.returncode == 1
    expected = f'Error: cannot write output file "{full}": No space left on device'
    assert done.stderr.splitlines()[-1] == expected
