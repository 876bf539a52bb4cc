"""Posteriors in every format that is read or written; `open` and `writing` choose."""
