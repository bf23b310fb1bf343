"""The functions of a source by its lines alone, where parsing all of it would cost more than it
is worth: a help of sieves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_HEAD = late_pattern(r"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)", re.MULTILINE)
_TEXT = late_pattern(r"\"\"\"[\s\S]*?\"\"\"|\'\'\'[\s\S]*?\'\'\'")
_LINE = late_pattern(r"^([ \t]*)[^\s#)\]}]", re.MULTILINE)
_SETTING = late_pattern(
    r"^[ \t]*([\w.][\w., \t]*?)(?:[ \t]*:[^=\n]*)?[ \t]*=(?!=)[ \t]*"
    r"((?:[^\n]*[(\[{,][ \t]*\n){0,4}[^\n]*)|"
    r"\bfor[ \t]+([\w., \t()]+?)[ \t]+in[ \t]+([^\n]*)",
    re.MULTILINE,
)
# They say nothing of what they are in.
_COMMON = frozenset(
    {"self", "nn", "torch", "np", "config", "range", "len", "for", "in", "if", "else", "x", "i"}
    | {"None", "True", "False", "enumerate", "zip"}
)
_CLASS = late_pattern(r"[ \t]*(?:@[^\n]*\n[ \t]*)*class (\w+)")
_NAME = late_pattern(r"[A-Za-z_]\w*")
# Methods that run without being named.
_UNNAMED = frozenset(
    {"forward", "__call__", "__init__", "__iter__", "__next__", "__getitem__", "__enter__"}
)
# Methods that run when their object is called.
CALLED_AS_OBJECT = frozenset({"forward", "__call__"})


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A function that is in no other function: its name, its class, and its lines."""

    name: str
    owner: str
    text: str

    def parsed(self) -> ast.AST | None:
        """The function; ``None`` where its lines were not told right."""
        inside = self.text[:1].isspace()
        try:
            found = ast.parse(f"if True:\n{self.text}" if inside else self.text).body[0]
        except SyntaxError:
            return None
        return found.body[0] if isinstance(found, ast.If) else found


@dataclass(frozen=True, slots=True)
class Definitions:
    """The functions of a source, and the text outside of them."""

    functions: tuple[FunctionText, ...]
    outside: str


@lru_cache(maxsize=4)
def definitions(source: str) -> Definitions:
    """What a source defines."""
    owners: list[tuple[int, str]] = []
    functions, outside = [], []
    position = 0
    # Lines of a text may stand anywhere.
    code = _TEXT.sub(lambda text: "x" * len(text[0]), source)
    for head in _HEAD.finditer(code):
        if head.start() < position:
            continue  # nested
        indent = len(head[1])
        owners = [one for one in owners if one[0] < indent]
        if head[2] == "class":
            owners.append((indent, head[3]))
            continue
        end = _end(code, head.end(), indent)
        owner = owners[-1][1] if owners else ""
        functions.append(FunctionText(head[3], owner, source[head.start() : end]))
        outside.append(source[position : head.start()])
        position = end
    outside.append(source[position:])
    return Definitions(tuple(functions), "".join(outside))


def _end(source: str, start: int, indent: int) -> int:
    """Where the lines end that stand further to the right than a head."""
    line = source.find("\n", start)
    while line >= 0:
        found = _LINE.search(source, line + 1)
        if found is None:
            break
        if len(found[1]) <= indent:
            return found.start()
        line = source.find("\n", found.end() - 1)
    return len(source)


@lru_cache(maxsize=256)
def is_called(name: str, owner: str, source: str) -> bool:
    """Whether a program may call a function of its own, of a class or of none: an object of a class
    that is made, or that has subclasses, may be called by whatever name."""
    if name not in _UNNAMED:
        return is_named_again(name, source)
    return bool(
        not owner
        or (name != "__init__" and (f"self.{name}(" in source or re.search(r"\bself\(", source)))
        or re.search(rf"(?<!class )\b{owner}\s*[(),]", source) is not None
    )


def owner_of(around: str) -> str:
    """The class that the text of a method begins with."""
    found = _CLASS.match(around)
    return found.group(1) if found else ""


def names_for(name: str, source: str) -> frozenset[str]:
    """The names that what is named may be behind: those that something is assigned to in which
    it occurs, or that a loop over such sets; and, one step further, those for these."""
    settings = _settings(source)
    near = {one for one, used in settings.items() if name in used}
    far = {one for one, used in settings.items() if not near.isdisjoint(used)}
    return frozenset({name}).union(near, far)


@lru_cache(maxsize=256)
def is_named_again(name: str, source: str) -> bool:
    """Whether a word occurs more than once: it is named where it is not defined."""
    if not name or source.count(name) < 2:
        return False
    return len(re.findall(rf"\b{name}\b", source)) > 1


@lru_cache(maxsize=4)
def _settings(source: str) -> dict[str, frozenset[str]]:
    """The names in what is assigned to each name, and in what loops that set it are over."""
    return {
        name: frozenset(used for text in texts for used in _NAME.findall(text)) - _COMMON
        for name, texts in texts_set(source).items()
    }


@lru_cache(maxsize=4)
def texts_set(source: str) -> dict[str, list[str]]:
    """What is assigned to each name, and what loops that set it are over, in their words."""
    found: dict[str, list[str]] = {}
    for target, value, variable, over in _SETTING.findall(source):
        for name in _NAME.findall(target or variable):
            found.setdefault(name, []).append(value or over)
    return found


def places_of(word: str, text: str) -> Iterator[int]:
    """Where a word occurs."""
    at = text.find(word) if word else -1
    while at >= 0:
        end = at + len(word)
        if not (
            (at and (text[at - 1].isalnum() or text[at - 1] == "_"))
            or text[end : end + 1].isalnum()
            or text[end : end + 1] == "_"
        ):
            yield at
        at = text.find(word, end)
