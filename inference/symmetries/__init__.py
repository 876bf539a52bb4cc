"""Discrete symmetries of a target, found from its log density."""
