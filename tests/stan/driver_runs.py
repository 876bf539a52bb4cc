"""Data of the test programs, and functions that run them."""

import json
import subprocess
from pathlib import Path

import cmdstanpy
import numpy as np

DATA = {"N": 10, "y": [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]}
BETA_MEAN = 3 / 12  # beta(3, 9)
BETA_VARIANCE = 3 * 9 / (12**2 * 13)
GAUSS = {"D": 2, "mu": [1.0, -2.0], "Sigma": [[1.0, 0.6], [0.6, 2.0]]}


def sample(model: cmdstanpy.CmdStanModel, data=DATA, **settings) -> cmdstanpy.CmdStanMCMC:
    settings = {"seed": 8327, "chains": 1, "show_progress": False} | settings
    return model.sample(data, **settings)


class Rows:
    """Return the rows of a CSV file by column."""

    def __init__(self, path: Path) -> None:
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        self.names = lines[0].split(",")
        self.values = np.array([line.split(",") for line in lines[1:]], dtype=float)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values[:, self.names.index(name)]


def call(model: cmdstanpy.CmdStanModel, folder: Path, arguments: str):
    """Run the program directly in a folder; return its code and its output."""
    words = [str(model.exe_file), *arguments.split()]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def run(model: cmdstanpy.CmdStanModel, folder: Path, arguments: str, data=DATA) -> Rows:
    """Run the program directly, with arguments that cmdstanpy does not use."""
    (folder / "data.json").write_text(json.dumps(data))
    files = f"data file={folder}/data.json output file={folder}/out.csv"
    call(model, folder, f"{arguments} {files}").check_returncode()
    return Rows(folder / "out.csv")
