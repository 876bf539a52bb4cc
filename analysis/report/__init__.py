"""Self-contained HTML pages with answer cards, tables, figures and the origin of every number.

`report` writes a page about one or more posteriors, built by `posterior_report`. A study builds its own page from parts
(`Report`, `Section`, `Table`, `FigureItem`, `Details`, ...: see `page`). `render` returns the HTML, and `write` makes a
file.

`__init__.pyi` lists the names, which are loaded at first use, because a table in a terminal needs no figures.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
