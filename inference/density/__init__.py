"""Log densities of targets: over vectors of the unconstrained space (`base`), by NumPyro, by networks and by Stan."""
