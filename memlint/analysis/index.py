"""The index of a program: its units, and which of them are candidates.

A *unit* is a function at the top of a module or a method, with the functions nested in it;
the statements outside of functions are one more.  The index is a sieve: by the words that
the listening rules declare for units, it tells which the interpreter need not enter.  It
holds no logic of any rule, and errs on the side of entering.

A unit *reaches* what it holds itself and what is reached by any function or class of the
program that it names, since the interpreter follows its calls; values may come to a method
from its class's ``__init__`` too.  A unit is a candidate for a rule if it reaches a word of
each of the rule's groups.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern
from memlint.rule import Needs, UnitTest, Word, occurs
from memlint.source.model import Source, with_newlines

# So many rules that may have something to say want most functions between them: to read all then
# takes less time than to tell which.  Not in a large file, which may be too much to be read.
MANY_RULES = 10
LARGE = 400_000
_COMMENT_LINES = late_pattern(r"^[ \t]*#.*$", re.MULTILINE)


@dataclass(eq=False, slots=True)
class Unit:
    """A function (or the module), the class it is a method of, and its text, which is without
    docstrings and comments on their own line.  ``code`` is what runs: of a module the statements
    outside of functions, as a module; ``None`` for what stands in another module."""

    node: ast.AST
    name: str
    owner: str
    text: str
    code: ast.AST | None = None


# Methods that run without being named, by who has an object of their class.
_UNNAMED = frozenset(
    {"__init__", "__post_init__", "__call__", "__iter__", "__next__", "__getitem__"}
    | {"__enter__", "forward", "backward", "run"}
)


class Index:
    """Which functions of a program are candidates for the rules with these needs."""

    def __init__(
        self,
        source: Source,
        tree: ast.Module,
        needs: Iterable[Needs],
        imported: Mapping[str, str] | None = None,
    ) -> None:
        self._lines, own = source.lines, with_newlines(source.text)
        self._wanted: set[int] | None = None
        declared = list(needs)
        if any(_reads_all(one, own) for one in declared):
            return
        # What is followed into other modules is, by its local name, as good as a unit of this.
        foreign = dict(imported or {})
        whole = "\n".join((own, *foreign.values()))
        sieves = [_Sieve(one, whole if one.across else own) for one in declared]
        sieves = [one for one in sieves if one.may_hold]
        if len(sieves) >= MANY_RULES and len(own) < LARGE:
            return
        self._known: set[int] = set()
        self._wants_any = bool(sieves)
        if not sieves:
            self._wanted = set()
            return
        outside = list(self._outside(tree.body))
        self._outer_text = "\n".join(text for text, _, _ in outside)
        text = "\n".join(text for text, _, is_import in outside if not is_import)
        loose = [one for one in tree.body if not _is_definition(one)]
        module = Unit(tree, "", "", text, ast.Module(loose, []))
        units = [module, *self._units(tree.body, "")]
        units += [Unit(ast.Pass(), name, "", text) for name, text in foreign.items()]
        self._known = {id(unit.node) for unit in units}
        graph = _Graph(units)
        self._wanted = set()
        for one in sieves:
            self._wanted |= self._candidates(graph, one, outside)
        self._wants_any = bool(self._wanted)

    def wants(self, function: ast.AST) -> bool:
        """Whether a function is worth entering for its own sake; nested ones always are."""
        if self._wanted is None:
            return True
        return id(function) in self._wanted or id(function) not in self._known

    @property
    def wants_any(self) -> bool:
        """Whether anything in the program is."""
        return self._wanted is None or self._wants_any

    def _candidates(
        self, graph: _Graph, sieve: _Sieve, outside: Sequence[tuple[str, list[str], bool]]
    ) -> set[int]:
        candidates: set[int] | None = None
        every: list[Unit] = []
        touching: list[Unit] = []
        for number, (group, by_init) in enumerate(sieve.groups):
            aliases = self._aliases(outside, group)
            units = graph.own if sieve.across.isdisjoint(group) else graph.units
            holders = [u for u in units if _holds(u, group, aliases)]
            if number == 0:
                holders = [u for u in holders if self._has_place(u, sieve, graph)]
                if not holders:
                    return set()
            touching += holders
            if sieve.nearest:
                every += holders if number == 0 else []
            elif any(unit.owner == unit.name == "" for unit in holders):
                continue  # what the module does is done for all its functions
            reached = graph.reaching(holders, classwide=sieve.classwide, by_init=by_init)
            candidates = reached if candidates is None else candidates & reached
            if not candidates:
                return candidates
        if candidates is None:
            return {id(u.node) for u in graph.units}
        if sieve.classwide:
            # What other methods of the class meet is met for all, but who leads to none of it
            # adds nothing.
            candidates &= graph.reaching(touching, classwide=False, by_init=False)
        if sieve.nearest:
            demanding = {id(u.node) for u in every if self._is_demanding(u, sieve, graph)}
            candidates &= graph.nearest(every, demanding)
        against = self._aliases(outside, sieve.also)
        return candidates | {id(u.node) for u in graph.own if _holds(u, sieve.also, against)}

    def _aliases(
        self, outside: Sequence[tuple[str, list[str], bool]], group: tuple[Word, ...]
    ) -> set[str]:
        return _aliases(outside, group) if _has(self._outer_text, group) else set()

    def _has_place(self, unit: Unit, sieve: _Sieve, graph: _Graph) -> bool:
        return _passes(sieve.places, unit, graph, sieve.text)

    def _is_demanding(self, unit: Unit, sieve: _Sieve, graph: _Graph) -> bool:
        return sieve.callers is not None and _passes(sieve.callers, unit, graph, sieve.text)

    def _text(self, node: ast.stmt) -> str:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        last = node.end_lineno
        body = getattr(node, "body", None)
        if isinstance(body, list) and not _is_definition(node):
            # The statements in it are told by themselves.
            last = max(body[0].lineno - 1, node.lineno)
        lines = self._lines[first - 1 : last]
        if _is_definition(node) and _is_text(node.body[0]):  # type: ignore[attr-defined]
            docstring = node.body[0]  # type: ignore[attr-defined]
            if docstring.lineno > node.lineno:
                del lines[docstring.lineno - first : docstring.end_lineno - first + 1]
        return _COMMENT_LINES.sub("", "\n".join(lines))

    def _outside(self, body: list[ast.stmt]) -> Iterator[tuple[str, list[str], bool]]:
        """Statements outside of definitions: text, the names they bind, whether an import."""
        for statement in _statements(body):
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                module = getattr(statement, "module", "") or ""
                for alias in statement.names:
                    shown = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
                    bound = alias.asname or alias.name.partition(".")[0]
                    yield f"from {module} import {shown}", [bound], True
            elif not _is_definition(statement) and not _is_text(statement):
                yield self._text(statement), list(_bound_names(statement)), False

    def _units(self, body: list[ast.stmt], owner: str, head: str = "") -> Iterator[Unit]:
        """Units with their texts; that of a method begins with the head of its class."""
        for statement in _statements(body):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                text = head + self._text(statement)
                yield Unit(statement, statement.name, owner, text, statement)
            elif isinstance(statement, ast.ClassDef):
                first = statement.body[0].lineno if statement.body else statement.lineno + 1
                start = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
                above = "\n".join(self._lines[start - 1 : max(first - 1, statement.lineno)])
                yield from self._units(statement.body, statement.name, above + "\n")


class _Sieve:
    """The groups of a rule's needs, narrowed to the words that are in the program at all, with
    what it imports where that counts: ``text``."""

    def __init__(self, needs: Needs, text: str) -> None:
        self.text = text
        self.classwide, self.nearest = needs.classwide, needs.nearest
        self.across = frozenset(needs.across)
        self.places, self.callers = needs.places, needs.callers
        self.groups: list[tuple[tuple[Word, ...], bool]] = []
        self.may_hold = True
        for groups, by_init in ((needs.units, False), (needs.values, True)):
            for group in groups:
                narrowed = _within(group, text)
                if not narrowed:
                    self.may_hold = False
                    return
                self.groups.append((narrowed, by_init))
        self.also = _within(needs.also, text)


_KEPT = late_pattern(r"self\.(\w+)\s*(?::[^=\n]*)?=(?!=)")


def _is_open(text: str) -> bool:
    """Whether a statement goes on at the end of a text that it begins."""
    depth = sum(text.count(one) for one in "([{") - sum(text.count(one) for one in ")]}")
    return depth > 0 or "\n" not in text


class _Graph:
    """Which units name which."""

    def __init__(self, units: list[Unit]) -> None:
        self.units = units
        self.own = [unit for unit in units if not isinstance(unit.node, ast.Pass)]
        self._methods: dict[str, list[Unit]] = {}
        self._behind_dot: dict[str, list[Unit]] = {}
        self._bare: dict[str, list[Unit]] = {}
        self._around: dict[str, str] = {}
        for unit in units:
            if unit.owner:
                self._methods.setdefault(unit.owner, []).append(unit)

    def _naming(self, unit: Unit) -> list[Unit]:
        """The units that name a function, or a method behind a dot."""
        return self._naming_method(unit.name) if unit.owner else self._naming_bare(unit.name)

    def _naming_method(self, name: str) -> list[Unit]:
        if name not in self._behind_dot:
            self._behind_dot[name] = [u for u in self.units if _names(u.text, name, dotted=True)]
        return self._behind_dot[name]

    def _naming_bare(self, name: str) -> list[Unit]:
        if name not in self._bare:
            # The text of a method begins with the head of its class, which names it.
            self._bare[name] = [
                unit for unit in self.units if _names(unit.text, name, first=_own_head(unit, name))
            ]
        return self._bare[name]

    def reaching(self, holders: list[Unit], *, classwide: bool, by_init: bool) -> set[int]:
        """Units that reach one of ``holders``."""
        found = {id(unit.node) for unit in holders}
        waiting = list(holders)
        while waiting:
            unit = waiting.pop()
            near = list(self._naming(unit))
            if unit.owner and (classwide or (by_init and unit.name == "__init__")):
                near.extend(self._methods[unit.owner])
            if unit.owner and (classwide or unit.name in _UNNAMED):
                for maker in self._naming_bare(unit.owner):
                    near.append(maker)
                    if maker.name == "__init__" and maker.owner:
                        near.extend(self._using(maker, unit.owner))
            for other in near:
                if id(other.node) not in found:
                    found.add(id(other.node))
                    waiting.append(other)
        return found

    def _using(self, maker: Unit, made: str) -> list[Unit]:
        """The methods that may use the objects of class ``made`` that an ``__init__`` makes."""
        attributes = set[str]()
        for found in re.compile(rf"\b{made}\b").finditer(maker.text, _own_head(maker, made)):
            before = maker.text[: found.start()]
            start = max((one.start() for one in _KEPT.finditer(before)), default=-1)
            if start < 0 or not _is_open(before[start:]):
                return self._methods[maker.owner]
            attributes.add(_KEPT.match(before, start)[1])  # type: ignore[index]
        return [
            one
            for one in self._methods[maker.owner]
            if any(_names(one.text, name, dotted=True) for name in attributes)
        ]

    def nearest(self, holders: list[Unit], demanding: set[int]) -> set[int]:
        """Holders, plain functions that lead to one, methods that call one that is no method or
        is ``demanding``, and what brings several of them together."""
        found = {id(unit.node) for unit in holders}
        waiting = list(holders)
        while waiting:
            unit = waiting.pop()
            near = list(self._naming(unit))
            if unit.owner and unit.name in _UNNAMED:
                near.extend(self._naming_bare(unit.owner))
            for other in near:
                if id(other.node) in found:
                    continue
                if not other.owner:
                    waiting.append(other)
                    found.add(id(other.node))
                elif not unit.owner:
                    found.add(id(other.node))
                elif id(unit.node) in demanding:
                    found.update(id(one.node) for one in self._calling(other, unit))
        return found | self._joining(holders)

    def _calling(self, other: Unit, unit: Unit) -> Iterator[Unit]:
        """The method that names a method; for one that runs without being named the methods
        that use the object that is made in ``__init__``."""
        if unit.name not in _UNNAMED:
            yield other
        elif other.name == "__init__":
            made = re.findall(rf"self\.(\w+)\s*=[^=][^\n]*\b{unit.owner}\(", other.text)
            uses = re.compile(rf"self\.({'|'.join(made)})\(") if made else None
            for one in self._methods[other.owner]:
                if uses is not None and uses.search(one.text):
                    yield one

    def _joining(self, holders: list[Unit]) -> set[int]:
        """The units that name several of ``holders``."""
        naming = {(unit.name, bool(unit.owner)): self._naming(unit) for unit in holders}
        counts = Counter(id(unit.node) for units in naming.values() for unit in units)
        return {unit for unit, count in counts.items() if count > 1}

    def around(self, unit: Unit) -> str:
        """The text of a unit, or of all methods of its class."""
        if not unit.owner:
            return unit.text
        if unit.owner not in self._around:
            self._around[unit.owner] = "\n".join(u.text for u in self._methods[unit.owner])
        return self._around[unit.owner]


def _passes(test: UnitTest | None, unit: Unit, graph: _Graph, source: str) -> bool:
    """Whether a unit passes a test; what stands in another module always does."""
    return test is None or unit.code is None or test(unit.code, graph.around(unit), source)


def _reads_all(needs: Needs, text: str) -> bool:
    return not (needs.units or needs.values) or any(word in text for word in needs.whole)


def _holds(unit: Unit, group: tuple[Word, ...], aliases: set[str]) -> bool:
    return _has(unit.text, group) or any(_names(unit.text, name) for name in aliases)


def _own_head(unit: Unit, name: str) -> int:
    """Where the text of a method goes on after the head of its class, if that has this name."""
    return unit.text.find(name) + len(name) if unit.owner == name else 0


def _names(text: str, name: str, *, dotted: bool = False, first: int = 0) -> bool:
    """Whether a name occurs in a text from ``first`` on, ``dotted`` behind a dot, otherwise not
    behind one."""
    at = text.find(name, first) if name else -1
    while at >= 0:
        end = at + len(name)
        before = text[at - 1] if at else "\n"
        if (before == ".") is dotted and not (
            before.isalnum()
            or before == "_"
            or text[end : end + 1].isalnum()
            or text[end : end + 1] == "_"
        ):
            return True
        at = text.find(name, end)
    return False


def _has(text: str, group: tuple[Word, ...]) -> bool:
    return any(occurs(word, text) for word in group)


def _within(group: tuple[Word, ...], text: str) -> tuple[Word, ...]:
    return tuple(word for word in group if occurs(word, text))


def _aliases(outside: Sequence[tuple[str, list[str], bool]], group: tuple[Word, ...]) -> set[str]:
    """Names that the module binds in a statement that holds a word, or another such name."""
    found: set[str] = set()
    waiting = []
    for text, names, _ in outside:
        if _has(text, group):
            found.update(names)
        elif names:
            waiting.append((text, names))
    while found:
        rest = []
        for text, names in waiting:
            if any(_names(text, name) for name in found):
                found.update(names)
            else:
                rest.append((text, names))
        if len(rest) == len(waiting):
            break
        waiting = rest
    return found


def _is_definition(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of the branches in it, not those of definitions."""
    for statement in body:
        yield statement
        if _is_definition(statement):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))
        for handler in getattr(statement, "handlers", []):
            yield from _statements(handler.body)


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Assign(targets=targets):
            for target in targets:
                for node in walk(target):
                    if isinstance(node, ast.Name):
                        yield node.id
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
