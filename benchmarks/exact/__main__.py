"""Run every method on every case; write record, tables and figures: `python -m benchmarks.exact FOLDER [WORDS]`.

Posteriors are kept in FOLDER and not made again. With WORDS only the jobs whose names hold one of them are run, and
nothing is written; with the word `write` nothing is run, and what there is is recorded.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from onebasin.base.processes.libraries import prepare_jax

from .page import DOCS, PAGE, RECORD, written

IMAGES = DOCS / "images"
WRITE = "write"


def main(folder: Path, words: list[str]) -> None:
    """Run what is missing; then record and draw."""
    prepare_jax()
    from .figures import FIGURES
    from .methods import APPROXIMATIONS, SAMPLERS, jobs
    from .running import path_of, posterior, record

    every = list(jobs(SAMPLERS | APPROXIMATIONS))
    for job in every:
        if not words or any(word in job.name for word in words):
            posterior(job, folder)
    if words and words != [WRITE]:
        return
    made = [job for job in every if path_of(job, folder).exists()]
    for name, draw in FIGURES.items():
        draw(folder).savefig(IMAGES / f"exact-{name}.png", dpi=130)
    found = record(made, folder)
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
