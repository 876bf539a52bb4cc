"""What can be wrong with a posterior, one cause a module: pure functions on arrays and numbers."""
