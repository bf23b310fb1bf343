"""One file: bytes in, findings and errors out.  Runs in a worker process."""

from __future__ import annotations

import ast
import os
import symtable
import sys
import traceback
from collections.abc import Mapping
from copy import copy
from dataclasses import field, replace
from hashlib import blake2b
from typing import NamedTuple

from memlint.config import Settings
from memlint.findings import FileError, Finding
from memlint.late_dataclass import dataclass
from memlint.linter.across import Across
from memlint.linter.finish import Finished, finish
from memlint.linter.gate import Gate
from memlint.linter.stopwatch import Stopwatch
from memlint.rule import Draft, PartlyRead, Rule, RuleFailure, handlers
from memlint.selection import ignored_in
from memlint.source.discover import os_error_text
from memlint.source.model import Source
from memlint.source.notebook import NOTEBOOK_SUFFIX
from memlint.source.project import Followed, Looked, Project
from memlint.source.read import SourceError, decode_source
from memlint.targets import targets_of

_DENSE_FROM = 200_000


class Job(NamedTuple):
    """A file to be linted.

    ``plan`` is the number of its plan; ``known_digest`` that of the content whose result the
    cache holds, if any; ``data`` the content if it does not come from the file.
    """

    path: str
    inside: str
    plan: int
    size: int
    known_digest: str = ""
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class FileResult:
    """What came of one file.

    ``unchanged``: the content is the one that the cache knows, nothing was done.
    ``lasting``: the same content will give the same result, so that it may be cached, with
    what was ``followed``: the state of the other files that it depends on.
    """

    findings: tuple[Finding, ...] = ()
    errors: tuple[FileError, ...] = ()
    suppressed: int = 0
    digest: str = ""
    unchanged: bool = False
    lasting: bool = True
    followed: tuple[Looked, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)


def failed(path: str, message: str) -> FileResult:
    """The result of a file that could not be worked through, for a reason that may pass."""
    return FileResult(errors=(FileError(path, message),), lasting=False)


class Plan:
    """What to do with the files under one configuration."""

    def __init__(
        self,
        settings: Settings,
        rules: tuple[type[Rule], ...],
        known: Mapping[str, type[Rule]],
        timed: bool = False,
    ) -> None:
        self.settings = settings
        self.known = known
        self.timed = timed
        self.rules: list[Rule] = []
        self.failures: list[FileError] = []
        targets = targets_of(settings)
        for rule in rules:
            if rule.trace_only or (rule.since is not None and not targets.has(*rule.since)):
                continue
            try:
                made = rule(settings.rule_options.get(rule.name))
                made.targets = targets
                Gate([made])
                self.rules.append(made)
            except Exception as error:  # a rule of any pack may raise anything
                message = f"rule {rule.name} failed: {type(error).__name__}: {error}"
                self.failures.append(FileError(rule.__module__, message))
        self._listening = frozenset(rule.code for rule in rules if handlers(rule))
        self._gate = Gate(self.rules)
        self._project = Project(str(settings.root), settings.max_file_size)
        self._across = Across(self._project)

    def run(self, job: Job) -> FileResult:
        """Lint one file.  Raises nothing but ``KeyboardInterrupt`` and ``SystemExit``."""
        clock = Stopwatch(self.timed)
        try:
            data = job.data
            if data is None:
                with open(job.path, "rb") as file:
                    data = file.read(self.settings.max_file_size + 1)
        except OSError as error:
            return failed(job.path, f"cannot be read: {os_error_text(error)}")
        if len(data) > self.settings.max_file_size and job.data is None:
            return too_large(job.path, len(data), self.settings)
        digest = content_digest(data)
        clock.lap("read")
        if digest == job.known_digest:
            return FileResult(digest=digest, unchanged=True)
        return self._lint(job, data, digest, clock)

    def _lint(self, job: Job, data: bytes, digest: str, clock: Stopwatch) -> FileResult:
        active = self._active(job.inside)
        program = _program_of(job.path, data)
        speaking, followed = self._across.follow(
            job.path, program, self._gate.pass_through(program)
        )
        if len(active) < len(self.rules):
            speaking = [rule for rule in speaking if rule in active]
        clock.lap("gate")
        result = self._lint_with(job, data, active, speaking, followed, clock)
        return replace(result, digest=digest, followed=followed.looked, timings=clock.seconds)

    def _lint_with(
        self,
        job: Job,
        data: bytes,
        active: list[Rule],
        speaking: list[Rule],
        followed: Followed,
        clock: Stopwatch,
    ) -> FileResult:
        weight = _weight(data)
        if weight > self.settings.max_file_size and job.data is None:
            if not speaking:
                return FileResult()
            return _too_heavy(job.path, weight, self.settings)
        if not speaking and not job.path.endswith(NOTEBOOK_SUFFIX) and _is_sound(data):
            clock.lap("parse")
            return FileResult()
        return self._lint_program(job, data, active, speaking, followed, clock)

    def _lint_program(
        self,
        job: Job,
        data: bytes,
        active: list[Rule],
        speaking: list[Rule],
        followed: Followed,
        clock: Stopwatch,
    ) -> FileResult:
        try:
            source = decode_source(data, job.path)
            tree = ast.parse(source.text)
        except SourceError as error:
            return FileResult(errors=(error.entry(job.path),))
        except SyntaxError as error:
            return FileResult(errors=(_syntax_entry(source, error),))
        except (MemoryError, RecursionError):
            return failed(job.path, "cannot be parsed: nested too deeply")
        except ValueError as error:
            return failed(job.path, f"cannot be parsed: {error}")
        clock.lap("parse")
        # What a rule keeps of a program goes with it: rules live longer than programs.
        told = [copy(rule) for rule in speaking if rule.code in self._listening]
        clock.watch(told)
        drafts, errors = _analyzed(source, tree, told, self.settings, self._project, followed)
        clock.lap("analyze")
        # What rules that failed would have found is not known: no suppression is unused then.
        judging = [] if errors else [r for r in speaking if r.code not in self._listening]
        judged = [r for r in active if r.code in self._listening or r in judging]
        finished = Finished((), 0)
        try:
            finished = finish(
                source,
                tree,
                drafts,
                inside=job.inside,
                min_confidence=self.settings.min_confidence,
                active=judged,
                known=self.known,
            )
        except Exception as error:  # a defect here must not cost the findings of other files
            errors.append(_internal_error(job.path, error))
        clock.lap("report")
        return FileResult(finished.findings, tuple(errors), finished.suppressed, lasting=not errors)

    def _active(self, inside: str) -> list[Rule]:
        ignored = ignored_in(self.settings, inside, [type(rule) for rule in self.rules])
        return [rule for rule in self.rules if rule.code not in ignored]


