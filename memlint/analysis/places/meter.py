"""Classes that add what they are given to themselves, as their text tells: a sieve."""

from __future__ import annotations

import re

from memlint.analysis.retention import GROWING
from memlint.late_pattern import late_pattern

_METHOD = late_pattern(r"^[ \t]+def \w+\(\s*self\s*,([^()]*)\)[^\n]*:[ \t]*\n", re.MULTILINE)
_NAME = late_pattern(r"(?:^|,)\s*\**(\w+)")
_ADDED = late_pattern(
    rf"\bself\.[^\n=(]*(?:[+-]=|\.(?:{'|'.join(sorted(name[1:] for name in GROWING))})\()([^\n]*)"
    r"|\b(self\.\w+) = \2 [+-]([^\n]*)"
)
_WORD = late_pattern(r"(?<![\w.])[A-Za-z_]\w*")


def adds_to_itself(text: str) -> bool:
    """Whether a method puts something that rests on its arguments into an attribute of its
    object that was there before, be it a sum or a list."""
    if "self." not in text:
        return False
    methods = list(_METHOD.finditer(text))
    ends = [*(one.start() for one in methods[1:]), len(text)]
    return any(
        _adds(text[method.end() : end], set(_NAME.findall(method[1])))
        for method, end in zip(methods, ends, strict=False)
    )


def _adds(body: str, given: set[str]) -> bool:
    """Whether a method's body does, ``given`` these arguments."""
    return any(
        not given.isdisjoint(_WORD.findall(found[1] or found[3] or ""))
        for found in _ADDED.finditer(body)
    )
