"""Microcanonical Langevin Monte Carlo: dynamics with unit momentum, tuned by their energy error."""
