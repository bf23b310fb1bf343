"""Patterns that are compiled when they are first asked for.

The rules and what they stand on hold three hundred; a run needs a few of them, and each takes
a tenth of a millisecond to compile, some ten times that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr, TypeGuard


class LatePattern:
    """A pattern that will be compiled; whatever a compiled one has, it has too.

    Equal to another of the same text and flags.
    """

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self.flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        # Kept, so that from then on the method of the compiled pattern is found at once.
        value = self.__dict__[name] = getattr(re.compile(self.pattern, self.flags), name)
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LatePattern) and (self.pattern, self.flags) == (
            other.pattern,
            other.flags,
        )

    def __hash__(self) -> int:
        return hash((self.pattern, self.flags))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.pattern, self.flags)

    def __repr__(self) -> str:
        return f"late_pattern({self.pattern!r}, {int(self.flags)})"


class NamePattern(LatePattern):
    """A pattern that looks at one name, the dot before and the parenthesis behind it at most:
    where each name of a text is listed once it finds what it finds in the text, and sooner."""


if TYPE_CHECKING:

    def name_pattern(pattern: str) -> re.Pattern[str]:
        """A pattern that looks at a single name, with a dot before and a parenthesis behind it."""

    def late_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """A pattern as of :func:`re.compile`, that is compiled when it is first used."""
else:

    def name_pattern(pattern):
        """A pattern that looks at a single name, with a dot before and a parenthesis behind it."""
        return NamePattern(pattern, 0)

    def late_pattern(pattern, flags=0):
        """A pattern as of :func:`re.compile`, that is compiled when it is first used."""
        return LatePattern(pattern, flags)


def is_pattern(word: object) -> TypeGuard[re.Pattern[str]]:
    """Whether something is a pattern, compiled or not."""
    return isinstance(word, (re.Pattern, LatePattern))


def is_name_pattern(word: object) -> bool:
    """Whether something is a pattern that looks at a single name."""
    return isinstance(word, NamePattern)
