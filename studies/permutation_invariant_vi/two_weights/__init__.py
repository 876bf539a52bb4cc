"""The network of two weights, whose posterior is known."""
