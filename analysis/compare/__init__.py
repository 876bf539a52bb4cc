"""Posteriors beside one another: predictions, moments, two-sample tests."""
