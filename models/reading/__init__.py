"""Symmetries read from a program: which axes move together and which signs, derived from a jaxpr."""
