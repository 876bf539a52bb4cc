"""Draw the figure of the README: traces of a mixture before and after alignment, below the verdict.

`python docs/gallery/mixture_before_after.py` samples `notebooks/programs/mixture.stan` with seed 1 and writes
`docs/images/mixture-before-after.png`, with an opaque background, so that it is legible on pages of any colour.
"""

import textwrap
from pathlib import Path

import onebasin as ob

HERE = Path(__file__).parent
PROGRAMS = HERE.parents[1] / "notebooks" / "programs"
PICTURE = HERE.parent / "images" / "mixture-before-after.png"
MARKS = {"good": "\N{CHECK MARK}", "warn": "!", "bad": "\N{BALLOT X}"}
COLOURS = {"good": "#1a7f4b", "warn": "#9a6700", "bad": "#b42318"}


def main() -> None:
    """Sample the mixture, diagnose the draws and draw the figure."""
    target = ob.stan_program(PROGRAMS / "mixture.stan", PROGRAMS / "mixture.json")
    posterior = ob.nuts(target, seed=1)
    diagnosis = ob.diagnose(posterior)
    assert diagnosis.judgement is not None
    figure = ob.plot.aligned(diagnosis, var_names=["mu", "theta"])
    width, height = 8.6, 4.9
    figure.set_size_inches(width, height)
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.75 / height))
    figure.text(
        0.012,
        0.985,
        f"ob.diagnose(posterior):  {MARKS[diagnosis.judgement.flag]} {diagnosis.judgement.heading}",
        fontsize=13,
        fontweight="bold",
        color=COLOURS[diagnosis.judgement.flag],
        va="top",
    )
    sentence = diagnosis.judgement.sentence.replace("`", "")
    figure.text(0.012, 0.935, textwrap.fill(sentence, 108), fontsize=9.5, color="#2a2f36", va="top")
    PICTURE.write_bytes(figure.png(dpi=200))


if __name__ == "__main__":
    main()
