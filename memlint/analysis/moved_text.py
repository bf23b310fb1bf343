"""Whether the text of a function may move what it has just made: a sieve, not a proof."""

from __future__ import annotations

import re

_MOVE = re.compile(r"\.(?:to|cuda|type_as|type)\(")
_FACTORY = re.compile(
    r"\b(?:zeros|ones|empty|full|eye|arange|tri[lu]_indices|linspace|logspace|range|hann_window|"
    r"hamming_window|kaiser_window|rand|randn|randint|randperm|normal)\s*\("
)
# So far apart, at most, are a factory and the move of what it makes, in one expression.
_NEAR = 400


def moves_what_it_makes(text: str) -> bool:
    """Whether a factory is followed by a move in its expression, or the name that it is
    assigned to is moved."""
    if _MOVE.search(text) is None:
        return False
    return any(
        _MOVE.search(text, found.end(), found.end() + _NEAR) is not None
        or any(f"{name}{move}" in text for name in _names_before(text, found.start())
               for move in (".to(", ".cuda(", ".type_as(", ".type("))
        for found in _FACTORY.finditer(text)
    )  # fmt: skip


def _names_before(text: str, at: int) -> list[str]:
    """The names that the statement around ``at`` may assign to, and those it may be part of."""
    start = max(text.rfind("\n", 0, at) + 1, 0)
    return re.findall(r"[\w.]+(?=\s*(?:,|=|:))", text[start:at])
