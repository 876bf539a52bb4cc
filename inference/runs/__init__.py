"""Running methods, checkpoints, and building posteriors with all their groups."""
