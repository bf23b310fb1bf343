"""Which rules have something to say about a file only together with what it imports."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.late_pattern import late_pattern
from memlint.linter.gate import Passed
from memlint.rule import Rule, Word, occurs
from memlint.source.project import NOTHING, Followed, Looked, Module, Origin, Project
from memlint.source.read import SourceError, decode

_MOST_FOLLOWED = 20
# A class, and what it is derived from.
_CLASS = late_pattern(r"(?:@[^\n]*\n)*class \w+(?:\(([^)]*)\))?")
_NAME = late_pattern(r"(?<![\w.])[A-Za-z_]\w*")
# Classes of which there is one, not one for each number that is wanted.
_OTHERS = late_pattern(r"Module|Model|Dataset|Config|Pipeline|Tokenizer|Processor|Enum|NamedTuple")


class Across:
    """Follows the imports of programs, as far as some rule may gain by it."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[tuple[Origin, Word], bool] = {}
        self._modules: dict[tuple[str, Word], bool] = {}
        self._classes: dict[tuple[Origin, Word], bool] = {}

    def follow(self, path: str, data: bytes, passed: Passed) -> tuple[list[Rule], Followed]:
        """The rules that speak of a program alone, or of it and what it imports; and that."""
        if not passed.open:
            return passed.speaking, NOTHING
        try:
            text = decode(data)
        except SourceError:
            return passed.speaking, NOTHING
        asked = dict.fromkeys(
            (word, word in rule.needs.classes) for rule in passed.open for word in rule.needs.across
        )
        looked: dict[str, Looked] = {}
        names: dict[str, Origin] = {}
        texts: dict[str, str] = {}
        origins: set[Origin] = set()
        for one in self._project.imported(path, text, looked):
            if one.full in names or len(names) >= _MOST_FOLLOWED:
                continue
            if any(
                self._is_class_with(one.origin, word)
                if of_class
                else self._holds(one.origin, word, looked)
                for word, of_class in asked
            ):
                names[one.full] = one.origin
                reached = self._project.reached(one.origin, looked)
                texts[one.local] = texts.get(one.local, "") + "\n" + reached.text
                origins |= reached.origins
        followed = Followed(names, frozenset(origins), texts, tuple(looked.values()))
        whole = "\n".join((text, *texts.values()))
        added = [
            rule
            for rule in passed.open
            if names and rule not in passed.speaking and _meets(rule, whole)
        ]
        return [*passed.speaking, *added], followed

    def _holds(self, origin: Origin, word: Word, looked: dict[str, Looked]) -> bool:
        """Whether what an imported name reaches holds a word."""
        if not self._near(origin.path, word):
            return False
        key = (origin, word)
        if key not in self._known:
            self._known[key] = occurs(word, self._project.reached(origin, looked).text)
        return self._known[key]

    def _is_class_with(self, origin: Origin, word: Word) -> bool:
        """Whether an imported name stands for a class in whose definition a word occurs, or in
        those of its module that it is derived from."""
        key = (origin, word)
        if key not in self._classes:
            module = self._project.module(origin.path)
            self._classes[key] = module is not None and any(
                occurs(word, block) for block in _with_bases(module, origin.name)
            )
        return self._classes[key]

    def _near(self, path: str, word: Word) -> bool:
        """Whether the module that defines a name holds a word: cheaper to ask first."""
        key = (path, word)
        if key not in self._modules:
            module = self._project.module(path)
            self._modules[key] = module is not None and occurs(word, module.text)
        return self._modules[key]


def _with_bases(module: Module, name: str) -> Iterator[str]:
    """The definition of a class, and those of its module that it is derived from."""
    waiting, seen = [name], set[str]()
    while waiting:
        one = waiting.pop()
        block = module.block(one) if one not in seen else ""
        seen.add(one)
        head = _CLASS.match(block)
        if head is not None and not _OTHERS.search(head[1] or ""):
            yield block
            waiting += _NAME.findall(head[1] or "")


def _meets(rule: Rule, text: str) -> bool:
    return all(any(occurs(word, text) for word in group) for group in rule.needs.groups)
