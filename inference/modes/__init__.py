"""Optima, and approximations from the way to one: Laplace's and Pathfinder."""
