"""A mixture in Stan whose chains end in different labellings: find the symmetry, verify it, align the draws."""

from dataclasses import dataclass, replace
from pathlib import Path

import xarray as xr

from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.diagnostics.result import AlignedDiagnosis, Diagnosis
from onebasin.inference import check_symmetry, find_symmetry, nuts
from onebasin.models.target import Target
from onebasin.stan import stan_program

HERE = Path(__file__).parent
SEED = 1


@dataclass(frozen=True, eq=False)
class Mixture:
    """Draws of the mixture, and its symmetry."""

    posterior: xr.DataTree  # Draws of NUTS as sampled.
    words: str  # The symmetry that was found, as it is declared.
    changes: tuple[float, ...]
    """Changes of the log density under the symmetry at random points, in nats."""
    diagnosis: Diagnosis  # Numbers before and after alignment.

    @property
    def aligned(self) -> AlignedDiagnosis:
        """The numbers after alignment, with the aligned draws."""
        assert self.diagnosis.aligned is not None, "a symmetry is given"
        return self.diagnosis.aligned

    @property
    def verdict(self) -> str:
        """Check whether the draws may be used, in a few words."""
        return self.diagnosis.judgement.heading

    @property
    def draws(self) -> xr.Dataset:
        """The aligned draws."""
        return self.aligned.alignment.posterior.posterior.dataset

    @property
    def relabelled(self) -> float:
        """The share of draws that alignment relabelled."""
        moved = self.draws["mu"] != self.posterior.posterior["mu"]
        return float(moved.any("mu_dim_0").mean())


def target() -> Target:
    """Return the program with its data; it declares no symmetry."""
    return stan_program(HERE / "mixture.stan", HERE / "mixture.json", name="mixture")


def run() -> Mixture:
    """Sample the mixture, find its symmetry in the log density, verify it at other points, and align the draws."""
    mixture = target()
    posterior = nuts(mixture, seed=SEED, symmetry=False, progress=False)
    found = find_symmetry(mixture)
    checked = check_symmetry(replace(mixture, symmetry=found.symmetry), points=10, seed=SEED)
    diagnosis = diagnose(posterior, symmetry=found.symmetry)
    return Mixture(posterior, " ".join(found.words), checked.differences, diagnosis)
