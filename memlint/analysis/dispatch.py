"""Events to the rules that ask for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memlint.analysis.events import Called, Event, ProgramStart
from memlint.findings import Confidence, Severity
from memlint.rule import Check, Draft, Related, Rule, RuleFailure, handlers
from memlint.source.model import Source
from memlint.source.project import is_foreign, source_of


class Dispatcher:
    """Calls each rule's checks with the events they are annotated for."""

    def __init__(self, rules: Sequence[Rule], source: Source) -> None:
        self._source = source
        self._checks: dict[type, list[tuple[Rule, Check]]] = {}
        self._of_calls: dict[str, list[tuple[Rule, Check]]] = {}
        self._failed: set[str] = set()
        self._told: set[tuple[str, int]] = set()
        for rule in rules:
            for event, name in handlers(type(rule)):
                self._checks.setdefault(event, []).append((rule, getattr(rule, name)))

    @property
    def wants_meaning(self) -> bool:
        """Whether any rule asks for more than the program's start."""
        return any(event is not ProgramStart for event in self._checks)

    def send(self, event: Event) -> Iterator[Draft | RuleFailure]:
        """What the rules that ask for such events say to this one."""
        if isinstance(event, Called):
            asked = self._asking(event.name)
        else:
            asked = self._checks.get(type(event), ())
        for rule, check in asked:
            if rule.code in self._failed:
                continue
            try:
                for drafted in check(event):
                    _check_draft(drafted, self._source)
                    draft = in_this_file(drafted)
                    if draft is None:
                        continue
                    # What is reached in several ways is told once.
                    if (rule.code, id(draft.node)) not in self._told:
                        self._told.add((rule.code, id(draft.node)))
                        yield draft
            except RecursionError:
                raise
            except Exception as error:  # a rule of any pack may raise anything; the others go on
                self._failed.add(rule.code)
                yield RuleFailure(rule.name, f"{type(error).__name__}: {error}")

    def _asking(self, name: str) -> Sequence[tuple[Rule, Check]]:
        """The checks of the rules that ask for the operation ``name``."""
        known = self._of_calls.get(name)
        if known is None:
            checks = self._checks.get(Called, ())
            known = self._of_calls[name] = [one for one in checks if name in one[0].calls]
        return known


def _check_draft(draft: object, source: Source) -> None:
    """Raise for what later stages could not make a finding of: it is the rule that is to blame."""
    if not isinstance(draft, Draft):
        raise TypeError(f"a check yielded {type(draft).__name__}, not a finding")
    if not (isinstance(draft.severity, Severity) and isinstance(draft.confidence, Confidence)):
        raise TypeError("a finding has no severity or confidence")
    fix = draft.fix
    texts = [draft.message, draft.help, *(related.message for related in draft.related)]
    nodes = [draft.node, *(related.node for related in draft.related)]
    if fix is not None:
        texts += [fix.message, *(replacement.content for replacement in fix.replacements)]
        nodes += [replacement.node for replacement in fix.replacements]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a finding has a text that is no string")
    for node in nodes:
        _check_place(node, source)


def in_this_file(draft: Draft) -> Draft | None:
    """A draft about a place in another module, at the first of its places in this file.

    This file is the one that brings the facts together.  A draft with no place in it is for
    the other module alone, and is found there.
    """
    fix = draft.fix
    if fix is not None and any(is_foreign(edit.node) for edit in fix.replacements):
        draft = replace(draft, fix=None)
    if not is_foreign(draft.node):
        return draft
    here = next((one for one in draft.related if not is_foreign(one.node)), None)
    if here is None:
        return None
    others = tuple(one for one in draft.related if one is not here)
    return replace(draft, node=here.node, related=(Related(draft.node, WHERE), *others), fix=None)


WHERE = "this is the place, in another module, that the finding is about"


def _check_place(node: ast.AST, source: Source) -> None:
    line, end_line = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    columns = getattr(node, "col_offset", None), getattr(node, "end_col_offset", None)
    numbers = (line, end_line, *columns)
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise TypeError(f"a finding is at a {type(node).__name__}, which has no place in the text")
    assert isinstance(line, int)
    assert isinstance(end_line, int)
    if not 1 <= line <= end_line <= len(source_of(node, source).lines):
        raise ValueError(f"a finding is at line {line}, which the program does not have")
