"""Events to the rules that ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memlint.analysis.events import Event, ProgramStart
from memlint.rule import Check, Draft, Rule, RuleFailure, handlers


class Dispatcher:
    """Calls each rule's checks with the events they are annotated for."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._checks: dict[type, list[tuple[Rule, Check]]] = {}
        self._failed: set[str] = set()
        for rule in rules:
            for event, name in handlers(type(rule)):
                self._checks.setdefault(event, []).append((rule, getattr(rule, name)))

    @property
    def wants_meaning(self) -> bool:
        """Whether any rule asks for more than the program's start."""
        return any(event is not ProgramStart for event in self._checks)

    def send(self, event: Event) -> Iterator[Draft | RuleFailure]:
        """What the rules that ask for such events say to this one."""
        for rule, check in self._checks.get(type(event), ()):
            if rule.code in self._failed:
                continue
            try:
                yield from check(event)
            except RecursionError:
                raise
            except Exception as error:  # a rule of any pack may raise anything; the others go on
                self._failed.add(rule.code)
                yield RuleFailure(rule.name, f"{type(error).__name__}: {error}")
