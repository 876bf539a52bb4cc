"""Charts of constrained weights and biases, and their prior distributions."""
