"""The room stays cheap to enter: heavy libraries are imported where they are used."""

import subprocess
import sys

from onebasin import analysis

from ..each import each


@each(
    ("module", "heavy"),
    [
        ("onebasin.analysis", ("numpy", "xarray", "matplotlib")),
        ("onebasin.analysis.diagnostics.diagnose", ("matplotlib", "arviz_stats", "jinja2")),
        ("onebasin.analysis.predictive.regression", ("matplotlib", "arviz_stats", "xarray")),
        ("onebasin.analysis.report", ("matplotlib.pyplot", "arviz_stats", "jax")),
    ],
)
def test_import_leaves_heavy_libraries_alone(module, heavy):
    check = f"import {module}, sys; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_a_function_or_a_class():
    assert "diagnose" in analysis.__all__
    for name in analysis.__all__:
        assert callable(getattr(analysis, name)), name
