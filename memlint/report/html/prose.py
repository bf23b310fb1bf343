"""Messages as markup: what stands between backquotes in them is code."""

from __future__ import annotations

from markupsafe import Markup

from memlint.report.html.svg import element, text


def prose(message: str) -> Markup:
    """A message, escaped, with its code marked as code; a backquote without another stays."""
    pieces = message.split("`")
    if len(pieces) % 2 == 0:
        pieces[-2:] = ["`".join(pieces[-2:])]
    return Markup("").join(
        element("code", piece) if index % 2 else text(piece) for index, piece in enumerate(pieces)
    )
