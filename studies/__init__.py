"""Experiments of papers, with their recorded results."""
