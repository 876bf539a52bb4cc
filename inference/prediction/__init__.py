"""Draws at new data: predictions, prior draws, and log likelihoods of observations, of any model."""
