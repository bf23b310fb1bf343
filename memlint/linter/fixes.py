"""Fixes of findings, applied to files and proved there.

A fix is taken over only if the file that comes of it, linted in the same way as before, has
lost the finding and gained none.  What a file becomes is worked out in a worker process, as
its findings were; nothing is written here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from memlint.config import Settings
from memlint.findings import Applicability, FileError, Finding
from memlint.late_dataclass import dataclass
from memlint.linter.file import FileResult, Job, Plan, failed
from memlint.linter.proof import Tracked, prove
from memlint.linter.rewrite import Change, Document, UnfitError, comments_in, open_document
from memlint.linter.rules import all_rules
from memlint.rule import Rule
from memlint.selection import select_rules
from memlint.source.discover import Target, discover, os_error_text, shown_path, stdin_target
from memlint.source.read import SourceError

MOST_PASSES = 10


@dataclass(frozen=True, slots=True)
class Refused:
    """A fix that was not applied, and why."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class FixedFile:
    """What a file becomes, by which fixes.

    A finding of ``applied`` speaks of the file as it was when its fix was applied: other
    fixes may have moved lines before.
    """

    path: str
    before: bytes
    after: bytes
    applied: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Fixing:
    """What became of all fixes of a run, by path."""

    files: tuple[FixedFile, ...] = ()
    refused: tuple[Refused, ...] = ()
    errors: tuple[FileError, ...] = ()

    @property
    def applied(self) -> int:
        """The number of findings fixed."""
        return sum(len(file.applied) for file in self.files)


def is_applicable(finding: Finding, *, unsafe: bool) -> bool:
    """Whether a finding has a fix that may be applied."""
    if finding.fix is None:
        return False
    kind = finding.fix.applicability
    return kind is Applicability.SAFE or (unsafe and kind is Applicability.UNSAFE)


def fix_findings(
    findings: Iterable[Finding],
    settings_for: Callable[[Path], Settings],
    *,
    unsafe: bool = False,
    jobs: int | None = None,
    stdin: bytes | None = None,
    stdin_filename: str | None = None,
) -> Fixing:
    """What the files with these findings become by their fixes: safe ones, or ``unsafe`` too.

    ``findings`` are those of a report: what is suppressed or in the baseline is not among
    them, and is not fixed.
    """
    shown: dict[str, set[str]] = defaultdict(set)
    fixable: set[str] = set()
    for finding in findings:
        shown[finding.path].add(finding.fingerprint)
        if is_applicable(finding, unsafe=unsafe):
            fixable.add(finding.path)
    if not fixable:
        return Fixing()
    errors: list[FileError] = []
    if stdin is None:
        found = discover(sorted(fixable), settings_for)
        targets, errors = found.targets, found.errors
    else:
        name = shown_path(stdin_filename) if stdin_filename else "<stdin>"
        target = stdin_target(name, len(stdin), settings_for)
        targets = [] if target is None else [target]
    results = _run(targets, shown, unsafe, jobs, stdin)
    for result in results:
        errors += result.errors
    fixed = [result for result in results if isinstance(result, FixResult)]
    return Fixing(
        tuple(result.file for result in fixed if result.file is not None),
        tuple(refused for result in fixed for refused in result.refused),
        tuple(errors),
    )


def _run(
    targets: Sequence[Target],
    shown: Mapping[str, set[str]],
    unsafe: bool,
    workers: int | None,
    stdin: bytes | None,
) -> list[FileResult]:
    from memlint.linter.pool import run_jobs

    ruleset = all_rules()
    numbers: dict[int, int] = {}
    plans: list[Plan] = []
    jobs: list[Job] = []
    for target in targets:
        if id(target.settings) not in numbers:
            numbers[id(target.settings)] = len(plans)
            rules = select_rules(target.settings, ruleset)
            plans.append(FixPlan(target.settings, rules, ruleset.rules, shown, unsafe))
        number = numbers[id(target.settings)]
        jobs.append(Job(target.path, target.inside, number, target.size, data=stdin))
    results: dict[int, FileResult] = {}
    run_jobs(jobs, plans, workers=workers, on_result=results.__setitem__)
    return [results[index] for index in sorted(results)]


