"""Microcanonical Langevin Monte Carlo: dynamics of unit momentum, tuned by their energy error, on NumPyro models."""
