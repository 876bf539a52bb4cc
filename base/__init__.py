"""Shared by every package: settings, checks, errors, text, cards, progress, processes and files."""
