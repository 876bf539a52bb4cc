"""The demonstration: label switching in a mixture, and three approximations of one network compared with NUTS.

`onebasin demo` runs `mixture.run` and `network.run`, prints their numbers, and writes `page.page` as one file. Both
examples are small, and no Stan program is compiled.
"""
