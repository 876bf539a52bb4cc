"""Simulation-based calibration: whether a method is right on a family of models, by data simulated from it."""
