"""Predictions of networks and their scores: errors, uncertainty, calibration and agreement."""
