"""``with memlint.trace():`` around a running program."""

from __future__ import annotations

import functools
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from memlint.findings import Finding
from memlint.rule import Rule

if TYPE_CHECKING:
    from memlint.tracer.session import Session

_P = ParamSpec("_P")
_R = TypeVar("_R")
_OPEN: list[Trace] = []


class TraceError(RuntimeError):
    """A trace was entered where it cannot be, or asked for what it does not have yet."""


class Trace:
    """A traced block, to be entered once; also a decorator, which traces each call anew.

    ``steps`` is the number of steps that are noted after ``warmup`` more, ``replay_budget`` how
    many seconds are spent on measuring after the block.  ``include`` and ``exclude`` are patterns
    of paths: call sites are looked for only in files that fit.  ``output`` is where the evidence
    is written; unless ``quiet``, a summary is printed to standard error.
    """

    def __init__(
        self,
        *,
        steps: int | None = None,
        warmup: int = 1,
        replay: bool = True,
        replay_budget: float = 5.0,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        output: str | os.PathLike[str] | None = None,
        quiet: bool = False,
    ) -> None:
        self._options = {
            "steps": steps, "warmup": warmup, "include": tuple(include), "exclude": tuple(exclude),
        }  # fmt: skip
        self._replay, self._budget = replay, replay_budget
        self._output, self._quiet = output, quiet
        self._session: Session | None = None
        self._done = False
        self.findings: list[Finding] = []
        self.meta: dict[str, Any] = {}

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def traced(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self._again():
                return function(*args, **kwargs)

        return traced

    def _again(self) -> Trace:
        other = Trace(
            replay=self._replay,
            replay_budget=self._budget,
            output=self._output,
            quiet=self._quiet,
        )
        other._options = self._options
        return other

    def __enter__(self) -> Trace:
        if _OPEN:
            raise TraceError("a trace is open already: traces do not nest")
        if self._done:
            raise TraceError("this trace has been used: make another one with memlint.trace()")
        try:
            from memlint.tracer.session import Session
        except ImportError as error:
            if error.name != "torch":
                raise
            raise TraceError("tracing needs torch: pip install 'memlint-ml[trace]'") from error
        self._session = Session(**self._options)  # type: ignore[arg-type]
        self._done = True
        _OPEN.append(self)
        self._session.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._session is not None
        self._session.__exit__(kind, error, traceback)
        _OPEN.remove(self)
        self._conclude(self._session)
        if self._output is not None:
            self.save(self._output)
        if not self._quiet:
            print(self.report(), file=sys.stderr)

    def step(self) -> None:
        """A step of the program ends here."""
        if self._session is None or self not in _OPEN:
            raise TraceError("step() is called outside of the traced block")
        self._session.step()

    def _conclude(self, session: Session) -> None:
        import torch

        from memlint.linter.rules import all_rules
        from memlint.tracer.evidence import evidence_of
        from memlint.tracer.findings import Programs, findings_of, merged
        from memlint.tracer.observe import observe
        from memlint.tracer.replay import measure

        known = all_rules().rules
        rules: list[Rule] = [rule() for rule in known.values()]
        recorder = session.recorder
        operations, asked = list(recorder.operations()), list(recorder.requests())
        sightings = merged(observe(rules, operations, asked))
        deadline = time.perf_counter() + self._budget
        told = []
        for number, sighting in enumerate(sightings):
            measured = None
            left = deadline - time.perf_counter()
            if self._replay and sighting.claims and left > 0:
                share = max(left / max(len(sightings) - number, 1), 0.2)
                measured = measure(sighting.claims[0], min(share, 1.0))
            told.append((sighting, evidence_of(sighting, measured, session.durations)))
        self.findings, homeless = findings_of(told, Programs(), known, Path.cwd())
        self.findings.sort(key=_by_cost)
        self.meta = {
            "memlint": _version(),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "device": "cuda" if torch.cuda.is_available() else "cpu",
            "host": platform.node(),
            "steps": session.steps,
            "operations": recorder.seen,
            "blind_spots": _blind_spots(recorder.dropped, len(homeless)),
        }

    def report(self) -> str:
        """What was found, dearest first, as text."""
        from memlint.tracer.summary import summary

        return summary(self.findings, self.meta)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the evidence as JSON."""
        from memlint.report.json_report import finding_object

        document = {
            "version": 1,
            "meta": self.meta,
            "findings": [finding_object(one) for one in self.findings],
        }
        Path(path).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def assert_clean(self, select: Sequence[str] = ()) -> None:
        """Raise ``AssertionError`` with the report if anything was found that is not refuted.

        ``select`` restricts this to rules by code, name or the beginning of a code."""
        found = [one for one in self.findings if _counts(one, select)]
        if found:
            from memlint.tracer.summary import summary

            raise AssertionError(summary(found, self.meta))


def _counts(finding: Finding, select: Sequence[str]) -> bool:
    evidence: Mapping[str, Any] = finding.evidence or {}
    if evidence.get("verdict") in ("refuted", "inconclusive"):
        return False
    return not select or any(
        finding.name == one or finding.code.startswith(one.upper()) for one in select
    )


def _by_cost(finding: Finding) -> tuple[float, float]:
    evidence: Mapping[str, Any] = finding.evidence or {}
    return -(evidence.get("ms_per_step") or 0.0), -float(evidence.get("bytes") or 0)


def _blind_spots(dropped: int, homeless: int) -> list[str]:
    spots = [
        "other threads and DataLoader workers are not seen",
        "compiled regions are seen only as far as they call operators",
    ]
    if dropped:
        spots.append(f"{dropped} operations were not noted: too many different ones")
    if homeless:
        spots.append(f"{homeless} findings stand in no file that can be read")
    return spots


def _version() -> str:
    import memlint

    return memlint.__version__


def trace(**options: Any) -> Trace:
    """A :class:`Trace`, to be entered with ``with`` or put above a function."""
    return Trace(**options)
