"""Posteriors in every format that is read or written, each in a module of its own; `opening` and `writing` choose."""
