"""The engines: who evaluates a density and runs a method."""
