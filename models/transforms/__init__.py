"""Charts of constrained weights and biases, their constraints and prior distributions."""
