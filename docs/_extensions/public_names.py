"""Show public names as users write them, `ob.nuts`, and link this form in code font to its entry."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import desc_addname
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(?:ob|onebasin)\.(\w+(?:\.\w+)?)(?:\(.*\))?")
PUBLIC = re.compile(r"onebasin\.(?:(?:approximations|errors|networks|plot|stan|truth)\.)?")
"""The prefix of a public name; classes of results have none."""


class LinkPublicNames(SphinxPostTransform):
    """Turn literals that consist of a public name into links."""

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


class LinkClasses(SphinxPostTransform):
    """Link a type, such as a return type, to its entry if it is a class of the reference."""

    default_priority = 400

    def run(self, **_: object) -> None:
        """Link all of one page."""
        classes = {
            name.rpartition(".")[2]: entry
            for name, entry in self.env.domains.python_domain.objects.items()
            if entry.objtype in ("class", "exception")
        }
        for text in list(self.document.findall(nodes.emphasis)):
            entry = classes.get(text.astext())
            if entry is not None and not isinstance(text.parent, nodes.reference):
                link = make_refnode(
                    self.app.builder,
                    self.env.docname,
                    entry.docname,
                    entry.node_id,
                    text.deepcopy(),
                )
                text.replace_self(link)


class ShortenNames(SphinxPostTransform):
    """Name an entry as after `import onebasin as ob`, and a class of results without a prefix."""

    default_priority = 400

    def run(self, **_: object) -> None:
        """Shorten the names of entries on one page."""
        for prefix in self.document.findall(desc_addname):
            if PUBLIC.fullmatch(prefix.astext()):
                prefix.children = [nodes.Text(prefix.astext().replace("onebasin", "ob", 1))]
            elif prefix.astext().startswith("onebasin."):
                prefix.children = []


def shorten_calls(
    _app: Sphinx, what: str, name: str, _value: object, _options: object, call: str, returns: str
) -> tuple[str, str] | None:
    """Show a default without a Python literal as dots; omit the signature of a result class, which users never call."""
    if what == "class" and not PUBLIC.fullmatch(f"{name.rpartition('.')[0]}."):
        return "", ""
    return (re.sub(r"=<[^<>]*(?:<[^<>]*>)?>", "=...", call), returns) if call else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transforms of this module."""
    app.add_post_transform(LinkPublicNames)
    app.add_post_transform(LinkClasses)
    app.add_post_transform(ShortenNames)
    app.connect("autodoc-process-signature", shorten_calls)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
