"""Mathematics that works offline: the page contains TeX, and the KaTeX in `_static/katex` renders it.

Without JavaScript, readers see the TeX.
"""

from __future__ import annotations

from html import escape

from docutils import nodes
from sphinx.application import Sphinx


def _inline(writer, node: nodes.math) -> None:
    writer.body.append(_element("span", node.astext()))
    raise nodes.SkipNode


def _block(writer, node: nodes.math_block) -> None:
    writer.body.append(_element("div", node.astext()))
    raise nodes.SkipNode


def _element(tag: str, tex: str) -> str:
    text = escape(tex.strip())
    return f'<{tag} class="math notranslate nohighlight" data-tex="{text}">{text}</{tag}>'


def setup(app: Sphinx) -> dict[str, bool]:
    """Make Sphinx use this renderer for formulas, and add KaTeX's files to every page."""
    app.add_html_math_renderer("katex", (_inline, None), (_block, None))
    app.add_css_file("katex/katex.min.css")
    app.add_js_file("katex/katex.min.js", loading_method="defer")
    app.add_js_file("katex/render.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
