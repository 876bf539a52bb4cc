"""One self-contained HTML page with answer cards, tables, figures, and how every number was made.

`report` writes the page of one or more posteriors, which `posterior_report` builds; a study builds its own
from the parts (`Report`, `Section`, `Table`, `FigureItem`, `Details`, ...: see `page`). `render` gives the HTML,
`write` a file.

`__init__.pyi` lists the names, each loaded when it is first asked for: a table in a terminal needs no figures.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
