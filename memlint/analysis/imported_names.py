"""What the names in a source stand for by its imports, as far as its text tells: a help of
sieves, which must know functions under whatever name a program calls them by."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from memlint.analysis.last_name import last_name
from memlint.analysis.marks import path_of
from memlint.late_pattern import late_pattern

_IMPORT = late_pattern(r"^[ \t]*import[ \t]+([^\n#;]+)", re.MULTILINE)
_FROM = late_pattern(
    r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^\n#;(]+))", re.MULTILINE
)
# Another name for a function, given by hand.
_ASSIGNED = late_pattern(r"^[ \t]*(\w+)[ \t]*=[ \t]*(\w+(?:\.\w+)+)[ \t]*(?:#.*)?$", re.MULTILINE)
_COMMENT = late_pattern(r"#[^\n]*")


@lru_cache(maxsize=8)
def imported(source: str) -> dict[str, str]:
    """What the names that a source imports, or assigns to a name of a module, stand for."""
    found: dict[str, str] = {}
    for names in _IMPORT.findall(source):
        for full, local in _pairs(names):
            if local:
                found[local] = full
            else:
                found[full.partition(".")[0]] = full.partition(".")[0]
    for module, several, one in _FROM.findall(source):
        for name, local in _pairs(_COMMENT.sub("", several) or one):
            found[local or name] = f"{module}.{name}"
    for local, path in _ASSIGNED.findall(source):
        root, _, rest = path.partition(".")
        if root in found and local not in found:
            found[local] = f"{found[root]}.{rest}"
    return found


def _pairs(names: str) -> list[tuple[str, str]]:
    return re.findall(r"([\w.]+)(?:[ \t]+as[ \t]+(\w+))?", names)


def full_name(node: ast.expr, source: str) -> str:
    """The name of what is called by the module that it comes from; the last name of what is no
    chain of names."""
    path = path_of(node)
    if not path:
        return last_name(node)
    root, dot, rest = path.partition(".")
    return imported(source).get(root, root) + dot + rest
