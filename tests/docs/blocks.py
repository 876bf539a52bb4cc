"""The code blocks of a page, with the test instructions in the HTML comments above them.

===========================  =================================================================
comment                      meaning
===========================  =================================================================
``quick: A => B``            the test runs the block with B where it shows A; A must be there
``not run: REASON``          the block cannot run here; names and options in it are still held
``setup: LINES``             hidden lines that run before, in the block's own language
``setup python: LINES``      the same in the language named (``python`` or ``sh``)
``file: NAME``               the block is written to the file NAME, not run
``exit: N``                  the exit code of the block's last command, where it is not 0
``output: exact``            on a ``text`` block: the block before printed exactly this; a last line ``...``
                             leaves out the rest
``output: within X``         the same, but numbers may differ by X
``output: part``             something before on the page printed this among other lines, broken anywhere; numbers may
                             differ by a tenth, as other processors draw other chains
===========================  =================================================================

A comment stands right above its block; several may.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ASKED = re.compile(
    r"<!--\s*(quick|not run|setup|setup python|setup sh|file|exit|output):\s*(.*?)\s*-->", re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and text, the line where the text begins, and the instructions for it."""

    language: str
    text: str
    line: int
    asked: tuple[tuple[str, str], ...] = ()

    def one(self, name: str) -> str | None:
        """Return the text of the comment with this name, or None."""
        return next((said for word, said in self.asked if word == name), None)

    @property
    def setup(self) -> list[tuple[str, str]]:
        """The hidden lines to run before the block, with their language."""
        words = [(word, said) for word, said in self.asked if word.startswith("setup")]
        return [(word.partition(" ")[2] or self.language, said) for word, said in words]

    @property
    def quick(self) -> str:
        """The text that the test runs."""
        text = self.text
        for word, said in self.asked:
            if word == "quick":
                shown, _, small = said.partition(" => ")
                if shown not in text:
                    raise ValueError(f"line {self.line}: `{shown}` of a quick comment is not there")
                text = text.replace(shown, small)
        return text


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in order.

    Raises
    ------
    ValueError
        If a comment with an instruction is not above a block.
    """
    found: list[Block] = []
    asked: list[tuple[str, str]] = []
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "html_block":
            asked += ASKED.findall(token.content)
        elif token.type == "fence":
            line = token.map[0] + 2 if token.map else 0
            language = token.info.split()[0] if token.info.strip() else ""
            found.append(Block(language, token.content, line, tuple(asked)))
            asked = []
        elif asked and token.type in ("heading_open", "paragraph_open"):
            raise ValueError(f"{page.name}: the comment `{asked[0][0]}: ...` is above no block")
    return found
