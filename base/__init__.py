"""Code that all packages share: settings, checks, errors, text, cards, progress, processes and files."""
