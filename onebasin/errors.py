"""Errors that a program may want to catch separately; each is an `ob.OnebasinError`. `errors.pyi` lists them."""

from .base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __package__, __file__)
