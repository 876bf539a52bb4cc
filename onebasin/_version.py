"""The version, read from the installed package when it is requested."""

from importlib.metadata import version

__version__ = version("onebasin")
