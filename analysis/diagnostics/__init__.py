"""Diagnosing a posterior, raw and modulo a declared symmetry."""
