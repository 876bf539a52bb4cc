"""A run of any method beside what is known of its posterior, with Monte Carlo error on both sides."""
