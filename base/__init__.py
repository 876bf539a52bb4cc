"""What every package uses: settings, checks, errors, text, cards, progress, processes and files."""
