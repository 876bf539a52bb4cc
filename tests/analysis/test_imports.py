"""The room stays cheap to enter: heavy libraries are imported where they are used."""

import subprocess
import sys

STEPS = (
    ("onebasin.analysis", ("numpy", "xarray", "matplotlib")),
    ("onebasin.analysis.predictive.scores", ("matplotlib", "arviz_stats", "xarray")),
    ("onebasin.analysis.diagnostics.diagnose", ("matplotlib", "arviz_stats", "jinja2")),
)
REPORT = (("onebasin.analysis.report", ("matplotlib.pyplot", "arviz_stats", "jax")),)
SCRIPT = """
import importlib, sys
for module, heavy in {steps}:
    importlib.import_module(module)
    print(module, [name for name in heavy if name in sys.modules])
"""


def test_import_leaves_heavy_libraries_alone():
    for steps in (STEPS, REPORT):  # in one process from the lightest module to the heaviest
        check = [sys.executable, "-c", SCRIPT.format(steps=steps)]
        done = subprocess.run(check, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [f"{module} []" for module, _ in steps]
