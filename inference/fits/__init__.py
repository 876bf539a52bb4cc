"""Approximations with fixed draws, importance weights for any approximation, and checks of both."""
