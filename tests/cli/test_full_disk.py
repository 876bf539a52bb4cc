"""A disk that is full, for once a real one: a small tmpfs in a namespace of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from onebasin.posteriors.open import open_posterior

MODEL = """
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist


def model():
    numpyro.sample("x", dist.Normal(jnp.zeros(40), 1.0).to_event(1))
"""
RUN = "import sys; from onebasin.cli.main import main; sys.exit(main())"
OFTEN = f"from onebasin.inference.mcmc import chains; chains.SECONDS = 0.1; {RUN}"
SCRIPT = """
mkdir disk && mount -t tmpfs -o size=600k tmpfs disk || exit 99
python="$1"; shift
"$python" "$@" --out disk/run.nc 2> full.txt && exit 98
ls disk/run.nc.chains > kept.txt
mount -o remount,size=20m disk
"$python" "$@" --out disk/run.nc 2> again.txt || exit 97
cp disk/run.nc again.nc
ls -A disk > left.txt
"""


def unshared(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "-rm", *words], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
def test_a_full_disk_is_one_sentence_and_the_same_command_goes_on(tmp_path):
    if unshared(["mount", "-t", "tmpfs", "tmpfs", "/mnt"], tmp_path).returncode:
        pytest.skip("this machine lets no process mount a tmpfs")
    (tmp_path / "model.py").write_text(MODEL)
    words = ["-c", OFTEN, "sample", "model.py:model", "--chains", "2", "--no-progress"]
    words += ["--warmup", "300", "--draws", "3000"]
    alone = subprocess.run(
        [sys.executable, *words, "--out", "alone.nc"], cwd=tmp_path, capture_output=True, check=True
    )
    assert alone.returncode == 0
    ended = unshared(["sh", "-c", SCRIPT, "sh", sys.executable, *words], tmp_path)
    said = (tmp_path / "full.txt").read_text()
    assert ended.returncode == 0, (said, ended.stderr, (tmp_path / "again.txt").read_text())
    (line,) = said.splitlines()
    assert "No space left on device" in line and "draws kept in disk/run.nc.chains" in line
    assert (tmp_path / "kept.txt").read_text().split() == ["chain-0", "chain-1"]
    assert (tmp_path / "left.txt").read_text().split() == ["run.nc", "run.nc.log"]
    found, wanted = (open_posterior(tmp_path / name) for name in ("again.nc", "alone.nc"))
    assert found["posterior"].to_dataset().equals(wanted["posterior"].to_dataset())
