"""Registry of studies. A new study needs one entry here and one module next to this file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lab.study import Study


@dataclass(frozen=True)
class StudyEntry:
    """Module, paper and summary of a study."""

    module: str
    """Name of the module that defines `STUDY`; a name with a leading dot is relative to this package."""
    paper: str  # Paper that the study repeats or follows.
    summary: str  # One-line description of the comparison.


_POURZANJANI = "Pourzanjani, Jiang and Petzold 2017"

STUDIES: Mapping[str, StudyEntry] = {
    "relu-teacher": StudyEntry(
        ".relu_teacher",
        f"{_POURZANJANI}, section 4.1",
        "two ReLU units, free and constrained, NUTS against ADVI in both engines",
    ),
    "boston": StudyEntry(
        ".boston",
        f"{_POURZANJANI}, section 4.2",
        "50 ReLU units on Boston Housing, free and constrained, NUTS on 80/20 splits",
    ),
    "compact-representation": StudyEntry(
        ".compact_representation",
        "Xiao, Liu and Bamler 2023",
        "one Gaussian for a classifier's posterior: HMC, ensembles and VI, before and after alignment",
    ),
    "permutation-invariant-vi": StudyEntry(
        ".permutation_invariant_vi",
        "Gelberg, van der Ouderaa, van der Wilk and Gal 2024",
        "VI averaged over permutations: its information by the permanent and by InfoNCE, with HMC for comparison",
    ),
    "orthogonal-skips": StudyEntry(
        ".orthogonal_skips",
        "Kurle, Januschowski, Gasthaus and Wang 2021",
        "five layers of 32 units, symmetry broken or not: mean-field VI against MCMC, and what collapses",
    ),
}


def find_study(name: str) -> Study:
    """Load a study by name; an unknown name raises an error that lists the studies."""
    # Imported here, so that listing the studies does not load NumPy.
    from onebasin.base.checks import choose

    choose("NAME", name, STUDIES)
    study: Study = import_module(STUDIES[name].module, __package__).STUDY
    return study
