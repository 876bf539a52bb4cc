"""Demonstration: label switching in a mixture, and three approximations of a network compared with NUTS.

`onebasin demo` runs `mixture.run` and `network.run`, prints their numbers, and writes `page.page` to one file. Both
examples are small and compile no Stan program.
"""
