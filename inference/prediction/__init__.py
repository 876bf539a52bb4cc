"""Predictions at new data, draws from the prior, and leave-one-out cross-validation, for any model."""
