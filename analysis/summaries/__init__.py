"""Summaries of posteriors: parameters, statistics of the sampler, and variational fits."""
