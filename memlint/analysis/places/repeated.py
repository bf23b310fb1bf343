"""Which functions may call something in a loop, in themselves or through what they call, as their
text tells: sieves."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from memlint.analysis.last_name import last_name
from memlint.analysis.leading_names import called_otherwise, leading_to
from memlint.analysis.steps import STEP_HOOKS
from memlint.analysis.walking import nodes_of, walk
from memlint.late_pattern import late_pattern

_LOOPS = (
    ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_EMPTYING = late_pattern(r"empty_cache|free_all_blocks")
_RETAINING = late_pattern(r"retain_graph")


def may_empty_caches(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function empties a cache in a loop, or is called by a framework in each step."""
    del around
    word = _by_any_name(source, _EMPTYING)
    if any(getattr(one, "name", "") in STEP_HOOKS for one in nodes_of(function)):
        return any(_is_word(one, word) for one in nodes_of(function))
    return _repeats(function, source, word)


def may_retain_graphs(function: ast.AST, around: str, source: str) -> bool:
    """Whether a function keeps graphs after walking them, in a loop."""
    del around
    return _repeats(function, source, _RETAINING)


def _repeats(function: ast.AST, source: str, word: re.Pattern[str]) -> bool:
    """Whether a loop holds a word, or calls a function that leads to it."""
    loops = [one for one in nodes_of(function) if isinstance(one, _LOOPS)]
    if not loops:
        return False
    leading = leading_to(source, word)
    handed = leading if called_otherwise(source, leading) else frozenset[str]()
    given = {one.arg for one in nodes_of(function) if isinstance(one, ast.arg)} if handed else set()
    return any(
        _is_word(one, word)
        or (
            isinstance(one, ast.Call)
            and (name := last_name(one.func)) in leading | given
            and name not in ("self", "cls")
        )
        for loop in loops
        for one in walk(loop)
    )


@lru_cache(maxsize=4)
def _by_any_name(source: str, word: re.Pattern[str]) -> re.Pattern[str]:
    """A word, and the other names that the program has for what is called so."""
    aliased = re.compile(
        rf"(?:{word.pattern}) as (\w+)|(\w+)[ \t]*=[ \t]*[\w.]*(?:{word.pattern})[ \t]*$",
        re.MULTILINE,
    )
    names = {first or second for first, second in aliased.findall(source)}
    if not names:
        return word
    return re.compile(rf"{word.pattern}|\b(?:{'|'.join(sorted(names))})\b")


def _is_word(node: ast.AST, word: re.Pattern[str]) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str() as name):
            return word.search(name) is not None
        case ast.Constant(value=str() as name):
            return word.search(name) is not None
        case ast.keyword(arg=None):
            return True
    return False
