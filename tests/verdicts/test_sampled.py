"""Short Stan programs, really sampled: verdicts, alignments and numbers are those that are known without onebasin.

`python -m benchmarks.sampled` asks of all kinds and other seeds.
"""

import pytest
import xarray as xr

import onebasin as ob
from benchmarks.sampled.__main__ import ask
from benchmarks.sampled.kinds import KINDS
from benchmarks.sampled.numbers import Moments, differ, leaves_the_density, quality
from benchmarks.sampled.questions import QUESTIONS
from benchmarks.sampled.references import PROGRAMS, mass_of_quick_absorption

pytestmark = pytest.mark.full

ALL = {kind.name: kind for kind in (*KINDS, *QUESTIONS)}
QUICK = ("mixture of three", "hierarchy not centred", "two modes that chains cannot leave")
MORE = (
    *("clusters with correlations", "regression", "mass at a bound", "two breaks", "phase"),
    *("too few draws of nearly collinear inputs", "two modes that chains cross", "sorted by hand"),
)


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(m, marks=pytest.mark.slow) for m in MORE)])
def test_what_is_said_is_true_and_aligned_draws_keep_their_density(name):
    rows = list(ask(ALL[name], 1))
    assert [(row["verdict"], row["sentence"]) for row in rows if row["wrong"]] == []
    assert [row["numbers"] for row in rows if row["numbers"]] == []
    assert all(row["reference"] for row in rows), "the long run was not sound"


@pytest.mark.parametrize("name", ["one factor", "experts"])
def test_the_symmetry_is_found_in_the_program(name):
    kind = ALL[name]
    target = ob.stan_program(PROGRAMS / f"{kind.program}.stan", kind.data(1))

    def parts(words):
        return {frozenset(w.removesuffix(":0") for w in block.split(",")) for block in words}

    assert parts(ob.find_symmetry(target).words) == parts([kind.words])


@pytest.mark.slow  # many starts are climbed from, and every mode is sampled
def test_the_mass_of_modes_is_that_of_quadrature():
    """Absorption and elimination: two modes, whose masses importance sampling gives too."""
    kind = ALL["absorption or elimination"]
    data = kind.data(1)
    found = ob.sample_modes(ob.stan_program(PROGRAMS / "absorption.stan", data), seed=1)
    into, out = (found["posterior"][name].values for name in ("into", "out"))
    assert (into > out).mean() == pytest.approx(mass_of_quick_absorption(data), abs=0.04)


def test_what_is_wrong_is_seen(rng):
    """The checks themselves: moments, log densities and the quality of chains."""
    draws = {"x": rng.normal(size=(4, 500, 2))}
    assert differ(draws, {"x": Moments.exact([0, 0], [1, 1])}) == []
    assert "mean of x[1]" in differ(draws, {"x": Moments.exact([0, 0.5], [1, 1])})[0]
    assert "sd of x[0]" in differ(draws, {"x": Moments.exact([0, 0], [1.3, 1])})[0]
    assert quality(draws["x"]) == "sound"
    assert quality(draws["x"][:, :60]) == "unsound"
    model = "model { x[1] ~ normal(0, 1); x[2] ~ normal(0, 2); }"
    target = ob.stan_program("parameters { vector[2] x; }" + model)
    tree, swapped = (
        xr.DataTree.from_dict({"posterior": xr.Dataset({"x": (("chain", "draw", "k"), values)})})
        for values in (draws["x"], draws["x"][..., ::-1].copy())
    )
    assert leaves_the_density(target, tree, tree) == []
    assert "2000 of 2000 moved draws change" in leaves_the_density(target, tree, swapped)[0]
