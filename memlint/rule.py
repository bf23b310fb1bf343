"""What a rule is, and how rules are found.

A rule is one class in one file of a rule pack.  A pack is an importable package named by
an entry point of the group ``memlint.rules``; every module in it is imported and every
concrete :class:`Rule` subclass defined there is a rule.  Nothing is registered by hand.

A rule's ``check*`` methods are called with the events that the analysis finds, its ``observe*``
methods with the records of a traced run: the annotation of a method's first argument says with
which kind.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, ClassVar, TypeAlias

from memlint.findings import Applicability, Confidence, FileError, Severity
from memlint.late_pattern import is_pattern
from memlint.packs import installed
from memlint.targets import Targets, Version

ENTRY_POINT_GROUP = "memlint.rules"
DOCS_URL = "https://memlint.readthedocs.io/rules/{name}/"


Word: TypeAlias = str | re.Pattern[str] | Callable[[str], bool]
# A test of a function: its node, the text of it or of the class around it, and the whole source.
# Of what a module does outside of functions the node is a module of these statements.
UnitTest: TypeAlias = Callable[[ast.AST, str, str], bool]


def occurs(word: Word, text: str) -> bool:
    """Whether a word occurs in a text."""
    if isinstance(word, str):
        return word in text
    if is_pattern(word):
        return word.search(text) is not None
    return bool(word(text))  # type: ignore[operator]


def _cheapest_first(group: Iterable[Word]) -> tuple[Word, ...]:
    def cost(word: Word) -> int:
        if not (isinstance(word, str) or is_pattern(word) or callable(word)):
            raise TypeError(f"{word!r} is no word, pattern or test of a text")
        return 0 if isinstance(word, str) else 1 if is_pattern(word) else 2

    return tuple(sorted(set(group), key=lambda word: (cost(word), str(word))))


class Needs:
    """Words that a source must hold before a rule can have anything to say about it.

    Each group is a set of words, one of which must occur somewhere in the text; all
    groups must be satisfied.  Words are plain substrings,
    patterns, or tests of a text: they are a sieve, not a proof.

    ``units`` are groups for a single function, counting with it what it calls (with
    ``classwide``: what all methods of its class hold); ``values`` are groups that may as
    well be met by the ``__init__`` of a method's class.  Functions that do not
    satisfy them are only read where others call them.  A word of ``also`` is what may speak
    against a finding: who holds one is read too, once there is anything to be found.  A group
    with a word of ``across`` may be met by what the program imports from its own project, and all
    that this names; with one of ``classes`` by the definition of a class that it imports.  With
    neither ``units`` nor ``values``, and where a word of ``whole`` occurs in the source, all
    functions are read.

    ``places`` tells of a function that holds a word of the first group whether it can have a
    place to be reported: others do not count as holding one.  With ``nearest``, these functions
    are read, and of those that call them only plain functions, and methods where what they call
    is no method: for rules to which it matters little how a function is called.  ``callers``
    tells then of such a function whether it depends on how it is called after all.
    """

    __slots__ = (
        "across", "also", "callers", "classes", "classwide", "groups", "nearest", "places",
        "units", "values", "whole",
    )  # fmt: skip

    def __init__(
        self,
        *groups: Iterable[Word],
        units: Iterable[Iterable[Word]] = (),
        values: Iterable[Iterable[Word]] = (),
        whole: Iterable[str] = (),
        also: Iterable[Word] = (),
        across: Iterable[Word] = (),
        classes: Sequence[Word] = (),
        classwide: bool = False,
        nearest: bool = False,
        places: UnitTest | None = None,
        callers: UnitTest | None = None,
    ) -> None:
        self.groups: tuple[tuple[Word, ...], ...] = tuple(map(_cheapest_first, groups))
        self.units = tuple(_cheapest_first(group) for group in units)
        self.values = tuple(_cheapest_first(group) for group in values)
        self.whole = frozenset(whole)
        self.also: tuple[Word, ...] = _cheapest_first(also)
        self.across: tuple[Word, ...] = _cheapest_first((*across, *classes))
        self.classes = frozenset(classes)
        self.classwide = classwide
        self.nearest = nearest
        self.places = places
        self.callers = callers


@dataclass(frozen=True, slots=True)
class Option:
    """A setting of one rule, read from its table in the configuration."""

    default: bool | int | float | str
    help: str


@dataclass(frozen=True, slots=True)
class Related:
    """A second place of a draft: a node of the analysed tree, and why it matters."""

    node: ast.AST
    message: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replace the text that ``node`` spans by ``content``."""

    node: ast.AST
    content: str


