"""One fit of sklearn-contrib-bde, run by `bde.py` with the Python that has it: `bde_fit.py SPLIT.npz ANSWER.npz SEED`.

Needs that package, NumPy and JAX alone. Two host devices, one a core, as the package's own documentation has it.
"""

import os
import sys
import time

os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={os.cpu_count()}"

import jax
import numpy as np
from bde import BdeRegressor

SETTINGS = {
    "n_members": 10,
    "hidden_layers": [16, 16],
    "epochs": 1000,
    "patience": 20,
    "warmup_steps": 5000,
    "n_samples": 1000,
    "n_thinning": 10,
}


def main(split: str, answer: str, seed: int) -> None:
    """Fit on the training part, and write means and standard deviations (draw, row) of the test part."""
    data = np.load(split)
    jax.devices()  # started before the clock is
    model = BdeRegressor(seed=seed, **SETTINGS)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(data["x"].astype(np.float32), data["y"].astype(np.float32))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    raw = np.asarray(model.predict(data["x_test"].astype(np.float32), raw=True), np.float64)
    rows = len(data["x_test"])
    mean = raw[..., 0].reshape(-1, rows)
    sd = np.logaddexp(0, raw[..., 1]).reshape(-1, rows) + 1e-6  # as the package has it
    np.savez(answer, mean=mean, sd=sd, wall=wall, cpu=cpu)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
