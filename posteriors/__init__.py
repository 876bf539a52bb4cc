"""Posteriors in every format that is read or written, each in its own module; `opening` and `writing` choose."""