def _program_of(path: str, data: bytes) -> bytes:
    """The bytes that words are looked for in: of a notebook the program in its cells."""
    if not path.endswith(NOTEBOOK_SUFFIX):
        return data
    try:
        return decode_source(data, path).text.encode("utf-8", "surrogatepass")
    except SourceError:
        return data


def content_digest(data: bytes) -> str:
    """The hash by which contents are compared."""
    return blake2b(data, digest_size=16).hexdigest()


def too_large(path: str, size: int, settings: Settings) -> FileResult:
    """The result of a file over the size limit."""
    limit = settings.max_file_size
    return failed(
        path,
        f"skipped: larger than max-file-size ({max(size, limit + 1):,} > {limit:,} bytes); "
        f"raise max-file-size in the configuration to include it",
    )


def _too_heavy(path: str, weight: int, settings: Settings) -> FileResult:
    limit = settings.max_file_size
    return failed(
        path,
        f"skipped: its tables take as much memory as {weight:,} bytes of other code, more than "
        f"max-file-size ({limit:,}); raise max-file-size in the configuration to include it",
    )


def _weight(data: bytes) -> int:
    """The size of a file as far as parsing it goes, in bytes.

    A table of literals takes Python's parser about 1 KB for each of them, eight times
    what a few bytes of other code take.
    """
    return max(len(data), 8 * data.count(b",")) if len(data) > _DENSE_FROM else len(data)


def _is_sound(data: bytes) -> bool:
    """Whether the bytes are surely a program that parses; cheaper than a syntax tree."""
    try:
        symtable.symtable(data, "<program>", "exec")  # type: ignore[arg-type]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _analyzed(
    source: Source,
    tree: ast.Module,
    rules: list[Rule],
    settings: Settings,
    project: Project,
    followed: Followed,
) -> tuple[list[Draft], list[FileError]]:
    drafts: list[Draft] = []
    errors: list[FileError] = []
    if not rules:
        return drafts, errors
    from memlint.analysis import analyze

    try:
        for outcome in analyze(source, tree, rules, settings, project=project, followed=followed):
            if isinstance(outcome, RuleFailure):
                message = f"rule {outcome.rule} failed: {outcome.error}"
                errors.append(FileError(source.path, message))
            elif isinstance(outcome, PartlyRead):
                errors.append(FileError(source.path, _partly_read(outcome)))
            else:
                drafts.append(outcome)
    except RecursionError:
        errors.append(FileError(source.path, "cannot be analysed: nested too deeply"))
    except MemoryError:
        errors.append(FileError(source.path, "cannot be analysed: not enough memory"))
    except Exception as error:  # a defect of the analysis must cost one file only
        errors.append(_internal_error(source.path, error))
    return drafts, errors


def _partly_read(outcome: PartlyRead) -> str:
    return (
        f"analysed only in part: given up after {outcome.evaluations:,} evaluations; "
        "split the file, or exclude it"
    )


def _syntax_entry(source: Source, error: SyntaxError) -> FileError:
    version = ".".join(map(str, sys.version_info[:2]))
    message = f"cannot be parsed as Python {version}: {error.msg}"
    if not error.lineno:
        return FileError(source.path, message)
    line, column = error.lineno, max(error.offset or 1, 1)
    cell, location = source.place_of(line, column)
    return FileError(source.path, message, cell, location)


def _internal_error(path: str, error: Exception) -> FileError:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return FileError(
        path, f"internal error of memlint: {type(error).__name__}: {error} (at {place})"
    )
