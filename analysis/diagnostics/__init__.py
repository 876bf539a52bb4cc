"""Diagnosis of a posterior, before and after alignment by its symmetry."""
