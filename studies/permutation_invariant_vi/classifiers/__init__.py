"""Classifiers of growing width: fits by every method, nearest equivalent modes, distances from HMC."""
