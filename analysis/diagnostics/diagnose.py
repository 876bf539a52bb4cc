"""May a posterior be used? Its numbers, and what they come to."""

from .measure import measure as diagnose

__all__ = ["diagnose"]
