"""A new interpreter that runs Python blocks as a reader would, on requests in lines of JSON on stdin.

It does not have the tests' settings (double precision, checked annotations). One request is one block: ``folder``,
``name`` and ``line`` for tracebacks, ``source``, and ``new`` where a page begins; the answer holds what was printed
and, if it failed, the traceback.
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
    """Run one block, and keep its definitions in `names`."""
    source = "\n" * (request["line"] - 1) + request["source"]
    # NumPyro and Python look here for the source of a function.
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
    """Answer requests until stdin ends."""
    gc.set_threshold(
        100_000
    )  # As on the command line: tracing makes many objects, and few can be collected.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Output that libraries print below Python is not part of the answer.
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