@dataclass(frozen=True, slots=True)
class DraftFix:
    """A fix in terms of nodes of the analysed tree."""

    message: str
    replacements: tuple[Replacement, ...]
    applicability: Applicability


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding in terms of nodes of the analysed tree, before it has a path and lines."""

    rule: Rule
    node: ast.AST
    message: str
    help: str
    severity: Severity
    confidence: Confidence
    related: tuple[Related, ...] = ()
    fix: DraftFix | None = None


@dataclass(frozen=True, slots=True)
class RuleFailure:
    """A rule that raised an exception; what the other rules found still counts."""

    rule: str
    error: str


@dataclass(frozen=True, slots=True)
class PartlyRead:
    """A program that was too much to be read to its end; what was found until then counts."""

    evaluations: int


class Rule:
    """Base class of all rules.  The docstring of a subclass is the rule's page.

    ``calls`` are the operations that the rule wants :class:`~memlint.analysis.events.Called`
    events of, by the names that are explained there.  ``targets`` are the oldest versions that
    the linted project supports; ``since`` is the package and the version from which on what the
    rule advises is there: the rule does not run for projects that support older ones, and says
    so where nothing tells which they support.  A ``trace_only`` rule speaks of runs alone.
    Where the rule is told, those that it ``supersedes`` are not told of the same statement or
    piece of text, and those of ``supersedes_here`` not of the very same expression.
    """

    code: ClassVar[str] = ""
    name: ClassVar[str] = ""
    severity: ClassVar[Severity] = Severity.WARNING
    default_on: ClassVar[bool] = True
    trace_only: ClassVar[bool] = False
    applicability: ClassVar[Applicability] = Applicability.NONE
    needs: ClassVar[Needs] = Needs()
    calls: ClassVar[frozenset[str]] = frozenset()
    needs_device: ClassVar[str | None] = None
    supersedes: ClassVar[tuple[str, ...]] = ()
    supersedes_here: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, Option]] = {}
    since: ClassVar[tuple[str, Version] | None] = None
    targets: Targets = Targets()

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options = dict(options or {})

    def option(self, key: str) -> Any:
        """The configured value of an option of this rule, or its default."""
        return self._options.get(key, self.options[key].default)

    @classmethod
    def family(cls) -> str:
        """The sub-package of the pack that the rule's module lies in."""
        parts = cls.__module__.split(".")
        return parts[-2] if len(parts) > 1 else parts[-1]

    @classmethod
    def url(cls) -> str:
        """Where the rule's page stands on the documentation site."""
        return DOCS_URL.format(name=cls.name)

    @classmethod
    def summary(cls) -> str:
        """The first line of the rule's page."""
        page = next((one.__doc__ for one in cls.__mro__ if one.__doc__), "")
        return page.strip().partition("\n")[0]

    def finding(
        self,
        node: ast.AST,
        message: str,
        help: str,
        *,
        severity: Severity | None = None,
        confidence: Confidence = Confidence.HIGH,
        related: Sequence[Related] = (),
        fix: DraftFix | None = None,
    ) -> Draft:
        """A finding of this rule at ``node``."""
        if self.since is not None:
            help += self.targets.proviso(*self.since)
        return Draft(
            self, node, message, help, severity or self.severity, confidence, tuple(related), fix
        )


