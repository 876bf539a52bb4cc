"""What one process has compiled, the next one takes from the cache."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import json
from collections import Counter

from onebasin.base.processes.libraries import prepare_libraries

prepare_libraries()
import jax
import numpyro
from numpyro.distributions import Normal

import onebasin as ob

events = Counter()
jax.monitoring.register_event_listener(lambda event, **_: events.update([event.split("/")[-1]]))
target = ob.Target("normal", numpyro_model=lambda: numpyro.sample("x", Normal(3.0, 2.0)))
settings = ob.Nuts(chains=2, warmup=5, draws=5)
posterior = ob.infer(target, engine="numpyro", method=settings, progress=False)
print(json.dumps({**events, "draws": posterior["posterior"]["x"].values.tolist()}))
"""


def _run(cache: Path) -> Any:
    # JAX's own variables would override the folder of the cache.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    command = [sys.executable, "-c", SCRIPT]
    env = inherited | {"XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _kept(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


@pytest.mark.full
def test_second_process_compiles_nothing(tmp_path):
    first = _run(tmp_path)
    kept = _kept(tmp_path / "onebasin" / "jax")
    assert first["cache_misses"] == len(kept) > 0
    second = _run(tmp_path)
    assert "cache_misses" not in second
    assert second["cache_hits"] == second["compile_requests_use_cache"]
    assert _kept(tmp_path / "onebasin" / "jax") == kept
    assert second["draws"] == first["draws"]
