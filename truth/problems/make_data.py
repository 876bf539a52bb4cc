"""Simulate the data of the programs: `python -m onebasin.truth.problems.make_data` writes the files again.

The files decide, not this module: another NumPy may draw other numbers from the same seed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from . import label_switching_data as switching
from .label_switching import simulate
from .programs import DATA

SEED = 0
_SHARED = {
    "mixture-3": "mixture",
    "mixture-3-overlap": "mixture-overlap",
    "factors": "factors",
    "topics": "topics",
    "hidden-markov": "hidden-markov",
}
"""Problems with the data of the label-switching study, by their names there."""
_FIVE = partial(
    switching.mixture,
    num_obs=300,
    weight=(0.15, 0.2, 0.3, 0.2, 0.15),
    mu=(-8.0, -4.0, 0.0, 4.0, 8.0),
    sigma=(0.7, 1.0, 0.8, 0.9, 0.6),
)


def simulated() -> dict[str, dict[str, Any]]:
    """The data that are simulated here, by problem; the others are those of the documentation's programs."""
    found: dict[str, Mapping[str, Any]] = {
        name: simulate(label, SEED).data for name, label in _SHARED.items()
    }
    found["mixture-5"] = _FIVE(np.random.default_rng([SEED, *b"mixture-5"])).data
    rng = np.random.default_rng([SEED, *b"latent-classes"])
    q = np.array([[0.9, 0.85, 0.9, 0.8, 0.9, 0.85, 0.9, 0.8]] * 3)
    q[1, 4:], q[2] = 1 - q[1, 4:], 1 - q[2]
    kind = rng.choice(3, p=[0.3, 0.45, 0.25], size=300)
    y = (rng.uniform(size=(300, 8)) < q[kind]).astype(int)
    found["latent-classes"] = {"K": 3, "J": 300, "I": 8, "y": y}
    return {
        name: {k: (v.tolist() if isinstance(v, np.ndarray) else v) for k, v in own.items()}
        for name, own in found.items()
    }


def main() -> None:
    """Write every file, an entry a line."""
    DATA.mkdir(exist_ok=True)
    for name, entries in simulated().items():
        lines = ",\n".join(f'  "{key}": {json.dumps(value)}' for key, value in entries.items())
        (DATA / f"{name}.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
