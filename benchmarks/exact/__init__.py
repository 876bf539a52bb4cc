"""Posteriors of a few parameters that quadrature knows, and every method compared with them."""
