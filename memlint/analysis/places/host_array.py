"""Which functions may launch kernels of numba, as their text tells: a sieve."""

from __future__ import annotations

import ast
from functools import lru_cache

from memlint.analysis.last_name import last_name
from memlint.analysis.walking import nodes_of
from memlint.late_pattern import late_pattern

# ``kernel[blocks, threads](x)``, and ``launch = kernel[blocks, threads]``.
LAUNCH = late_pattern(r"\](?:\s|\\\n)*\(|=[ \t]*[\w.]+\[")
_CONFIGURED = late_pattern(r"(\w+)[ \t]*(?::[^=\n]+)?=[ \t]*[\w.]+\[")


def may_launch(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function launches a kernel, or calls what may be one with its grid."""
    del around
    calls = [one for one in nodes_of(function) if isinstance(one, ast.Call)]
    return any(isinstance(one.func, ast.Subscript) for one in calls) or any(
        last_name(one.func) in _configured(source) for one in calls
    )


@lru_cache(maxsize=4)
def _configured(source: str) -> frozenset[str]:
    """The names that are bound to an item of something."""
    return frozenset(_CONFIGURED.findall(source))
