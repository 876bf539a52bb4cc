"""A run of any method compared with its reference posterior, with Monte Carlo error on both sides."""
