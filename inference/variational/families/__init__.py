"""Families of approximations in the unconstrained space, one module each."""
