"""Suppression comments: what they say, and which lines they cover.

A comment in or behind a statement covers the whole logical statement (of a compound
statement, its header); a comment on its own line covers the statement that follows
directly, decorators included.  A finding is suppressed if its first line is covered.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from enum import Enum

from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_MARKER = late_pattern(r"memlint:|noqa", re.IGNORECASE)
_OWN = late_pattern(r"memlint:\s*(?P<verb>[\w-]*)\s*(?P<list>\[(?P<items>[^\]\n]*)\]|\[)?")
_NOQA = late_pattern(
    r"#\s*noqa\b(?P<list>\s*:\s*(?P<items>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)?)?", re.IGNORECASE
)
# Words behind "memlint:" that are meant as a suppression, well or badly spelt.
_VERB_STARTS = ("ig", "disable", "noqa", "skip")
_SKIPPED = frozenset({tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING})


class Kind(Enum):
    """The forms of a suppression."""

    IGNORE = "ignore"
    IGNORE_FILE = "ignore-file"
    NOQA = "noqa"
    BROKEN = "broken"


@dataclass(slots=True)
class Directive:
    """One suppression comment.

    ``items`` are the codes and names it lists, ``None`` if it speaks of all.  ``first`` and
    ``last`` are the program lines that it covers.  ``line`` and ``column`` (from 0, in
    characters) say where its comment starts.
    """

    kind: Kind
    items: tuple[str, ...] | None
    line: int
    column: int
    comment: str
    own_line: bool
    first: int = 0
    last: int = -1
    used: set[str] = field(default_factory=set)

    def covers(self, line: int) -> bool:
        """Whether a finding that starts on this line is meant."""
        return self.kind is Kind.IGNORE_FILE or self.first <= line <= self.last

    def names(self, code: str, name: str) -> str | None:
        """The item that speaks of a rule (``*`` if the directive speaks of all rules)."""
        if self.items is None:
            return "*"
        for item in self.items:
            if item == name or item.upper() == code:
                return item
            if self.kind is Kind.NOQA and code.startswith(item.upper()):
                return item
        return None


class Suppressions:
    """The suppression comments of one program."""

    def __init__(self, directives: Iterable[Directive] = ()) -> None:
        self.directives = tuple(directives)

    def cover(self, line: int, code: str, name: str) -> bool:
        """Whether a finding is suppressed.  Remembers which comments were of use."""
        covered = False
        for directive in self.directives:
            if directive.kind is not Kind.BROKEN and directive.covers(line):
                item = directive.names(code, name)
                if item is not None:
                    directive.used.add(item)
                    covered = True
        return covered


def read_suppressions(text: str) -> Suppressions:
    """The suppression comments in a program that parses."""
    if _MARKER.search(text) is None:
        return Suppressions()
    return Suppressions(_Reader().read(text))


class _Reader:
    def __init__(self) -> None:
        self._found: list[Directive] = []
        self._inside: list[Directive] = []
        self._above: list[Directive] = []
        self._decorated: list[Directive] = []
        self._comment_lines: set[int] = set()

    def read(self, text: str) -> list[Directive]:
        start: tokenize.TokenInfo | None = None
        for token in _tokens(text):
            if token.type == tokenize.COMMENT:
                self._comment(token, start is not None)
            elif token.type == tokenize.NEWLINE:
                if start is not None:
                    self._statement(start, token.start[0])
                start = None
            elif start is None and token.type != tokenize.NL and token.type not in _SKIPPED:
                start = token
        return self._found

    def _comment(self, token: tokenize.TokenInfo, inside: bool) -> None:
        line, column = token.start
        if not inside:
            self._comment_lines.add(line)
        for kind, items in _directives(token.string):
            own_line = not token.line[:column].strip() if inside else True
            directive = Directive(kind, items, line, column, token.string, own_line)
            self._found.append(directive)
            if inside:
                self._inside.append(directive)
            elif kind is Kind.IGNORE:
                self._above.append(directive)

    def _statement(self, start: tokenize.TokenInfo, last: int) -> None:
        first = start.start[0]
        for directive in self._inside:
            directive.first, directive.last = first, last
        top = first
        while top - 1 in self._comment_lines:
            top -= 1
        for directive in self._above:
            if directive.line >= top:
                directive.first, directive.last = first, last
                self._decorated.append(directive)
        for directive in self._decorated:
            directive.last = last
        if start.string != "@":
            self._decorated.clear()
        self._inside.clear()
        self._above.clear()


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    # newline=None: the tokenizer must see the lines that the parser counts.
    reader = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))
    try:
        yield from tokenize.generate_tokens(reader.readline)
    except (tokenize.TokenError, SyntaxError):
        # The pure Python tokenizer stops at some texts that parse; what came before counts.
        return


def _directives(comment: str) -> Iterator[tuple[Kind, tuple[str, ...] | None]]:
    for match in _OWN.finditer(comment):
        if match["verb"].startswith(_VERB_STARTS):
            yield _own_directive(match)
    noqa = _NOQA.search(comment)
    if noqa is not None and (noqa["list"] is None or noqa["items"] is not None):
        yield Kind.NOQA, _items(re.split(r"[,\s]+", noqa["items"])) if noqa["items"] else None


def _own_directive(match: re.Match[str]) -> tuple[Kind, tuple[str, ...] | None]:
    verb = match["verb"]
    if verb not in ("ignore", "ignore-file"):
        return Kind.BROKEN, ()
    if match["list"] is None:
        return Kind(verb), None
    items = _items((match["items"] or "").split(","))
    return (Kind(verb) if items else Kind.BROKEN), items


def _items(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for part in words if (word := part.strip()))
