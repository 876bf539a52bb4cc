"""Reference posteriors: kept with the package, made anew by `onebasin truth make`, checked by code of its own."""

from .reference import Reference, open_reference, references

__all__ = ["Reference", "open_reference", "references"]
