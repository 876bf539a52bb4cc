"""One Gaussian between two equal modes: all optima, descents, thresholds."""
