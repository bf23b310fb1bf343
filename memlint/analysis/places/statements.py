"""The statements of a program by its text, of which those are parsed that are asked for: a help of
sieves, where parsing all of it would cost more than it is worth."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache

from memlint.analysis.last_name import last_name
from memlint.analysis.leading_names import code_of
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

# Instead of the number of a function: the module around all, and attributes of whatever object.
MODULE = -1
ATTRIBUTE = -2
_ADDS = late_pattern(r"\.(?:append|appendleft|extend|insert|add|put|push)\(|\]\s*=(?!=)|\+=")
_HEADER = late_pattern(
    r"[ \t]*(?:async[ \t]+)?(?:def|class|for|while|if|elif|else|try|except|finally|with|match|"
    r"case)\b"
)
_DEFINITION = late_pattern(r"[ \t]*(?:async[ \t]+)?(def|class)[ \t]+(\w+)")
_GIVEN_BACK = late_pattern(r"\b(?:return|yield)\b")
_PART = late_pattern(r"(?:else|finally|except[^:\n]*):[ \t]*")
_COMMENT = late_pattern(r"[ \t]#[^\n'\"]*$", re.MULTILINE)
_SHARED = late_pattern(r"[ \t]*(?:global|nonlocal)\b")
_WORD = late_pattern(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Asked:
    """A name: a variable of a function, of the module, or an attribute of whatever object."""

    name: str
    unit: int


@lru_cache(maxsize=2)
def statements_of(source: str) -> Statements:
    """The statements of a source."""
    return Statements(source)


class Statements:
    """The statements of a program, each with the number of the function around it, which is in no
    other."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._code = code_of(source)
        self._starts: list[int] = []
        self._texts: list[str] = []
        self._units: list[int] = []
        self._functions: dict[str, list[int]] = {}
        self._named: dict[str, list[int]] = {}
        unit, right = MODULE, -1
        for number, (start, text) in enumerate(_split(self._code)):
            self._starts.append(start)
            self._texts.append(text)
            if unit != MODULE and _indent(text) <= right:
                unit = MODULE
            defined = _DEFINITION.match(text)
            if unit == MODULE and defined is not None and defined[1] == "def":
                unit, right = number, _indent(text)
                self._functions.setdefault(defined[2], []).append(number)
            self._units.append(unit)

    def unit(self, number: int) -> int:
        """The function around a statement."""
        return self._units[number]

    def unit_of(self, function: ast.AST) -> int:
        """The number of a function; that of the module where it is not told for sure."""
        line = getattr(function, "lineno", 0)
        numbers = self._functions.get(getattr(function, "name", ""), [])
        if len(numbers) < 2:
            return numbers[0] if numbers else MODULE
        # Comments and docstrings are left out of the code, which does not change the order.
        places = places_of(f"def {function.name}", self.source)  # type: ignore[attr-defined]
        lines = [self.source.count("\n", 0, one) + 1 for one in places]
        if len(lines) != len(numbers) or line not in lines:
            return MODULE
        return numbers[lines.index(line)]

    def naming(self, asked: Asked) -> list[int]:
        """The statements that name something."""
        every = self._naming(asked.name)
        if asked.unit == ATTRIBUTE:
            return every
        if asked.unit == MODULE:
            return [
                one
                for one in every
                if self._units[one] == MODULE
                or self._is_named(one, asked.name)
                or self._shares(asked.name, self._units[one])
            ]
        return [one for one in every if self._units[one] == asked.unit]

    def _naming(self, name: str) -> list[int]:
        if name not in self._named:
            self._named[name] = [*dict.fromkeys(map(self._at, places_of(name, self._code)))]
        return self._named[name]

    def _at(self, place: int) -> int:
        return bisect_right(self._starts, place) - 1

    def _is_named(self, number: int, name: str) -> bool:
        defined = _DEFINITION.match(self._texts[number])
        return defined is not None and defined[2] == name

    def _shares(self, name: str, unit: int) -> bool:
        """Whether a function may set a variable of the module."""
        return any(
            self._units[one] == unit and _SHARED.match(self._texts[one])
            for one in self._naming(name)
        )

    def asked(self, names: Iterable[str], attributes: Iterable[str], unit: int) -> Iterator[Asked]:
        """What is named in a function."""
        for name in attributes:
            yield Asked(name, ATTRIBUTE)
        for name in names:
            inside = self.naming(Asked(name, unit)) if unit != MODULE else []
            yield Asked(name, unit)
            if not any(self._binds(name, one) for one in inside):
                yield Asked(name, MODULE)

    def _binds(self, name: str, number: int) -> bool:
        """Whether a statement sets a variable of the function it is in."""
        if _SHARED.match(self._texts[number]):
            return False
        tree = self.parsed(number)
        return tree is not None and any(
            (isinstance(one, ast.arg) and one.arg == name)
            or (isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load))
            for one in walk(tree)
        )

    def parsed(self, number: int) -> ast.AST | None:
        """A statement, the header of a block with an empty one; ``None`` where its lines were not
        told right."""
        return _parsed(self._texts[number])

    def is_opaque(self, number: int) -> bool:
        """Whether a statement may give names values that it does not show."""
        text = self._texts[number]
        return "namedtuple" in text or "setattr" in text

    def definition(self, number: int) -> tuple[str, str] | None:
        """Whether a statement begins a function or a class, and of what name."""
        found = _DEFINITION.match(self._texts[number])
        return (found[1], found[2]) if found is not None else None

    def text(self, number: int) -> str:
        """The text of a statement, and of the block that it begins."""
        return "\n".join(self._texts[one] for one in (number, *self.body(number)))

    def fills(self, number: int) -> bool:
        """Whether a statement adds to something."""
        return _ADDS.search(self._texts[number]) is not None

    def body(self, number: int) -> Iterator[int]:
        """The statements in the block that one begins."""
        indent = _indent(self._texts[number])
        for other in range(number + 1, len(self._texts)):
            if _indent(self._texts[other]) <= indent:
                return
            yield other

    def given_back(self, number: int) -> Iterator[ast.expr]:
        """What the function returns that a statement begins."""
        for other in (number, *self.body(number)):
            if _GIVEN_BACK.search(self._texts[other]):
                for node in walk(self.parsed(other) or ast.Pass()):
                    if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and node.value:
                        yield node.value

    def methods(self, number: int) -> Iterator[int]:
        """The functions in a class."""
        for other in self.body(number):
            if (defined := self.definition(other)) is not None and defined[0] == "def":
                yield other

    def bases(self, number: int) -> set[str]:
        """What is named in the head of a class."""
        return set(_WORD.findall(self._texts[number].partition("(")[2]))

    def owner(self, number: int) -> str:
        """The class that a function or a field stands in."""
        indent = _indent(self._texts[number])
        for text in reversed(self._texts[:number]):
            if _indent(text) < indent:
                defined = _DEFINITION.match(text)
                return defined[2] if defined is not None else ""
        return ""

    def is_field(self, number: int) -> bool:
        """Whether a statement stands in the body of a class."""
        return self._units[number] == MODULE and self._texts[number][:1].isspace()

    def objects(self, owner: str) -> set[str] | None:
        """The names that objects of a class are given; ``None`` where that may be any."""
        found = set[str]()
        for number in self._naming(owner):
            defined = self.definition(number)
            if defined is not None and defined[0] == "class" and defined[1] != owner:
                return None
            tree = self.parsed(number) if f"{owner}(" in self._texts[number] else ast.Pass()
            for node in walk(tree) if tree is not None else ():
                if isinstance(node, ast.Call) and last_name(node.func) == owner:
                    named = getattr(tree, "value", None) is node and isinstance(tree, ast.Assign)
                    if not named:
                        return None
                    found.update(map(last_name, tree.targets))  # type: ignore[union-attr]
            if tree is None:
                return None
        return found

    def adds(self, called: str) -> bool:
        """Whether a function of the program adds to something."""
        if f"def {called}(" not in self._code:
            return False
        return any(
            _ADDS.search(self._texts[inner])
            for number in self._naming(called)
            if self._is_named(number, called)
            for inner in self.body(number)
        )


