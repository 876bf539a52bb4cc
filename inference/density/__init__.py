"""Log densities of targets in the unconstrained space, by NumPyro, by networks and by Stan."""
