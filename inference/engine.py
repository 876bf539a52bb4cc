"""The engines."""

ENGINES = ("numpyro", "stan")
