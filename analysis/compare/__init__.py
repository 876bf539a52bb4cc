"""Comparison of posteriors: predictions, moments, two-sample tests."""
