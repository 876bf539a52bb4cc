"""The base of every named error, and the one that stands for no fault."""


class OnebasinError(Exception):
    """Base of all errors that onebasin names; each is also the built-in error that it resembles."""


class RunCancelled(OnebasinError, RuntimeError):
    """A run that was told to stop before its end."""
