"""Plots of posteriors and of results: `ob.plot.traces(posterior)`, `ob.plot.labels(posterior)`, ...

`plot.pyi` beside this file lists them; each is loaded when it is first asked for. A plot returns a figure with its text
in `alt`, which a notebook shows by itself; nothing is shown or saved.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

# lazy_loader would leave the functions in the package, under their former names.
_FILES = {
    function.name.removeprefix("plot_"): node.module
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text()).body
    if isinstance(node, ast.ImportFrom)
    for function in node.names
}
__all__ = sorted(_FILES)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Load a plot."""
    if name not in _FILES:
        raise AttributeError(
            f"onebasin.plot has no plot `{name}`: choose among {', '.join(__all__)}."
        )
    return getattr(import_module(f".{_FILES[name]}", __package__), f"plot_{name}")
