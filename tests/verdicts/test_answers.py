"""Tried as a new user would, on files of other tools: what must be said, what must not, and what must not be passed."""

import json
import re

import arviz as az
import numpy as np
import xarray as xr

import onebasin as ob
from benchmarks.verdicts import labels, plain


def words(answer: tuple[int, str, str]) -> str:
    """All that a command said, in one line."""
    return re.sub(r"\s+", " ", answer[1] + answer[2])


def small_mixture(generator: np.random.Generator, how: str) -> xr.DataTree:
    """Three components, 400 draws a chain."""
    return labels.mixture(generator, labels=how, draws=400, slow=(0.0, 0.2)).tree()


def test_switched_labels_are_named_with_the_words_to_declare(generator, write, onebasin):
    path = write(small_mixture(generator, "chains"))
    code, out, _ = onebasin("diagnose", path, "--json", "--strict")
    said = json.loads(out)
    assert code == 1
    assert (said["verdict"], said["causes"], said["exchangeable"]) == (
        "aligned",
        ["labels"],
        ["mu,sigma,theta"],
    )


def test_signs_of_60_and_8_change_together(draw, write, onebasin, tmp_path):
    tree = draw("2PL: sign by chain", 1)
    path = write(tree)
    out = tmp_path / "aligned.nc"
    code, shown, error = onebasin("align", path, "--exchangeable", "+-theta,+-a", "--out", out)
    assert code == 0, shown + error
    aligned = ob.open_posterior(out)
    assert float(np.abs(aligned.posterior["a"].mean(("chain", "draw"))).min()) > 0.1
    assert max(float(v.max()) for v in az.rhat(aligned).data_vars.values()) < 1.02


def test_nothing_is_wider_than_the_terminal(draw, write, onebasin, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = onebasin("diagnose", write(draw("regressions: log_lik of 200", 1)))[1]
    assert max(map(len, shown.splitlines())) <= 80


def test_unlike_coefficients_are_not_aligned_without_a_warning(
    generator, write, onebasin, tmp_path
):
    posterior = plain.regression(generator, covariates=3)
    path = write(posterior.tree())
    answer = onebasin("align", path, "--exchangeable", "beta", "--out", tmp_path / "a.nc")
    assert answer[0] == 1
    assert "cannot be aligned by `beta`" in words(answer)
