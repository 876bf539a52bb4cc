"""Reference posteriors: kept with the package, made again by `onebasin truth make`, checked by separate code."""

from .reference import Reference, open_reference, references

__all__ = ["Reference", "open_reference", "references"]
