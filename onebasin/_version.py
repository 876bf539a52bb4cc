"""The version, read from the installed package when it is asked for."""

from importlib.metadata import version

__version__ = version("onebasin")
