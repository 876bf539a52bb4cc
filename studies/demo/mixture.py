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
    """Draws of the mixture, with its symmetry."""

    posterior: xr.DataTree  # NUTS draws as sampled.
    words: str  # Declaration of the symmetry that was found.
    changes: tuple[float, ...]
    """Changes of the log density under the symmetry at random points, in nats."""
    diagnosis: Diagnosis  # Diagnosis before and after alignment.

    @property
    def aligned(self) -> AlignedDiagnosis:
        """Diagnosis after alignment, with the aligned draws."""
        assert self.diagnosis.aligned is not None, "a symmetry is given"
        return self.diagnosis.aligned

    @property
    def verdict(self) -> str:
        """Heading of the verdict on the draws."""
        return self.diagnosis.judgement.heading

    @property
    def draws(self) -> xr.Dataset:
        """Aligned draws."""
        return self.aligned.alignment.posterior.posterior.dataset

    @property
    def relabelled(self) -> float:
        """Share of draws that alignment relabelled."""
        moved = self.draws["mu"] != self.posterior.posterior["mu"]
        return float(moved.any("mu_dim_0").mean())


def target() -> Target:
    """Return the program with its data and without a declared symmetry."""
    return stan_program(HERE / "mixture.stan", HERE / "mixture.json", name="mixture")


def run() -> Mixture:
    """Sample the mixture, find its symmetry in the log density, verify it at other points, and align the draws."""
    mixture = target()
    posterior = nuts(mixture, seed=SEED, symmetry=False, progress=False)
    found = find_symmetry(mixture)
    checked = check_symmetry(replace(mixture, symmetry=found.symmetry), points=10, seed=SEED)
    diagnosis = diagnose(posterior, symmetry=found.symmetry)
    return Mixture(posterior, " ".join(found.words), checked.differences, diagnosis)
