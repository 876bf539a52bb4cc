"""Run the notebooks: `python -m notebooks.run [--quick] [NAME ...]`, all of them where none is named.

A notebook is kept as text, `NN-name.py` in jupytext's percent format, with the executed `NN-name.ipynb` beside it. It
is run in a kernel of the interpreter that runs this, in an empty folder that holds a copy of `programs/`, so that it
leaves nothing behind. The same source gives the same file: cells are numbered, no time, path or version of Python is
kept. A cell that fails, or writes to stderr as a warning does, ends the run with exit code 1.

The cell tagged `parameters` holds a notebook's sizes, and its metadata `quick` the lines that follow it with `--quick`:
`# %% tags=["parameters"] quick="draws = 200"`. A quick run shows that the notebook still works and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import jupytext
import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from traitlets.config import Config

FOLDER = Path(__file__).resolve().parent
SECONDS = 600
"""Longest time for a cell, the compiling of a Stan program on a slow machine included."""
HELD = "remove-cell"
"""Tag of the cells that hold the prose to its numbers: the site leaves them out, JupyterLab folds them."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "name": "python", "pygments_lexer": "ipython3"},
}


class NotebookError(Exception):
    """A notebook that does not run: which, in which cell, and what the cell said."""


class _OwnKernel(AsyncKernelManager):
    """A kernel of this interpreter, whatever kernels are installed on the machine."""

    @property
    def kernel_spec(self) -> KernelSpec:
        words = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=words, display_name="Python 3", language="python")


def sources(names: list[str] | None = None) -> list[Path]:
    """The notebooks' texts, all or those that are named: `02-label-switching`, with any suffix, or `02`.

    Raises
    ------
    ValueError
        If there is no notebook of a name.
    """
    every = sorted(FOLDER.glob("[0-9][0-9]-*.py"))
    if not names:
        return every
    known = {word: path for path in every for word in (path.stem, path.stem[:2])}
    words = [Path(name).stem for name in names]
    if unknown := [word for word in words if word not in known]:
        stems = ", ".join(path.stem for path in every)
        raise ValueError(f"no notebook `{unknown[0]}`: there are {stems}")
    return [known[word] for word in words]


def read(source: Path) -> NotebookNode:
    """Read a notebook's text, without outputs."""
    notebook = jupytext.read(source, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number:02d}"
        if HELD in cell.metadata.get("tags", ()):
            cell.metadata.jupyter = nbformat.from_dict({"source_hidden": True})
    return notebook


def execute(notebook: NotebookNode, name: str) -> NotebookNode:
    """Execute a notebook in a kernel of its own, in place, and hand it back.

    Raises
    ------
    NotebookError
        If a cell fails, the kernel dies, or a cell writes to stderr, as a warning does.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "notebooks")
        folder.mkdir()
        shutil.copytree(FOLDER / "programs", folder / "programs")
        # Sockets in the file system: ports are found before they are taken, and two kernels can find the same.
        places = {"transport": "ipc", "connection_file": str(Path(scratch, "kernel.json"))}
        client = NotebookClient(
            notebook,
            kernel_manager_class=_OwnKernel,
            config=Config({"ConnectionFileMixin": places}),
            timeout=SECONDS,
            record_timing=False,
            store_widget_state=False,
            resources={"metadata": {"path": str(folder)}},
        )
        try:
            client.execute(env=_environment(Path(scratch)))
        except (CellExecutionError, DeadKernelError) as error:
            raise NotebookError(f"{name}: {_said(notebook, error)}") from None
    for cell in notebook.cells:
        if words := [o.text for o in cell.get("outputs", []) if o.get("name") == "stderr"]:
            raise NotebookError(f"{name}: {cell.id} writes to stderr: {words[0].strip()}")
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


def run(source: Path, *, quick: bool = False) -> NotebookNode:
    """Read and execute a notebook, at the sizes of its `quick` where asked for."""
    notebook = read(source)
    if quick:
        for cell in notebook.cells:
            if "quick" in cell.metadata:
                cell.source += "\n" + cell.metadata.quick
    return execute(notebook, source.stem)


def _said(notebook: NotebookNode, error: Exception) -> str:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                return f"{cell.id} fails with {output.ename}: {output.evalue}\n{cell.source}"
    return str(error)


def _environment(scratch: Path) -> Mapping[str, str]:
    """The kernel's environment: JAX keeps what it compiles as on the command line; no settings of the user's."""
    from onebasin.base.files.cache import user_cache

    return {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": os.environ.get(
            "JAX_COMPILATION_CACHE_DIR", str(user_cache("jax"))
        ),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PLATFORMS": "cpu",
        "CI": "1",  # no bars: they would stay in the file
        "IPYTHONDIR": str(scratch / "ipython"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def main(words: list[str] | None = None) -> int:
    """Run what is named, a line each, and write the executed notebooks, but for a quick run."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.run", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="such as 02-label-switching, or 02"
    )
    parser.add_argument("--quick", action="store_true", help="at small sizes; write nothing")
    asked = parser.parse_args(words)
    try:
        for source in sources(asked.names):
            notebook = run(source, quick=asked.quick)
            if not asked.quick:
                source.with_suffix(".ipynb").write_text(nbformat.writes(notebook) + "\n")
            sys.stderr.write(f"✓ {source.stem}\n")
    except (NotebookError, ValueError) as error:
        sys.stderr.write(f"✗ {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
