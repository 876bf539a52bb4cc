"""Interfaces of densities, engines, methods and runs."""
