"""``with memlint.trace():`` around a running program."""

from __future__ import annotations

import functools
import inspect
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from memlint.findings import Finding
from memlint.rule import Rule
from memlint.tracer.options import asserted, at_least, listed

if TYPE_CHECKING:
    from memlint.tracer.evidence_file import EvidenceFile
    from memlint.tracer.findings import Programs
    from memlint.tracer.limits import Limits
    from memlint.tracer.records import Asked, InnerCopy, Operation, Site
    from memlint.tracer.replay import Measured
    from memlint.tracer.session import Session
    from memlint.tracer.sightings import Sighting
    from memlint.tracer.sites import SiteCount

_P = ParamSpec("_P")
_R = TypeVar("_R")
_OPEN: list[Trace] = []


class TraceError(RuntimeError):
    """A trace was entered where it cannot be, or asked for what it does not have yet."""


class Trace:
    """A traced block, to be entered once; also a decorator, which traces each call anew.

    ``steps`` is the number of steps that are noted after ``warmup`` more, ``replay_budget`` how
    many seconds are spent on measuring after the block.  With ``profile_step`` one further step
    runs under torch's profiler: the one after those that are noted or, where all are, the second
    of them, which is noted, but whose duration is not told.

    ``include`` and ``exclude`` are patterns of paths: call sites are looked for only in files
    that fit.  ``output`` is where the evidence is written, by each rank of a distributed run to a
    file of its own (``out.rank0.json``); unless ``quiet``, a summary is printed to standard
    error.

    When the block has ended, ``findings`` are what was found, dearest first, ``sites`` where which
    operations ran, ``operations`` and ``asked`` the records that both were made of; ``profile``
    and ``journeys`` are as in the evidence file.
    """

    def __init__(
        self,
        *,
        steps: int | None = None,
        warmup: int = 1,
        replay: bool = True,
        replay_budget: float = 5.0,
        profile_step: bool = True,
        include: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        output: str | os.PathLike[str] | None = None,
        quiet: bool = False,
    ) -> None:
        if steps is not None:
            at_least("steps", steps, 1)
        at_least("warmup", warmup, 0)
        at_least("replay_budget", replay_budget, 0)
        self._options = {
            "steps": steps, "warmup": warmup, "include": listed(include),
            "exclude": listed(exclude),
            "profile_step": profile_step,
        }  # fmt: skip
        self._replay, self._budget = replay, replay_budget
        self._output, self._quiet = output, quiet
        self._session: Session | None = None
        self._done, self._process = False, os.getpid()
        self._folder = Path.cwd()
        self.findings: list[Finding] = []
        self.sites: list[SiteCount] = []
        self.operations: list[Operation] = []
        self.asked: list[Asked] = []
        self.meta: dict[str, Any] = {}
        self.profile: Mapping[str, Any] | None = None
        self.journeys: list[Mapping[str, Any]] = []

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """The function with each of its calls traced, by a trace of its own; of a coroutine
        function, each time that it is awaited.  Raises :class:`TraceError` for what does not run
        while it is called: generators and classes."""
        _check_decorated(function)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return await function(*args, **kwargs)

            return awaited  # type: ignore[return-value]

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
        self._folder = Path.cwd()  # the program may go elsewhere
        if self._output is not None and not (self._folder / self._output).parent.is_dir():
            raise TraceError(f"output: there is no such folder: {Path(self._output).parent}")
        self._session = Session(**self._options)  # type: ignore[arg-type]
        self._done, self._process = True, os.getpid()
        self._session.__enter__()
        _OPEN.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._session is not None
        try:
            self._session.__exit__(kind, error, traceback)
        finally:
            _OPEN.remove(self)
        if os.getpid() != self._process:
            return  # a forked child leaves the block as well: what it did was not seen
        from memlint.tracer.apart import aside

        with aside():
            self._conclude(self._session)
        if not self._quiet:
            print(self.report(), file=sys.stderr)
        if self._output is not None:
            self.save(self._folder / of_this_rank(Path(self._output)))

    def step(self) -> None:
        """A step of the program ends here."""
        if self._session is None or self not in _OPEN:
            raise TraceError("step() is called outside of the traced block")
        self._session.step()

    def _require_end(self) -> None:
        if not self.meta:
            raise TraceError("the traced block has not ended, or was never entered")

    def _conclude(self, session: Session) -> None:
        import torch

        from memlint.linter.rules import all_rules
        from memlint.tracer.evidence import evidence_of, judged
        from memlint.tracer.findings import Programs, findings_of, merged
        from memlint.tracer.journeys import journeys_of
        from memlint.tracer.observe import observe
        from memlint.tracer.overhead import cost_of_an_operation
        from memlint.tracer.sites import site_counts

        known = all_rules().rules
        rules: list[Rule] = [rule() for rule in known.values()]
        recorder, programs = session.recorder, Programs(self._folder)
        self.operations, self.asked = list(recorder.operations()), list(recorder.requests())
        self.profile, inner = _profile(session, programs)
        others = [*self.asked, *recorder.others(), *inner]
        sightings = merged(observe(rules, self.operations, others))
        at_place: dict[Site, list[Operation]] = {}
        for operation in self.operations:
            at_place.setdefault(operation.site, []).append(operation)
        replayed, skipped = self._replayed(sightings)
        self.journeys = journeys_of(self.operations, sightings, replayed, programs.shown)
        told = []
        for sighting, measured in zip(sightings, replayed, strict=True):
            there = at_place.get(sighting.site, [])
            evidence = evidence_of(sighting, measured, session.durations, there, programs.shown)
            told.append((judged(sighting, measured), evidence))
        self.findings, homeless = findings_of(told, programs, known)
        self.findings.sort(key=_by_cost)
        every, every_asked = [*self.operations], [*self.asked]
        early = session.warmup
        if early is not None and early is not recorder:
            # What ran before the first step had ended is not judged, but it ran.
            every += early.operations()
            every_asked += early.requests()
        self.sites, left_out = site_counts(every, every_asked, programs.shown, programs.line)
        cost = cost_of_an_operation()
        self.meta = {
            "memlint": _version(),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "device": _device(self.operations),
            "host": platform.node(),
            "rank": _rank(),
            "folder": self._folder.as_posix(),
            "steps": session.steps,
            "operations": recorder.seen,
            "overhead": {"us_per_operation": cost * 1e6, "seconds": cost * recorder.seen},
            "complete": not (recorder.dropped or left_out or self._options["steps"] is not None),
            "blind_spots": [
                *_blind_spots(recorder.dropped, len(homeless), left_out, skipped),
                _of_kernels(session),
            ],
        }

    def _replayed(self, sightings: Sequence[Sighting]) -> tuple[list[Measured | None], int]:
        """What was measured of each, dearest first, and for how many no time was left."""
        from memlint.tracer.replay import measure_all

        if not self._replay:
            return [None] * len(sightings), 0
        return measure_all((next(iter(one.claims), None) for one in sightings), self._budget)

    def report(self) -> str:
        """What was found, dearest first, as text."""
        from memlint.tracer.summary import summary

        return summary(self.findings, self.meta, self.profile, self._line)

    def _line(self, finding: Finding) -> str | None:
        """The text of the line that a finding stands on."""
        from memlint.tracer.findings import Programs

        if finding.cell is not None:
            return None
        return Programs(self._folder).line(finding.path, finding.location.line)

    def document(self) -> dict[str, Any]:
        """The evidence as plain data, as :meth:`save` writes it."""
        from memlint.tracer.evidence_file import document

        return document(self.meta, self.findings, self.sites, self.profile, self.journeys)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the evidence as JSON; raises ``OSError``."""
        from memlint.tracer.evidence_file import write_evidence

        write_evidence(path, self.document())

    def save_trace_event(self, path: str | os.PathLike[str]) -> None:
        """Write the profiled step for Perfetto, in Chrome's trace event format.

        Raises :class:`TraceError` where no step was profiled, and ``OSError``."""
        from memlint.tracer.trace_event import trace_event, write_trace_event

        if self.profile is None:
            raise TraceError("no step was profiled")
        write_trace_event(path, trace_event(self.meta, self.findings, self.profile))

    def gather(self) -> EvidenceFile:
        """The evidence of all ranks of a distributed run, joined, for each of them.

        All ranks have to call this, after the block; needs an initialised
        ``torch.distributed``."""
        import torch.distributed as dist

        from memlint.tracer.evidence_file import evidence_of_document
        from memlint.tracer.merge import merge

        documents: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(documents, self.document())
        return merge({rank: evidence_of_document(one) for rank, one in enumerate(documents)})

    def broken(self, limits: Limits) -> list[str]:
        """What breaks limits, a line for each place; raises :class:`TraceError` before the end of
        the block."""
        from memlint.tracer.findings import Programs

        self._require_end()
        return limits.broken(self.operations, Programs(self._folder).shown)

    def assert_clean(self, select: str | Sequence[str] | None = None) -> None:
        """Raise ``AssertionError`` with the report if anything was found that is neither refuted
        nor inconclusive.

        ``select`` restricts this to rules by code, name, family or the beginning of a code; raises
        ``ValueError`` where there is no such rule, :class:`TraceError` before the end of the
        block."""
        __tracebackhide__ = True  # of pytest: the line of the test is what matters
        self._require_end()
        found = asserted(self.findings, select)
        if found:
            from memlint.tracer.summary import summary

            raise AssertionError(summary(found, self.meta, self.profile, self._line))


def _profile(
    session: Session, programs: Programs
) -> tuple[Mapping[str, Any] | None, list[InnerCopy]]:
    """The profiled step, if there is one, and what its kernels copied."""
    from memlint.tracer.inner_copies import inner_copies, makes_a_difference
    from memlint.tracer.located import located
    from memlint.tracer.step_profile import profile_of

    step = session.profiled
    if step is None:
        return None, []
    events, kernels, operations = step.events(), step.kernels(), step.operations()
    profile = profile_of(
        events,
        kernels,
        operations,
        began=step.begins_at,
        seconds=step.seconds,
        shown=programs.shown,
    )
    copies = inner_copies(list(located(events, operations)), kernels)
    return profile, [one for one in copies if makes_a_difference(one)]


def _check_decorated(function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        kind = "a generator runs while others use it"
    elif inspect.isclass(function):
        kind = "a class does not run"
    elif isinstance(function, (staticmethod, classmethod)):
        kind = f"{type(function).__name__} goes above the trace, not below"
    else:
        return
    raise TraceError(f"this cannot be traced as a function, {kind}: use `with memlint.trace():`")


def _by_cost(finding: Finding) -> tuple[float, float]:
    evidence: Mapping[str, Any] = finding.evidence or {}
    return -(evidence.get("ms_per_step") or 0.0), -float(evidence.get("bytes") or 0)


def _device(operations: Sequence[Operation]) -> str:
    """What the program computed on: an accelerator where any of its operands lay there."""
    kinds = {operand.kind for one in operations for operand in one.operands} - {"cpu", "meta"}
    return min(kinds) if kinds else "cpu"


def _rank() -> int | None:
    """The number of this process in a distributed run, ``None`` in any other."""
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdecimal() and size.isdecimal() and int(size) > 1 else None


def of_this_rank(output: Path) -> Path:
    """A path with the number of this process in a distributed run, as it is in any other."""
    rank = _rank()
    return output if rank is None else output.with_suffix(f".rank{rank}{output.suffix}")


def _blind_spots(dropped: int, homeless: int, left_out: int, skipped: int) -> list[str]:
    spots = [
        "other threads and DataLoader workers are not seen",
        "compiled regions are seen only as far as they call operators",
    ]
    if dropped:
        spots.append(f"{dropped} operations were not noted: too many different ones")
    if homeless:
        stand = "finding stands" if homeless == 1 else "findings stand"
        spots.append(f"{homeless} {stand} in no file that can be read")
    if skipped:
        were = "finding was" if skipped == 1 else "findings were"
        spots.append(f"{skipped} {were} not measured: the time for it was spent")
    if left_out:
        spots.append(f"{left_out} places of operations are not listed: too many different ones")
    return spots


def _of_kernels(session: Session) -> str:
    if session.profiled is None:
        return (
            f"copies within kernels are not seen, as no step was profiled: {session.not_profiled}"
        )
    return "of what kernels do, what a library does within one call is not seen"


def _version() -> str:
    import memlint

    return memlint.__version__


def trace(**options: Any) -> Trace:
    """A :class:`Trace`, to be entered with ``with`` or put above a function."""
    return Trace(**options)
