"""Log densities of targets: NumPyro models, networks and Stan programs."""
