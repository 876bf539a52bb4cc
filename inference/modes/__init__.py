"""Optima, sampling mode by mode, and the approximations of Laplace and Pathfinder."""
