"""The version of the installed package, read when it is first used."""

from importlib.metadata import version

__version__ = version("onebasin")
