"""The files that the driver writes beside the draws, and how it writes them."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from .driver_runs import GAUSS, Rows, run, sample

pytestmark = [pytest.mark.stan, pytest.mark.usefixtures("quiet")]


def test_diagnostic_file_holds_the_unconstrained_state(bernoulli):
    fit = sample(bernoulli, save_latent_dynamics=True, iter_sampling=20)
    rows = Rows(Path(fit.runset.diagnostic_files[0]))
    assert rows.names[7:] == ["theta", "p_theta", "g_theta"]
    assert rows.values.shape == (20, 10)
    # The gradient of the potential on the unconstrained scale, which is minus the log density.
    theta = fit.stan_variable("theta")
    np.testing.assert_allclose(rows["g_theta"], 12 * theta - 3, rtol=1e-5, atol=1e-5)


def test_profile_file_counts_the_gradients(gauss, tmp_path):
    run(gauss, tmp_path, "sample num_samples=10 num_warmup=10", GAUSS)
    header, line = (tmp_path / "profile.csv").read_text().splitlines()
    assert header.startswith("name,thread_id,total_time,forward_time,reverse_time,")
    assert line.startswith("density,")
    assert int(line.split(",")[7]) > 20


def test_config_file_holds_the_settings(gauss, tmp_path):
    run(gauss, tmp_path, "sample num_samples=10 num_warmup=20 random seed=5", GAUSS)
    assert not (tmp_path / "out_config.json").exists()
    command = "sample num_samples=10 num_warmup=20 random seed=5 output save_cmdstan_config=1"
    # `output` may stand once, and `run` says it already: the file goes to its default name.
    subprocess.run(
        [str(gauss.exe_file), *command.split(), "data", f"file={tmp_path}/data.json"],
        check=True,
        capture_output=True,
        cwd=tmp_path,
    )
    config = json.loads((tmp_path / "output_config.json").read_text())
    assert config["random"]["seed"] == 5
    assert config["method"]["value"] == "sample"
    assert config["method"]["sample"]["num_warmup"] == 20
    assert config["method"]["sample"]["algorithm"]["hmc"]["metric"]["value"] == "diag_e"


@pytest.mark.parametrize(("given", "digits"), [(None, 8), (3, 3), (17, 17)])
def test_sig_figs_decides_the_digits(gauss, given, digits):
    fit = sample(gauss, GAUSS, sig_figs=given, iter_sampling=50)
    rows = Path(fit.runset.csv_files[0]).read_text().splitlines()
    words = ",".join(row for row in rows if not row.startswith(("#", "lp__")))
    lengths = [len(word.lstrip("-0.").replace(".", "").split("e")[0]) for word in words.split(",")]
    assert max(lengths) == digits
