"""A public name in code font, such as `ob.nuts`, leads to its entry in the reference."""

from __future__ import annotations

import re

from docutils import nodes
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


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(LinkPublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
