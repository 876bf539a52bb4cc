"""Simulation-based calibration: test a method on data simulated from a family of models."""
