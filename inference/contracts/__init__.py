"""The contracts: a density, an engine, a method and its run."""
