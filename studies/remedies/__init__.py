"""Remedies for a network's symmetry, side by side, on three data sets, twice.

The experiment is our own. Kurle, Januschowski, Gasthaus and Wang 2021, "On symmetries in variational Bayesian neural
nets", list four ways to keep symmetric modes from biasing an approximation (likelihood, prior, approximation,
objective) and show one, in a picture. Here these ways, and what can be done after sampling, are compared with
chains of NUTS, each on the model that it is for. All is done twice, with other data and other seeds, and a
statement holds if it does so on every data set both times. What docs/guides/which-remedy.md says rests on this.
"""

from .page import STUDY as STUDY
