"""The files that the driver writes beside the draws, and how it writes them."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from .driver_runs import DATA, GAUSS, Rows, run, sample

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


# Several chains in one process


def start(model, folder: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program itself, in a folder with its data."""
    (folder / "data.json").write_text(json.dumps(DATA))
    return subprocess.run(
        [str(model.exe_file), *f"data file=data.json random seed=4 {arguments}".split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def draws_in(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


SHORT = "method=sample num_samples=5 num_warmup=20 num_chains=2"


def test_files_of_chains_can_be_spelled_out(bernoulli, tmp_path):
    for name, theta in (("low", 0.1), ("high", 0.9), ("init_3", 0.1), ("init_4", 0.9)):
        (tmp_path / f"{name}.json").write_text(f'{{"theta": {theta}}}')
    for files in (
        "init=low.json,high.json output file=a.csv,sub.b.txt diagnostic_file=p.csv,q.csv",
        "init=init.json output file=c.csv diagnostic_file=r.csv",
    ):
        words = f"{SHORT} adapt save_metric=1 id=3 {files} save_cmdstan_config=1"
        done = start(bernoulli, tmp_path, words)
        assert done.returncode == 0, done.stderr
    named = ("a.csv", "sub.b.txt", "p.csv", "q.csv")
    for name, number in zip(named, ("c_3.csv", "c_4.csv", "r_3.csv", "r_4.csv"), strict=True):
        assert draws_in(tmp_path / name) == draws_in(tmp_path / number)
    assert (tmp_path / "a_config.json").exists()
    metrics = [(tmp_path / f"{base}_metric.json").read_text() for base in ("a", "sub.b")]
    assert metrics == [(tmp_path / f"c_metric_{n}.json").read_text() for n in (3, 4)]


def test_fitted_params_of_chains_can_be_spelled_out(bernoulli, tmp_path):
    assert start(bernoulli, tmp_path, f"{SHORT} output file=x.csv,y.csv").returncode == 0
    method = "method=generate_quantities num_chains=2 fitted_params=x.csv,y.csv"
    done = start(bernoulli, tmp_path, f"{method} output file=gx.csv,gy.csv")
    assert done.returncode == 0, done.stderr
    assert len(draws_in(tmp_path / "gx.csv")) == len(draws_in(tmp_path / "gy.csv")) == 6
    again = start(bernoulli, tmp_path, f"{method} output file=gx.csv,y.csv")
    assert again.returncode == 1
    assert 'Filename conflict, input file "y.csv"' in again.stderr
    assert len(draws_in(tmp_path / "y.csv")) == 6


@pytest.mark.parametrize(
    "arguments",
    ["output file=a.csv,b.csv,c.csv", "init=a.json,b.json,c.json", "output diagnostic_file=a,b,c"],
)
def test_as_many_names_as_chains_are_needed(bernoulli, tmp_path, arguments):
    done = start(bernoulli, tmp_path, f"{SHORT} {arguments}")
    assert done.returncode == 1
    assert "names 3 files, but there are 2 chains. Give one name for all" in done.stderr
    single = SHORT.replace("num_chains=2", "num_chains=1")  # where a comma is part of the name
    done = start(bernoulli, tmp_path, f"{single} output file=a,b.csv save_cmdstan_config=1")
    assert done.returncode == 0, done.stderr
    assert len(draws_in(tmp_path / "a,b.csv")) == 6
    assert (tmp_path / "a,b_config.json").exists()


# Disks that are full


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
    done = start(bernoulli, tmp_path, arguments)
    assert done.returncode == 1
    expected = f'Error: cannot write output file "{full}": No space left on device'
    assert done.stderr.splitlines()[-1] == expected
