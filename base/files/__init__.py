"""Files that are written completely or not at all, and how they are read."""