@dataclass(frozen=True, slots=True)
class FixResult(FileResult):
    """What came of the fixes of one file; ``file`` is ``None`` if it stays as it is."""

    file: FixedFile | None = None
    refused: tuple[Refused, ...] = ()


class FixPlan(Plan):
    """Fixes the files under one configuration instead of linting them."""

    def __init__(
        self,
        settings: Settings,
        rules: tuple[type[Rule], ...],
        known: Mapping[str, type[Rule]],
        shown: Mapping[str, set[str]],
        unsafe: bool,
    ) -> None:
        super().__init__(settings, rules, known)
        self._shown = dict(shown)
        self._unsafe = unsafe

    def run(self, job: Job) -> FileResult:
        """Work out what the fixes make of a file."""
        data = job.data
        if data is None:
            try:
                with open(job.path, "rb") as file:
                    data = file.read()
            except OSError as error:
                return failed(job.path, f"cannot be read: {os_error_text(error)}")

        def lint(data: bytes) -> FileResult:
            return super(FixPlan, self).run(job._replace(data=data))

        return _FileFixer(job.path, data, lint, self._shown[job.path], self._unsafe).fix()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A fix in terms of its file's texts: its changes by cell, and what it claims as its own."""

    finding: Finding
    changes: tuple[tuple[int | None, Change], ...]
    claims: tuple[tuple[int | None, int, int], ...]
    drops_comments: int

    def meets(self, other: _Candidate) -> bool:
        """Whether the fixes speak of the same characters, or of neighbouring ones."""
        return any(_touch(one, another) for one in self.claims for another in other.claims)


def _touch(one: tuple[int | None, int, int], other: tuple[int | None, int, int]) -> bool:
    return one[0] == other[0] and one[1] <= other[2] and other[1] <= one[2]


def _overlap(one: tuple[int | None, int, int], other: tuple[int | None, int, int]) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


class _FileFixer:
    """One file: its content, its findings, and the fixes that have been applied."""

    def __init__(
        self,
        path: str,
        data: bytes,
        lint: Callable[[bytes], FileResult],
        shown: set[str],
        unsafe: bool,
    ) -> None:
        self._path, self._lint, self._unsafe = path, lint, unsafe
        self._original = self._data = data
        self._result = lint(data)
        self._tracked = [Tracked(f, f.fingerprint in shown) for f in self._result.findings]
        self._applied: list[Finding] = []
        self._refused: list[Refused] = []

    def fix(self) -> FixResult:
        for _ in range(MOST_PASSES):
            if not self._pass():
                break
        file = None
        if self._data != self._original:
            file = FixedFile(self._path, self._original, self._data, tuple(self._applied))
        return FixResult(file=file, refused=tuple(self._refused))

    def _pass(self) -> bool:
        """Apply what can be applied at once.  Fixes that meet one of these wait for the next."""
        self._refused = []
        wanted = [
            tracked.finding
            for tracked in self._tracked
            if tracked.open and is_applicable(tracked.finding, unsafe=self._unsafe)
        ]
        if not wanted:
            return False
        try:
            document = open_document(self._data, self._path)
        except (UnfitError, SourceError) as error:
            self._refused = [Refused(finding, str(error)) for finding in wanted]
            return False
        attempt = _Attempt(self._path, self._lint, document, self._result, self._tracked)
        pending = self._candidates(document, wanted)
        while pending:
            group, pending = _apart(pending, attempt.accepted)
            self._refused += attempt.add(group)
        if not attempt.accepted:
            return False
        self._data, self._result, self._tracked = attempt.data, attempt.result, attempt.tracked
        self._applied += sorted(
            (candidate.finding for candidate in attempt.accepted), key=lambda f: f.sort_key
        )
        return True

    def _candidates(self, document: Document, findings: Iterable[Finding]) -> list[_Candidate]:
        candidates: list[_Candidate] = []
        for finding in findings:
            try:
                candidates.append(_candidate(document, finding))
            except UnfitError as error:
                self._refused.append(Refused(finding, str(error)))
        return candidates


