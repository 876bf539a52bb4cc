"""What looks odd and is in order: a refusal here would be a false alarm."""

from __future__ import annotations

import pytest

from . import files as f
from .cases import DONE, Case
from .test_kinds import GAUSS, SAMPLE, WHOLE
from .test_posterior_files import BROKEN_DRAWS
from .test_programs import MADE

LEFT_ALONE = ("one-draw", "three-draws", "one-without-draw", "all-nan", "complex", "text")
"""Of these draws can be aligned: nothing is estimated from few, and what the symmetry does not move stays as it is."""


def _taken(id: str, words: str, files: dict, *says: str, makes: tuple[str, ...] = ()) -> Case:
    return Case(id, words, says, files, code=DONE, makes=makes)


def test_names_of_files_of_any_kind(refuse):
    names = ("my run.nc", "взвод 号.nc", "run", "a--force.nc")
    refuse(_taken(name, f"diagnose '{name}'", {name: f.good}) for name in names)


def test_odd_draws(refuse):
    mu = "diagnose run.nc --var mu --var mu"
    align = "align run.nc --out out.nc --exchangeable mu,sigma"
    of_two = "compare run.nc b.nc --permutations 9"
    nan, bare = BROKEN_DRAWS["nan"], f.with_change(lambda _, attributes: attributes.clear())
    refuse(
        [
            *(_taken(f"without {n}", mu, {"run.nc": BROKEN_DRAWS[n]}) for n in ("text", "all-nan")),
            _taken("diagnosed", "diagnose run.nc", {"run.nc": nan}, "finite"),
            _taken("compared", of_two, {"run.nc": nan, "b.nc": nan}),
            _taken("one variable", f"{of_two} --var mu", {"run.nc": f.good, "b.nc": f.other}),
            _taken("no attributes", "diagnose run.nc", {"run.nc": bare}),
            *(
                _taken(f"{n} aligned", align, {"run.nc": BROKEN_DRAWS[n]}, makes=("out.nc",))
                for n in LEFT_ALONE
            ),
        ]
    )


@pytest.mark.stan
def test_data_that_a_program_takes(refuse):
    taken = {
        "with a mark of byte order": b"\xef\xbb\xbf" + f.data(**WHOLE).encode(),
        "more than is declared": f.data(**WHOLE, note="of 2019", other=[1, None]),
        "whole numbers for reals": f.data(**WHOLE | {"mu": [1, 2]}),
    }
    refuse(
        _taken(name, SAMPLE, {"gauss.stan": GAUSS, "data.json": held}, "wrote run.nc", makes=MADE)
        for name, held in taken.items()
    )
    files = {"my models/gauss.stan": GAUSS, "data.json": f.data(**WHOLE)}
    words = SAMPLE.replace("gauss.stan", "'my models/gauss.stan'")
    refuse([_taken("below a blank", words, files, "wrote run.nc", makes=MADE)])
