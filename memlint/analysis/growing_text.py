"""A sieve for functions that may make an array longer by concatenation, by their text.

It errs on the side of yes: what it turns down cannot hold an accumulation as
:mod:`memlint.analysis.accumulation` knows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Of a list, ``append`` gives nothing that could be assigned, returned or handed on.
_JOIN = re.compile(
    r"\b(?:cat|concat|concatenate|[hvd]stack|row_stack|column_stack)\s*(\()|"
    r"(?:[=(,\[:]|\breturn|\belse)\s*(?:\w+\.)*append\s*(\()|"
    r"\b[rc]_\s*(\[)"
)
_IMPORT = re.compile(
    r"import\b.*\b(cat|concat|concatenate|[hvd]stack|row_stack|column_stack|append|r_|c_)\b"
)
_ASSIGNED = re.compile(r"([^=!<>\n]*[^=!<>:\s])\s*(?::[^=\n]*)?=(?!=)")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.\w+|\[[^\]\n]*\])*")
_HEAD = re.compile(r"\bdef\s+\w+\s*\((.*?)\)\s*(?:->[^:\n]*)?:", re.DOTALL)
_LONGEST = 2000
_CLOSING = {"(": ")", "[": "]"}


def may_accumulate(text: str) -> bool:
    """Whether an operand of a concatenation in ``text`` may be replaced by its result."""
    if _IMPORT.search(text):
        return True
    parameters: set[str] | None = None
    for call in _JOIN.finditer(text):
        start = next(i for i in (call.start(1), call.start(2), call.start(3)) if i >= 0)
        inside = _inside(text, start)
        if _is_one_list(call, inside):
            continue
        names = set(_names(inside))
        target = _target(text, start)
        if target is None or names & target:
            return True
        if parameters is None:
            parameters = {name for head in _HEAD.findall(text) for name in _names(head)}
        # The result of a helper, or an attribute of its object.
        leaves = "return" in text or any("." in name or "[" in name for name in names)
        if leaves and not parameters.isdisjoint(names):
            return True
        if any(_takes_over(text, name, target) for name in names):
            return True
    return False


def _is_one_list(call: re.Match[str], inside: str) -> bool:
    """``cat(parts)``: what is joined once does not grow."""
    return bool(call.group(1)) and not any(char in inside[1:] for char in "([")


def _inside(text: str, start: int) -> str:
    """What stands in the bracket that opens at ``start``."""
    depth = 0
    for i, char in enumerate(text[start : start + _LONGEST]):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return text[start : start + i]
    return text[start : start + _LONGEST]


def _names(text: str) -> Iterator[str]:
    """The variables and attributes in a text, with those that they are parts of."""
    for path in _PATH.findall(text):
        yield path
        for end, char in enumerate(path):
            if char in ".[":
                yield path[:end]


def _target(text: str, position: int) -> set[str] | None:
    """The names that the statement around ``position`` assigns to; ``None`` if not found."""
    line = text.rfind("\n", 0, position) + 1
    for _ in range(4):
        before = text[line:position]
        found = _ASSIGNED.match(before)
        if found:
            return set(_names(found.group(1)))
        if re.match(r"\s*return\b", before):
            return set()
        if line == 0:
            break
        line = text.rfind("\n", 0, line - 1) + 1
    return None


def _takes_over(text: str, name: str, target: set[str]) -> bool:
    """Whether ``name`` is assigned what was assigned to ``target``."""
    if not target:
        return False
    bound = rf"^[^=\n]*(?<![\w.]){re.escape(name)}(?![\w.\[])[^=\n]*=(?!=)([^\n]*)"
    return any(
        not target.isdisjoint(_names(right)) for right in re.findall(bound, text, re.MULTILINE)
    )