def _apart(
    pending: Iterable[_Candidate], accepted: Iterable[_Candidate]
) -> tuple[list[_Candidate], list[_Candidate]]:
    """Fixes to be tried together, and those to be tried if these come to nothing."""
    group: list[_Candidate] = []
    later: list[_Candidate] = []
    for candidate in pending:
        if any(candidate.meets(other) for other in accepted):
            continue
        (later if any(candidate.meets(other) for other in group) else group).append(candidate)
    return group, later


def _candidate(document: Document, finding: Finding) -> _Candidate:
    assert finding.fix is not None
    changes: list[tuple[int | None, Change]] = []
    claims: list[tuple[int | None, int, int]] = []
    dropped = 0
    for edit in sorted(finding.fix.edits, key=lambda edit: edit.location):
        if edit.path != finding.path:
            raise UnfitError(f"it changes another file as well ({edit.path})")
        changes.append((edit.cell, document.change(edit)))
        text = document.text(edit.cell)
        claim = (edit.cell, *text.span(edit.location))
        if any(_overlap(claim, other) for other in claims):
            raise UnfitError("its edits overlap")
        claims.append(claim)
        # Taking a comment away may be what a fix is for; then it takes nothing else.
        dropped += text.raw[claim[1] : claim[2]].lstrip().startswith("#")
    if all(change.start == change.end and not change.content for _, change in changes):
        raise UnfitError("it changes nothing")
    return _Candidate(finding, tuple(changes), tuple(claims), dropped)


class _Attempt:
    """Fixes of one pass: those that have proved good together, and what comes of them."""

    def __init__(
        self,
        path: str,
        lint: Callable[[bytes], FileResult],
        document: Document,
        result: FileResult,
        tracked: Sequence[Tracked],
    ) -> None:
        self._path, self._lint, self._document = path, lint, document
        self._before, self._tracked_before = result, tracked
        self.accepted: list[_Candidate] = []
        self.data = b""
        self.result = result
        self.tracked = list(tracked)

    def add(self, group: Sequence[_Candidate]) -> list[Refused]:
        """Accept a group of fixes, or those of its members that are good; returns the others."""
        try:
            self._try([*self.accepted, *group])
        except UnfitError as error:
            if len(group) == 1:
                return [Refused(group[0].finding, str(error))]
            half = len(group) // 2
            return self.add(group[:half]) + self.add(group[half:])
        self.accepted += group
        return []

    def _try(self, candidates: Sequence[_Candidate]) -> None:
        changes: dict[int | None, list[Change]] = defaultdict(list)
        for candidate in candidates:
            for cell, change in candidate.changes:
                changes[cell].append(change)
        data = self._document.after(changes)
        result = self._lint(data)
        after = open_document(data, self._path)
        fixed = [candidate.finding for candidate in candidates]
        tracked = prove(
            fixed, changes, self._document, self._before, self._tracked_before, after, result
        )
        _keep_comments(candidates, changes, self._document, after)
        self.data, self.result, self.tracked = data, result, tracked


def _keep_comments(
    candidates: Iterable[_Candidate], cells: Iterable[int | None], before: Document, after: Document
) -> None:
    lost = 0
    for cell in cells:
        raw, new = before.text(cell).raw, after.text(cell).raw
        if raw.count("#") > new.count("#"):
            lost += comments_in(before.lines(cell, raw)) - comments_in(after.lines(cell, new))
    if lost > sum(candidate.drops_comments for candidate in candidates):
        raise UnfitError("it would take a comment away")
