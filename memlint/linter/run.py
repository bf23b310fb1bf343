"""A run of the linter: paths in, one report out."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from memlint.config import Resolver, Settings
from memlint.findings import FileError, Finding, Report
from memlint.linter.baseline import read_baseline, without_known
from memlint.linter.cache import Cache, cache_directory, cache_key
from memlint.linter.file import FileResult, Job, Plan, too_large
from memlint.linter.rules import all_rules
from memlint.selection import select_rules
from memlint.source.discover import Discovery, Target, discover, shown_path, stdin_target

Progress = Callable[[int, int], None]


def check(
    paths: Sequence[str | Path],
    *,
    settings: Settings | None = None,
    config_path: Path | None = None,
    isolated: bool = False,
    overrides: Mapping[str, object] | None = None,
    jobs: int | None = None,
    use_cache: bool = True,
    stdin: bytes | None = None,
    stdin_filename: str | None = None,
    timings: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Lint files and folders.

    Settings come from ``settings``, or from the file ``config_path``, or from no file
    (``isolated``), or else from the configuration nearest to each file; ``overrides`` are
    laid over what a file says.  ``stdin`` is a program to lint besides the paths, shown as
    ``stdin_filename``.  ``progress`` is called with the number of files done, and of all.

    Raises :class:`memlint.config.ConfigError`; whatever is wrong with a file becomes an entry
    of the report instead.
    """
    started = perf_counter()
    with _no_collection():
        found = _find(paths, settings, config_path, isolated, overrides, stdin, stdin_filename)
        discovered = perf_counter()
        run = _Run(found, stdin, use_cache, timings, progress)
    looked_up = perf_counter()
    run.lint(jobs)
    linted = perf_counter()
    report = run.report()
    ended = perf_counter()
    phases = {
        "discover": discovered - started,
        "look up": looked_up - discovered,
        "lint": linted - looked_up,
        "finish": ended - linted,
    }
    return replace(
        report,
        seconds=ended - started,
        timings={**phases, **report.timings} if timings else {},
    )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the collector from walking over what is only being piled up."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _find(
    paths: Sequence[str | Path],
    settings: Settings | None,
    config_path: Path | None,
    isolated: bool,
    overrides: Mapping[str, object] | None,
    stdin: bytes | None,
    stdin_filename: str | None,
) -> _Found:
    if settings is None:
        resolver = Resolver(overrides, config_path, isolated)
        return _Found(paths, resolver.for_directory, stdin, stdin_filename)
    fixed = replace(settings, **dict(overrides or {}))  # type: ignore[arg-type]
    return _Found(paths, lambda _: fixed, stdin, stdin_filename)


class _Found:
    """What there is to lint: the files below the paths, and perhaps a program on stdin."""

    def __init__(
        self,
        paths: Iterable[str | Path],
        settings_for: Callable[[Path], Settings],
        stdin: bytes | None,
        stdin_filename: str | None,
    ) -> None:
        discovery: Discovery = discover(paths, settings_for)
        self.targets = discovery.targets
        self.errors = discovery.errors
        self.stdin: Target | None = None
        if stdin is not None:
            name = shown_path(stdin_filename) if stdin_filename else "<stdin>"
            self.stdin = stdin_target(name, len(stdin), settings_for)
        if self.stdin is not None:
            self.targets = sorted([*self.targets, self.stdin], key=lambda target: target.path)


class _Prepared:
    """A configuration's plan, and the cache of the files under it."""

    def __init__(self, number: int, plan: Plan, cache: Cache | None) -> None:
        self.number = number
        self.plan = plan
        self.cache = cache


