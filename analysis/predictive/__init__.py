"""Predictive scores: how far off, how sure, how well calibrated, and how alike."""
