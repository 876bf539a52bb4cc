"""Errors that programs catch apart from others; every one is an `ob.OnebasinError`. `errors.pyi` lists them."""

from .base.listed import attach

__getattr__, __dir__, __all__ = attach(__name__, __package__, __file__)
