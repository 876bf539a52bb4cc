"""Words of commands: mistyped, missing, out of range, contradictory; outputs that cannot be written."""

from __future__ import annotations

import numpy as np

from . import files as f
from .cases import MISUSED, Case
from .test_kinds import PROGRAM, RUN

TWO = {"run.nc": f.good, "other.nc": f.other}
NETS = {"run.nc": f.of_network, "other.nc": f.of_network}
POINTS = "compare run.nc other.nc --points p.npz"


def test_name_with_a_null_byte(refuse):
    null = "diagnose 'a\0b.nc'"
    refuse([Case("null byte", null, ("RUN.nc", "a name that a file can have"), code=MISUSED)])


def test_points_that_cannot_be_predicted_at(refuse):
    x = np.zeros((3, 2))
    given = {
        "absent": ("`--points`", {}),
        "text": ("`--points`", {"p.npz": "x"}),
        "empty": ("`--points`", {"p.npz": b""}),
        "folder": ("`--points`", {"p.npz": None}),
        "without x": ("`--points`", {"p.npz": f.points(z=np.zeros(3))}),
        "pickled": ("`--points`", {"p.npz": f.points(x=np.array([{}], object))}),
        "text array": ("`x`", {"p.npz": f.points(x=np.array([["a", "b"]]))}),
        "complex": ("`x`", {"p.npz": f.points(x=np.zeros((3, 2), complex))}),
        "shape": ("(4, 3)", {"p.npz": f.points(x=np.zeros((4, 3)))}),
        "one axis": ("`x`", {"p.npz": f.points(x=np.zeros(2))}),
        "none": ("`x`", {"p.npz": f.points(x=np.zeros((0, 2)))}),
        "nan": ("`x`", {"p.npz": f.points(x=np.full((3, 2), np.nan))}),
        "short y": ("`y`", {"p.npz": f.points(x=x, y=np.zeros(2))}),
        "infinite y": ("`y`", {"p.npz": f.points(x=x, y=np.array([0, np.inf, 0]))}),
    }
    refuse(Case(name, POINTS, (says,), NETS | files) for name, (says, files) in given.items())
    refuse([Case("no network", POINTS, ("`--points`",), TWO | {"p.npz": f.points(x=x)})])


def test_folder_that_a_study_cannot_write_to(refuse):
    refuse(
        [
            Case("a file", "study boston --out file", ("`--out`", "file"), {"file": "precious"}),
            Case("below a file", "study boston --out file/run", ("file",), {"file": "precious"}),
            Case(
                "in use",
                "study relu-teacher --out run --chains 1",
                ("`--out`", "run"),
                {"run/notes.txt": "precious"},
            ),
        ]
    )


def test_output_that_cannot_be_written(refuse):
    writers = {
        "sample": ("sample a.stan --out {}", PROGRAM),
        "align": ("align run.nc --exchangeable mu --out {}", RUN),
        "report": ("report run.nc --out {}", RUN),
    }
    places = {
        "exists": ("there", {"there": "precious"}),
        "folder": ("there", {"there": None}),
        "folder-forced": ("there --force", {"there": None}),
        "below-a-file": ("file/there", {"file": "precious"}),
        "empty": ("''", {}),
        "dot": (".", {}),
        "name-too-long": ("x" * 300, {}),
    }
    refuse(
        Case(f"{writer}-{place}", words.format(name), ("`--out`",), files | also)
        for writer, (words, files) in writers.items()
        for place, (name, also) in places.items()
    )
    refuse(
        Case(f"{writer}-onto-its-input", words.format(f"{source} --force"), (source,), files)
        for writer, (words, files) in writers.items()
        for source in files
    )
