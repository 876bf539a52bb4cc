"""Chains on several devices draw what they draw on one; devices of the host stand for GPUs."""

import json
import os
import subprocess
import sys

import jax
import pytest

from onebasin.inference.mcmc.numpyro import device_of, here, num_devices, on_device

SCRIPT = """
import json

import jax

jax.config.update("jax_num_cpu_devices", int(__import__("sys").argv[1]))
jax.config.update("jax_enable_x64", True)
import numpyro
from numpyro.distributions import Normal

import onebasin as ob
from onebasin.inference.mcmc import numpyro as engine

seen, advance = set(), engine.NumpyroChains.advance

def watched(self, state, *args, **how):
    seen.add(engine.device_of(state).id)
    return advance(self, state, *args, **how)

engine.NumpyroChains.advance = watched
target = ob.Target("normal", numpyro_model=lambda: numpyro.sample("x", Normal(3.0, 2.0)))
settings = ob.Nuts(chains=3, warmup=20, draws=20)
posterior = ob.infer(target, engine="numpyro", method=settings, progress=False)
draws = posterior["posterior"]["x"].values.tolist()
print(json.dumps({"devices": sorted(seen), "draws": draws}))
"""


def sampled(devices: int) -> dict:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    words = [sys.executable, "-c", SCRIPT, str(devices)]
    done = subprocess.run(words, env=inherited, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_chains_are_spread_over_devices_and_draw_the_same():
    one, two = sampled(1), sampled(2)
    assert (one["devices"], two["devices"]) == ([0], [0, 1])
    assert two["draws"] == one["draws"]


def test_chains_stay_on_the_device_that_was_chosen():
    (device,) = jax.local_devices()[:1]
    with jax.default_device(device), on_device(3):
        assert num_devices() == 1
        assert device_of(here({"x": jax.numpy.zeros(2)})) == device
