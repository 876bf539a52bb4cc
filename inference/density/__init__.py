"""Log densities of targets, of NumPyro models, networks and Stan programs."""