@lru_cache(maxsize=512)
def _parsed(statement: str) -> ast.AST | None:
    text = _COMMENT.sub("", statement.strip()).rstrip()
    if text.startswith("elif"):
        text = text[2:]
    elif (part := _PART.match(text)) is not None:
        text = text[part.end() :] or "pass"
    if _HEADER.match(text) and text.endswith(":"):
        text += " pass" + ("\nfinally: pass" if text.startswith("try") else "")
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    return tree.body[0] if len(tree.body) == 1 else tree


def _split(code: str) -> Iterator[tuple[int, str]]:
    """The statements of a program and where each begins, a header of a block without its body.

    Lines that stand further to the right than a statement are parts of it, as are those in its
    brackets.
    """
    lines: list[str] = []
    start = place = indent = depth = 0
    goes_on = False
    for line in code.split("\n"):
        stripped = line.lstrip()
        right = len(line) - len(stripped)
        if lines and (depth > 0 or (goes_on and right > indent)):
            lines.append(line)
        elif stripped:
            if lines:
                yield start, "\n".join(lines)
            lines, start, indent, depth = [line], place, right, 0
            goes_on = _HEADER.match(line) is None
        depth = max(depth + _opened(line), 0)
        place += len(line) + 1
    if lines:
        yield start, "\n".join(lines)


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


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _opened(line: str) -> int:
    return (
        line.count("(") + line.count("[") + line.count("{")
        - line.count(")") - line.count("]") - line.count("}")
    )  # fmt: skip
