"""Approximations by fixed draws, importance weights for any approximation, and what tells whether they hold."""