class _Run:
    def __init__(
        self,
        found: _Found,
        stdin: bytes | None,
        use_cache: bool,
        timed: bool,
        progress: Progress | None,
    ) -> None:
        self._targets = found.targets
        self._errors = found.errors
        self._use_cache, self._timed, self._progress = use_cache, timed, progress
        self._rules = all_rules()
        self._prepared: dict[int, _Prepared] = {}
        self._results: list[FileResult | None] = [None] * len(self._targets)
        self._jobs: list[Job] = []
        self._job_targets: list[int] = []
        self._notes: list[str] = []
        self._baselines: dict[Path, Counter[str]] = {}
        self._cached = self._done = 0
        for index, target in enumerate(self._targets):
            data = stdin if target is found.stdin else None
            self._results[index] = self._settled(index, target, data)

    def _settled(self, index: int, target: Target, data: bytes | None) -> FileResult | None:
        """The result of a file that nothing needs to be done for; else a job is noted down."""
        prepared = self._prepared.get(id(target.settings))
        if prepared is None:
            prepared = self._prepare(target.settings)
        path, inside, settings, size, mtime_ns = target
        if size > settings.max_file_size:
            return too_large(path, size, settings)
        digest = ""
        if prepared.cache is not None and data is None:
            hit = prepared.cache.lookup(inside, size, mtime_ns, path)
            if hit is not None:
                self._cached += 1
                return hit
            digest = prepared.cache.digest(inside, path)
        self._jobs.append(Job(path, inside, prepared.number, size, digest, data))
        self._job_targets.append(index)
        return None

    def _prepare(self, settings: Settings) -> _Prepared:
        rules = select_rules(settings, self._rules)
        plan = Plan(settings, rules, self._rules.rules, self._timed)
        self._errors += [failure for failure in plan.failures if failure not in self._errors]
        cache = None
        if self._use_cache and not plan.failures:
            key = cache_key(settings, rules, self._rules)
            cache = Cache(cache_directory(settings), key, settings.root)
        baseline = settings.baseline
        if baseline is not None and baseline not in self._baselines:
            self._baselines[baseline] = read_baseline(baseline)
        prepared = _Prepared(len(self._prepared), plan, cache)
        self._prepared[id(settings)] = prepared
        return prepared

    def lint(self, workers: int | None) -> None:
        """Run the jobs, in worker processes, and keep what comes of them."""
        if not self._jobs:
            return
        from memlint.linter.pool import run_jobs

        self._tell(len(self._targets) - len(self._jobs))
        plans = [prepared.plan for prepared in self._prepared.values()]
        try:
            run_jobs(self._jobs, plans, workers=workers, on_result=self._take)
        finally:
            self._save()

    def _take(self, job: int, result: FileResult) -> None:
        index = self._job_targets[job]
        target = self._targets[index]
        cache = self._prepared[id(target.settings)].cache
        if cache is not None and self._jobs[job].data is None:
            self._cached += result.unchanged
            result = cache.renew(target.inside, target.size, target.mtime_ns, target.path, result)
        self._results[index] = result
        self._done += 1
        self._tell(len(self._targets) - len(self._jobs) + self._done)

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, len(self._targets))

    def _save(self) -> None:
        for prepared in self._prepared.values():
            if prepared.cache is not None and (trouble := prepared.cache.save()) is not None:
                self._notes.append(trouble)

    def report(self) -> Report:
        """What was found, sorted, known findings left out."""
        findings: list[Finding] = []
        errors: list[FileError] = []
        suppressed = baselined = 0
        phases: dict[str, float] = {}
        for target, result in zip(self._targets, self._results, strict=True):
            assert result is not None
            if result.findings:
                fresh, old = self._fresh(target.settings, result)
                findings += fresh
                baselined += old
            errors += result.errors
            suppressed += result.suppressed
            for phase, seconds in result.timings.items():
                phases[phase] = phases.get(phase, 0.0) + seconds
        errors += self._errors
        return Report(
            findings=tuple(sorted(findings, key=lambda finding: finding.sort_key)),
            errors=(*self._rules.errors, *sorted(errors, key=lambda error: error.path)),
            files=len(self._targets),
            suppressed=suppressed,
            baselined=baselined,
            cached=self._cached,
            timings=phases,
            notes=tuple(self._notes),
        )

    def _fresh(self, settings: Settings, result: FileResult) -> tuple[Iterable[Finding], int]:
        if settings.baseline is None:
            return result.findings, 0
        return without_known(result.findings, self._baselines[settings.baseline])
