"""All examples of the reference run."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import jax
import pytest

from .docstrings import ROOT, documented

EXAMPLES = {
    name: text for name, value in documented().items() if ">>>" in (text := value.__doc__ or "")
}

# Two seconds and more each, most of them of compilers.
LONG = [
    module + name
    for module, names in {
        "": "advi calibrate dadvi find_modes hmc infer jax_density laplace mclmc nuts optimize "
        "report sample_modes symmetrised_vi",
        "approximations.": "distil mixture_gap",
        "networks.": "BayesianClassifier BayesianRegressor ensemble summarise_predictions",
        "plot.": "calibration elbo prior",
    }.items()
    for name in names.split()
]
COMPILED = ("stan.cmdstan_model",)
"""Examples that need CmdStan."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the example programs and their data, as on the pages."""
    place = tmp_path_factory.mktemp("examples")
    for file in (ROOT / "notebooks" / "programs").glob("*"):
        if file.suffix in (".stan", ".json"):
            shutil.copy(file, place)
    return place


@pytest.fixture(scope="module")
def names(folder) -> dict[str, object]:
    """The names that the reference's front page gives to all examples."""
    page = (ROOT / "docs" / "reference" / "index.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    out: dict[str, object] = {}
    with jax.numpy_rank_promotion("allow"):
        exec(block, out)
    return out


@pytest.mark.parametrize(
    "among",
    [
        pytest.param(
            [n for n in EXAMPLES if n not in (*LONG, *COMPILED)], id="quick", marks=pytest.mark.full
        ),
        pytest.param([*COMPILED], id="compiled", marks=pytest.mark.cmdstan),
        *(pytest.param([name], id=name, marks=pytest.mark.full) for name in LONG),
    ],
)
def test_examples_run(among, names, folder, monkeypatch):
    monkeypatch.chdir(folder)
    lines: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for name in among:
        test = doctest.DocTestParser().get_doctest(EXAMPLES[name], dict(names), name, None, None)
        with jax.numpy_rank_promotion("allow"):
            runner.run(test, out=lines.append)
    assert runner.tries >= len(among)
    assert not runner.failures, "".join(lines)
