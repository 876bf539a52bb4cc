"""The sections of a page about one posterior; every one takes a `Subject`.

A section is None where there is nothing to show; what is missing in a posterior, and what to store so that it is
shown, a section says in one line.
"""
