"""Public names as people write them: entries are called `ob.nuts`, and `ob.nuts` in code font leads to its entry."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import desc_addname
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(?:ob|onebasin)\.(\w+)(?:\(.*\))?")


class LinkPublicNames(SphinxPostTransform):
    """Wrap literals that are nothing but a public name into links."""

    default_priority = 400

    def run(self, **_: object) -> None:
        """Link all of one page."""
        objects = self.env.domains.python_domain.objects
        for literal in list(self.document.findall(nodes.literal)):
            match = NAME.fullmatch(literal.astext())
            entry = objects.get(f"onebasin.{match[1]}") if match else None
            if entry is None or isinstance(literal.parent, nodes.reference):
                continue
            link = make_refnode(
                self.app.builder, self.env.docname, entry.docname, entry.node_id, literal.deepcopy()
            )
            literal.replace_self(link)


class ShortenNames(SphinxPostTransform):
    """Call an entry as it is called after `import onebasin as ob`."""

    default_priority = 400

    def run(self, **_: object) -> None:
        """Shorten the entries of one page."""
        for prefix in self.document.findall(desc_addname):
            if prefix.astext() == "onebasin.":
                prefix.children = [nodes.Text("ob.")]


def shorten_defaults(
    _app: Sphinx, _what: str, _name: str, _value: object, _options: object, call: str, returns: str
) -> tuple[str, str] | None:
    """Show a default that Python cannot spell, such as what a factory makes, as dots."""
    return (re.sub(r"=<[^<>]*(?:<[^<>]*>)?>", "=...", call), returns) if call else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what this module does."""
    app.add_post_transform(LinkPublicNames)
    app.add_post_transform(ShortenNames)
    app.connect("autodoc-process-signature", shorten_defaults)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
