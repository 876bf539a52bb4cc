"""Inputs that people had, each with the right answer."""
