"""Where the time goes: by phase and by rule, for ``--timings``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

from memlint.rule import Draft, Rule, handlers

Check = Callable[[Any], Iterator[Draft]]


class Stopwatch:
    """Seconds by phase; rules count under their names, within the phase that runs them."""

    def __init__(self, running: bool) -> None:
        self.seconds: dict[str, float] = {}
        self._running = running
        self._last = perf_counter() if running else 0.0

    def lap(self, phase: str) -> None:
        """Book the time since the last lap to a phase."""
        if self._running:
            now = perf_counter()
            self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
            self._last = now

    def watch(self, rules: Iterable[Rule]) -> None:
        """Time the checks of rules from now on; the last stopwatch to watch a rule counts."""
        if not self._running:
            return
        for rule in rules:
            for _, method in handlers(type(rule)):
                check = getattr(type(rule), method).__get__(rule)
                setattr(rule, method, self._timed(rule.name, check))

    def _timed(self, name: str, check: Check) -> Check:
        def timed(event: Any) -> Iterator[Draft]:
            started = perf_counter()
            drafts = list(check(event))
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - started
            return iter(drafts)

        return timed
