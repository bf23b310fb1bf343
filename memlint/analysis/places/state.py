"""Which functions may write what they are given with ``torch.save``, by their names alone: a
sieve."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from memlint.analysis.imported_names import full_name, imported
from memlint.analysis.walking import kinds_in

_SAVES = frozenset({"torch.save", "torch.serialization.save"})


def may_save(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function names ``torch.save``, however that is called in the program."""
    del around
    kinds, names = kinds_in(function), _names(source)
    return any(one.id in names for one in kinds[ast.Name]) or any(
        one.attr == "save" and _may_be_of_torch(one, source) for one in kinds[ast.Attribute]
    )


@lru_cache(maxsize=2)
def _names(source: str) -> frozenset[str]:
    """What ``torch.save`` is called by itself."""
    found = {local for local, full in imported(source).items() if full in _SAVES}
    return frozenset(found | {"save"} if "import *" in source else found)


def _may_be_of_torch(node: ast.Attribute, source: str) -> bool:
    if full_name(node, source) in _SAVES:
        return True
    base = node.value
    name = base.id if isinstance(base, ast.Name) else getattr(base, "attr", "")
    return re.search(rf"\b{name}[ \t]*=[^=\n]*\btorch\b(?!\.)", source) is not None
