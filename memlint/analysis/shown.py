"""Parts of programs as messages show them."""

from __future__ import annotations

import ast

LONGEST = 60


def short_text(text: str) -> str:
    """A text on one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def shown(node: ast.AST) -> str:
    """An expression between backticks."""
    return f"`{short_text(ast.unparse(node))}`"
