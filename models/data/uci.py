"""Regression tables of the UCI repository, read from files of blank-separated numbers.

The last column is the target. Files are looked for in `uci/` of `$ONEBASIN_DATA`, else of the
cache.
"""

import math
from pathlib import Path

import numpy as np
from jaxtyping import Float

from .dataset import Dataset
from .folders import CorruptDataError, find


def airfoil(*, folder: Path | None = None) -> Dataset:
    """Load airfoil self-noise (Brooks, Pope and Marcolini 1989): 1,503 wind-tunnel measurements of NACA 0012 blades.

    Inputs: frequency (Hz), angle of attack (degrees), chord length (m), free-stream velocity (m/s), suction-side
    displacement thickness (m). Target: scaled sound pressure level (dB).
    """
    columns = ("frequency", "attack_angle", "chord_length", "velocity", "displacement_thickness")
    return _table(
        "airfoil",
        columns,
        "sound_pressure_level",
        source="Airfoil Self-Noise (Brooks et al. 1989), UCI; target in dB",
        folder=folder,
    )


def yacht(*, folder: Path | None = None) -> Dataset:
    """Load yacht hydrodynamics (Gerritsma, Onnink and Versluis 1981): 308 towing-tank experiments at Delft.

    Inputs, all without dimension: longitudinal position of the centre of buoyancy, prismatic coefficient,
    length-displacement, beam-draught and length-beam ratio, Froude number. Target: residuary resistance per unit weight
    of displacement.
    """
    columns = (
        "buoyancy_position",
        "prismatic_coefficient",
        "length_displacement",
        "beam_draught",
        "length_beam",
        "froude_number",
    )
    return _table(
        "yacht",
        columns,
        "residuary_resistance",
        source="Yacht Hydrodynamics (Gerritsma et al. 1981), UCI; target without dimension",
        folder=folder,
    )


def read_table(path: Path, *, num_columns: int) -> Float[np.ndarray, "obs columns"]:
    """Read a file of blank-separated numbers (row, column), one row a line; blank lines are passed over.

    `CorruptDataError` if a row has not `num_columns` finite numbers, or there is no row.
    """
    lines = enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
    rows = [_row(line, num_columns, f"{path}, line {i}") for i, line in lines if line.strip()]
    if not rows:
        raise CorruptDataError(f"{path} holds no rows: fetch it again")
    return np.array(rows, dtype=np.float64)


def _row(line: str, num_columns: int, place: str) -> list[float]:
    words = line.split()
    if len(words) != num_columns:
        raise CorruptDataError(
            f"{place}: {len(words)} columns; every row must have {num_columns}: fetch it again"
        )
    try:
        values = [float(word) for word in words]
    except ValueError as error:
        raise CorruptDataError(f"{place}: {error}; every entry must be a number") from error
    if not all(math.isfinite(value) for value in values):
        raise CorruptDataError(
            f"{place}: {line.strip()!r} is not finite throughout: remove the row or impute it"
        )
    return values


def _table(
    name: str, columns: tuple[str, ...], target: str, *, source: str, folder: Path | None
) -> Dataset:
    (path,) = find("uci", (f"{name}.data",), folder=folder)
    table = read_table(path, num_columns=len(columns) + 1)
    return Dataset(
        name=name,
        x=table[:, :-1],
        y=table[:, -1:],
        feature_names=columns,
        target_names=(target,),
        task="regression",
        source=source,
    )