Check = Callable[[Any], Iterator[Draft]]


_METHODS: dict[tuple[type, str], tuple[tuple[type, str], ...]] = {}


def handlers(rule: type[Rule]) -> tuple[tuple[type, str], ...]:
    """The event class and the method name of each ``check*`` method of a rule."""
    return _methods(rule, "check")


def observers(rule: type[Rule]) -> tuple[tuple[type, str], ...]:
    """The record class and the method name of each ``observe*`` method of a rule."""
    return _methods(rule, "observe")


def _methods(rule: type[Rule], prefix: str) -> tuple[tuple[type, str], ...]:
    key = (rule, prefix)
    if (known := _METHODS.get(key)) is None:
        known = _METHODS[key] = tuple(_asking(rule, prefix))
    return known


def _asking(rule: type[Rule], prefix: str) -> Iterator[tuple[type, str]]:
    for name in dir(rule):
        if not name.startswith(prefix):
            continue
        yield _annotated(getattr(rule, name)), name


def _annotated(method: Any) -> Any:
    """The annotation of a method's first argument."""
    if isinstance(method, FunctionType):
        # What the standard library makes of all annotations takes longer than to load the rule.
        first = method.__code__.co_varnames[1 : method.__code__.co_argcount][:1]
        text = method.__annotations__.get(first[0]) if first else None
        if isinstance(text, str) and isinstance(kind := method.__globals__.get(text), type):
            return kind
    hints = typing.get_type_hints(method)
    parameters = [p for p in inspect.signature(method).parameters if p != "self"]
    return hints[parameters[0]]


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules of all packs, by code, and what could not be loaded."""

    rules: Mapping[str, type[Rule]]
    errors: tuple[FileError, ...] = ()
    packs: tuple[tuple[str, str], ...] = field(default=())

    def by_name(self, selector: str) -> type[Rule] | None:
        """The rule with this code or name."""
        if (rule := self.rules.get(selector.upper())) is not None:
            return rule
        return next((rule for rule in self.rules.values() if rule.name == selector), None)


def _modules(package: str) -> Iterator[str]:
    root = importlib.import_module(package)
    yield package
    # What goes wrong with a package on the way is said when its name, yielded too, is loaded.
    for info in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda name: None):
        yield info.name


def _rules_in(module_name: str) -> Iterator[type[Rule]]:
    module = importlib.import_module(module_name)
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, Rule)
            and value.__module__ == module_name
            and value.code
        ):
            yield value


def _admit(rule: type[Rule], rules: dict[str, type[Rule]]) -> None:
    for other in rules.values():
        if rule.code == other.code or rule.name == other.name:
            raise ValueError(
                f"{rule.code} {rule.name} is already taken by {other.code} {other.name}"
                f" of {other.__module__}"
            )
    if not all(isinstance(text, str) for text in (rule.family(), rule.url(), rule.summary())):
        raise TypeError(f"{rule.code} has a family, an address or a summary that is no string")
    handlers(rule)
    observers(rule)
    rules[rule.code] = rule


def load_rules() -> RuleSet:
    """Import every installed rule pack.  A pack that fails is an error entry, not an exception."""
    rules: dict[str, type[Rule]] = {}
    errors: list[FileError] = []
    packs: list[tuple[str, str]] = []
    for pack in installed(ENTRY_POINT_GROUP):
        packs.append((pack.package, pack.version))
        try:
            modules = list(_modules(pack.package))
        except (Exception, SystemExit) as error:  # a third party's package may raise anything
            errors.append(FileError(pack.package, f"rule pack could not be loaded: {error!r}"))
            continue
        for module_name in modules:
            try:
                for rule in _rules_in(module_name):
                    _admit(rule, rules)
            except (Exception, SystemExit) as error:  # one bad module must not cost the others
                errors.append(FileError(module_name, f"rule could not be loaded: {error!r}"))
    return RuleSet(dict(sorted(rules.items())), tuple(errors), tuple(packs))
