"""Simulate the data of the programs, and write each beside its program: `python notebooks/programs/make.py`.

Both programs of the eight schools take `schools.json`, which is Rubin's (1981) table.
"""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SCHOOLS = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}


def data() -> dict[str, dict]:
    """The data of each program, by the name of its file."""
    rng = np.random.default_rng(5)
    parts = rng.choice(2, p=[0.4, 0.6], size=200)
    y = np.array([-2.7, 2.8])[parts] + rng.normal(size=200)
    a, b, theta = rng.lognormal(0.3, 0.3, 8), rng.normal(size=8), rng.normal(size=60)
    right = rng.random((8, 60)) < 1 / (1 + np.exp(b[:, None] - a[:, None] * theta))
    x = rng.normal(size=(100, 5))
    line = 1 + x @ [1.0, -0.5, 0.0, 2.0, 0.3] + rng.normal(size=100)
    return {
        "mixture": {"N": 200, "y": y.tolist()},
        "item_response": {"I": 8, "J": 60, "y": right.astype(int).tolist()},
        "schools": SCHOOLS,
        "regression": {"N": 100, "P": 5, "X": x.tolist(), "y": line.tolist()},
    }


def main() -> None:
    """Write every file, an entry a line."""
    for name, entries in data().items():
        lines = ",\n".join(f'  "{key}": {json.dumps(value)}' for key, value in entries.items())
        (HERE / f"{name}.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
