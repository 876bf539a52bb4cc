"""Words of `--exchangeable`: read, written, refused, and used on posterior files."""

from pathlib import Path

import numpy as np
import pytest

from onebasin.base.errors import StudyError
from onebasin.cli.inputs import symmetry as parse_exchangeable
from onebasin.inference.runs.posterior import build
from onebasin.models import (
    Complement,
    Counterparts,
    Exchangeable,
    Flip,
    Group,
    Rescalable,
    Rotation,
    Target,
)
from onebasin.models.symmetry.blocks import as_meant, from_json, read, spell, to_json
from onebasin.posteriors.open import open_posterior
from onebasin.posteriors.writing import save

WORDS = {
    "mu,sigma,theta": Exchangeable({"mu": 0, "sigma": 0, "theta": 0}),
    "W1:1,b1,W2": Exchangeable({"W1": 1, "b1": 0, "W2": 0}),
    "+-L:1,scale": Exchangeable({"L": 1, "scale": 0}, flips=("L",)),
    "+-W1:1,+-b1,+-W2": Exchangeable({"W1": 1, "b1": 0, "W2": 0}, flips=True),
    "A:0:1,mu": Exchangeable({"A": (0, 1), "mu": 0}),
    "+-A:2:1,mu:10": Exchangeable({"A": (2, 1), "mu": 10}, flips=("A",)),
    "mu,sigma,1-theta": Exchangeable({"mu": 0, "sigma": 0}, complements=("theta",)),
    "+-mu,1-p,1-q": Exchangeable({"mu": 0}, flips=True, complements=("p", "q")),
    "1-p": Complement(("p",)),
    "1-p,1-q": Complement(("p", "q")),
    "+-theta:,+-a:": Flip(("theta", "a")),
    "+-b:,1-p": Flip(("b",), complements=("p",)),
    "mu1~mu2,s1~s2,theta": Counterparts((("mu1", "mu2"), ("s1", "s2")), {"theta": 0}),
    "a~c,b~d": Counterparts((("a", "c"), ("b", "d"))),
    "+-l1~l2~l3,psi1~psi2~psi3": Counterparts(
        (("l1", "l2", "l3"), ("psi1", "psi2", "psi3")), flips=("l1~l2~l3",)
    ),
    "theta[0]~theta[2],A[0,:]~A[2,:]": Counterparts(
        (("theta[0]", "theta[2]"), ("A[0,:]", "A[2,:]"))
    ),
    "a,b,s,+-eta:": Counterparts((("eta", "-eta"),), {"a": 0, "b": 0, "s": 0}),
    "a~c,x~-y,u[0]~-u[0],A:0:1,1-w": Counterparts(
        (("a", "c"), ("x", "-y"), ("u[0]", "-u[0]")), {"A": (0, 1)}, complements=("w",)
    ),
    "@load:1,scores:1": Rotation({"load": 1, "scores": 1}),
    "@z,S:0:1": Rotation({"z": 0, "S": (0, 1)}),
    "layer.0.weight:1,x-1,a+-b": Exchangeable({"layer.0.weight": 1, "x-1": 0, "a+-b": 0}),
}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_and_its_block_say_the_same(word):
    (block,) = parse_exchangeable([word])
    assert block == WORDS[word]
    assert spell(block) == word
    assert from_json(to_json((block,))) == (block,)


UNREADABLE = "W1:one W1:-1 W1: W1:1.0 A:1:1 1-theta:0 1-1-theta +-1-theta +-+-mu theta: +-theta:: mu1~ mu1~1-mu2:0"


@pytest.mark.parametrize(
    ("word", "part"),
    [
        *((word, word) for word in (*UNREADABLE.split(), "a b", "mu1~mu 2")),
        *(("", ""), ("mu,,x", ""), ("mu,", ""), ("x,:1", ":1"), ("mu,1-", "1-"), ("mu,+-", "+-")),
        *(("@", ""), ("@load:1,@scores:1", "@scores:1"), ("mu,@load", "@load"), ("@a~b", "a~b")),
    ],
)
def test_part_that_cannot_be_read_is_named_with_the_syntax(word, part):
    with pytest.raises(StudyError) as caught:
        parse_exchangeable(["good", word])
    assert f"`--exchangeable` has the invalid part {part!r} in {word!r}" in str(caught.value)


@pytest.mark.parametrize("word", ["mu,sigma,mu", "mu~x,y~mu", "mu,1-mu", "A:0,A:1,mu"])
def test_variable_named_twice_is_refused(word):
    with pytest.raises(StudyError, match=r"`--exchangeable` names (mu|A) twice"):
        parse_exchangeable([word])


