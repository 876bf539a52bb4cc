"""A fresh interpreter that runs Python blocks as a reader would, asked by lines of JSON on stdin.

It knows nothing of the tests' settings (double precision, checked annotations). One request is one block:
``folder``, ``name`` and ``line`` for tracebacks, ``source``, and ``new`` where a page begins; the answer holds
what was printed and, if it failed, the traceback.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import linecache
import os
import sys
import traceback
import warnings

import jax
import matplotlib.pyplot as plt


def answer(request: dict, names: dict) -> dict:
    """Run one block; what it defines stays in `names`."""
    source = "\n" * (request["line"] - 1) + request["source"]
    # Where NumPyro or Python look for a function's source.
    lines = source.splitlines(keepends=True)
    linecache.cache[request["name"]] = (len(source), None, lines, request["name"])
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            exec(compile(source, request["name"], "exec"), names)
        except BaseException:
            error = traceback.format_exc()
    return {"printed": printed.getvalue(), "error": error}


def main() -> None:
    """Answer until stdin ends."""
    gc.set_threshold(
        100_000
    )  # as the command line does: tracing makes many objects, of which few are collected
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print below Python is no answer
    names: dict = {}
    settings = dict(jax.config.values)
    for line in sys.stdin:
        request = json.loads(line)
        if request["new"]:
            os.chdir(request["folder"])
            plt.close("all")
            names = {"__name__": "__main__"}
            for name, value in settings.items():
                if jax.config.values[name] != value:
                    jax.config.update(name, value)
        print(json.dumps(answer(request, names)), file=replies, flush=True)


if __name__ == "__main__":
    main()
