"""The parts of an HTML page, and the writers that render them."""