@pytest.mark.parametrize(
    "block", [Rescalable({"W1": 1}), Exchangeable({"a,b": 0}), Complement("a:1")]
)
def test_block_without_a_word_is_refused(block):
    with pytest.raises(ValueError, match="--exchangeable"):
        spell(block)


@pytest.mark.parametrize(
    ("word", "shapes", "meant"),
    [
        ("+-theta,+-a", {"theta": (60,), "a": (8,)}, Flip(("theta", "a"))),
        ("+-b", {"b": ()}, Flip(("b",))),
        ("+-Z,+-L", {"Z": (60, 3), "L": (8, 3)}, Flip(("Z", "L"))),
        ("+-theta,+-a,1-p", {"theta": (60,), "a": (8,)}, Flip(("theta", "a"), ("p",))),
        ("+-theta,+-a", {"theta": (8,), "a": (8,)}, None),
        ("+-theta,a", {"theta": (60,), "a": (8,)}, None),  # a sign of theta's own has no place
        ("+-Z:1,+-L", {"Z": (60, 3), "L": (8, 3)}, None),  # an axis was asked for
        ("+-theta,+-a", {"theta": (60,)}, None),
    ],
)
def test_signs_of_unlike_variables_are_those_of_whole_variables(word, shapes, meant):
    assert as_meant(read(word), shapes) == (meant or read(word))


# On files

SHAPES = {
    "+-L:1,scale": {"L": (5, 3), "scale": (3,)},
    "+-W1:1,+-b1,+-W2": {"W1": (3, 4), "b1": (4,), "W2": (4, 2)},
    "A:0:1,mu": {"A": (4, 4), "mu": (4,)},
    "mu,1-theta": {"mu": (2,), "theta": ()},
    "1-p,1-q": {"p": (), "q": (3,)},
    "+-theta:,+-a:": {"theta": (6,), "a": (2,)},
}


def write_run(word: str) -> dict[str, np.ndarray]:
    """Save as run.nc what a planted truth looks like, each draw moved by an element of its own."""
    rng = np.random.default_rng(5)
    shapes = SHAPES[word]
    clean = {
        name: rng.normal(size=shape) + 0.02 * rng.normal(size=(4, 60, *shape))
        for name, shape in shapes.items()
    }
    group = Group(parse_exchangeable([word]), shapes)
    seen = group.act(group.random(rng, (4, 60)), clean)
    Path("run.nc").unlink(missing_ok=True)
    stats = {"lp": rng.normal(size=(4, 60))}
    save(build(Target("any"), seen, stats, {"engine": "stan", "method": "nuts"}), "run.nc")
    return clean


def deviation(tree, names) -> float:
    """The largest standard deviation of any entry over all draws."""
    return max(float(tree["posterior"][n].std(("chain", "draw")).max()) for n in names)


@pytest.mark.parametrize("word", SHAPES)
def test_align_and_diagnose_take_every_kind_of_block(onebasin, here: Path, word):
    clean = write_run(word)
    assert deviation(open_posterior("run.nc"), clean) > 0.2
    answer = onebasin("align", "run.nc", "--out", "aligned.nc", "--force", "--exchangeable", word)
    assert (answer.code, answer.err) == (0, "")
    aligned = open_posterior("aligned.nc")
    assert deviation(aligned, clean) < 0.03
    assert from_json(aligned.attrs["symmetry"]) == parse_exchangeable([word])
    if word.startswith("A"):
        found = onebasin("diagnose", "run.nc", "--json", "--exchangeable", word).json
        assert found["aligned"]["diagnosis"]["summary"]["rhat_value"] < 1.05


def test_rotations_are_aligned_as_typed(onebasin, here: Path):
    rng = np.random.default_rng(0)
    simple = np.array([[0.9, 0], [0.8, 0], [0.7, 0.1], [0, 0.8], [0, 0.9], [0.1, 0.6]])
    block = Rotation({"load": 1, "scores": 1})
    clean = {
        "load": simple + 0.05 * rng.normal(size=(2, 40, 6, 2)),
        "scores": rng.normal(size=(2, 40, 5, 2)),
    }
    moved = block.act(clean, *block.random(rng, (2, 40), 2))
    origin = {"engine": "stan", "method": "nuts"}
    save(build(Target("any"), moved, {"lp": rng.normal(size=(2, 40))}, origin), "run.nc")
    word = ("--exchangeable", "@load:1,scores:1")
    answer = onebasin("align", "run.nc", *word, "--out", "a.nc")
    assert answer.code == 0, answer.err
    aligned = open_posterior("a.nc")
    assert from_json(aligned.attrs["symmetry"]) == (block,)
    assert aligned["posterior"]["load"].std(("chain", "draw")).max() < 0.08
