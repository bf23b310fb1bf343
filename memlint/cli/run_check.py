"""What ``memlint check`` does once its arguments are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import click

from memlint.cli.progress import ProgressBar
from memlint.cli.status import Failed, Status, silence
from memlint.cli.terminal import wants_color, width_of
from memlint.config import Resolver, Settings
from memlint.findings import FileError, Report
from memlint.report.evidence_text import is_refuted
from memlint.report.formats import FOR_PEOPLE, render
from memlint.report.summary import closing_line, fixable_line, statistics, timings
from memlint.report.view import PLAIN_WIDTH, View, printable, shown_place
from memlint.source.model import Source

_STDIN = "-"
_STDIN_NAME = "<stdin>"


class CheckRun:
    """One run: from paths and options to the exit status."""

    def __init__(
        self,
        paths: Sequence[str],
        overrides: Mapping[str, object],
        options: Mapping[str, Any],
        *,
        stdin: bytes | None = None,
        stream: IO[str] | None = None,
    ) -> None:
        self._paths = paths
        self._overrides = dict(overrides)
        self._options = options
        self._given = stdin
        self._stream = sys.stdout if stream is None else stream
        self._check_usage()

    def run(self) -> int:
        """Do what was asked for and return the exit status."""
        if self._options["show_settings"]:
            from memlint.cli.show import settings_text

            click.echo(settings_text(self._first_settings()), nl=False)
            return Status.CLEAN
        if self._options["show_files"]:
            return self._show_files()
        if self._options["write_baseline"]:
            return self._write_baseline()
        return self.conclude(self.lint())

    def lint(self) -> Report:
        """What there is to report."""
        report = self._report(self._overrides)
        evidence: Path | None = self._options["evidence"]
        if evidence is not None:
            from memlint.cli.evidence import Traced

            paths = [] if self.stdin is not None else self._paths
            report = Traced(evidence, paths, self.settings_for).beside(report)
        if self._options["measured"]:
            from memlint.cli.measured import with_measured

            report = with_measured(report, quiet=self._options["quiet"])
        return report

    def conclude(self, report: Report) -> int:
        """Write a report and return the exit status."""
        status = self._status(report)
        try:
            self._write(report)
        except BrokenPipeError:
            silence(self._stream)
        self.complain(report.errors)
        if self._options["timings"]:
            sys.stderr.writelines(timings(report))
        return status

    def _check_usage(self) -> None:
        if _STDIN in self._paths and len(self._paths) > 1:
            raise click.UsageError("'-' cannot be combined with other paths.")
        if self._options["stdin_filename"] is not None and _STDIN not in self._paths:
            raise click.UsageError("--stdin-filename is of use with '-' only.")
        if self._options["config"] is not None and self._options["isolated"]:
            raise click.UsageError("--config and --isolated exclude each other.")
        config = self._options["config"]
        if config is not None and not config.is_file():
            raise click.UsageError(f"--config: no such file: {config}")

    def settings_for(self, directory: Path) -> Settings:
        """The settings for the files of a folder."""
        return self._resolver.for_directory(directory)

    @cached_property
    def _resolver(self) -> Resolver:
        return Resolver(self._overrides, self._options["config"], self._options["isolated"])

    @cached_property
    def stdin(self) -> bytes | None:
        """The program to be read from standard input, if it was asked for."""
        if self._given is not None:
            return self._given
        if _STDIN not in self._paths:
            return None
        if sys.stdin is None:
            raise Failed("standard input is closed")
        return sys.stdin.buffer.read()

    @property
    def _stdin_name(self) -> str:
        return self._options["stdin_filename"] or _STDIN_NAME

    def _first_settings(self) -> Settings:
        first = Path(self._stdin_name if self._paths[0] == _STDIN else self._paths[0])
        return self._resolver.for_directory(first if first.is_dir() else first.parent)

    def _report(self, overrides: Mapping[str, object]) -> Report:
        from memlint.linter.run import check

        if self._options["verbose"]:
            self._describe_settings()
        with ProgressBar(wanted=not self._options["quiet"]) as progress:
            report = check(
                [] if self.stdin is not None else self._paths,
                config_path=self._options["config"],
                isolated=self._options["isolated"],
                overrides=overrides,
                jobs=self._options["jobs"],
                use_cache=not self._options["no_cache"],
                stdin=self.stdin,
                stdin_filename=self._options["stdin_filename"],
                timings=self._options["timings"],
                progress=progress,
            )
        if report.files == 0 and not report.errors and not self._options["quiet"]:
            click.echo("warning: no Python files or notebooks found", err=True)
        if self._options["verbose"]:
            for note in report.notes:
                click.echo(f"note: {printable(note)}", err=True)
            files = f"{report.files} file{'' if report.files == 1 else 's'}"
            click.echo(
                f"checked {files} in {report.seconds:.2f} s ({report.cached} from the cache)",
                err=True,
            )
        return report

    def _describe_settings(self) -> None:
        from memlint.config import find_config

        config = self._options["config"]
        if config is None and not self._options["isolated"]:
            first = Path(self._paths[0])
            config = find_config(first if first.is_dir() else first.parent)
        click.echo(f"configuration: {config or 'none'}", err=True)

    def _status(self, report: Report) -> int:
        counted = (f for f in report.findings if not is_refuted(f))
        if any(self._fails(f.path, f.severity.rank) for f in counted):
            return Status.CLEAN if self._options["exit_zero"] else Status.FINDINGS
        return Status.ERROR if report.errors else Status.CLEAN

    def _fails(self, path: str, rank: int) -> bool:
        return rank >= self._resolver.for_directory(Path(path).parent).fail_level.rank

    def _write(self, report: Report) -> None:
        target: Path | None = self._options["output_file"]
        if target is None:
            color = wants_color(self._options["color"], self._stream)
            view = self._view(width_of(self._stream), color)
            _write_all(self._stream.write, self._pieces(report, view))
            return
        view = self._view(PLAIN_WIDTH, self._options["color"] == "always")
        try:
            with target.open("w", encoding="utf-8", errors="backslashreplace") as stream:
                _write_all(stream.write, self._pieces(report, view))
        except OSError as error:
            raise Failed(f"{target}: {error.strerror}") from error

    def _pieces(self, report: Report, view: View) -> Iterator[str]:
        name = self._options["output_format"]
        if name not in FOR_PEOPLE:
            yield from render(name, report, view)
            if self._options["statistics"]:
                sys.stderr.writelines(statistics(report, replace(view, color=False)))
            return
        if self._options["statistics"]:
            yield from statistics(report, view)
        else:
            yield from render(name, report, view)
        if not self._options["quiet"]:
            yield closing_line(report, view)
            if not self._options["fix"]:  # a run with fixes says itself what is left to fix
                yield fixable_line(report)

    def _view(self, width: int, color: bool) -> View:
        from memlint.linter.rules import all_rules

        return View(width, color, _Sources(self.stdin, self._stdin_name), all_rules)

    def complain(self, errors: Iterable[FileError]) -> None:
        """Name what could not be worked through."""
        for error in errors:
            place = shown_place(error.path, error.cell, error.location)
            click.echo(f"error: {place}: {printable(error.message)}", err=True)

    def _show_files(self) -> int:
        from memlint.source.discover import discover

        found = discover(self._paths, self._resolver.for_directory)
        for target in found.targets:
            click.echo(printable(target.path))
        self.complain(found.errors)
        return Status.ERROR if found.errors else Status.CLEAN

    def _write_baseline(self) -> int:
        from memlint.linter.baseline import write_baseline

        path = self._first_settings().baseline
        if path is None:
            raise click.UsageError("--write-baseline needs --baseline FILE.")
        report = self._report({**self._overrides, "baseline": None})
        try:
            write_baseline(path, report)
        except OSError as error:
            raise Failed(f"{path}: {error.strerror}") from error
        self.complain(report.errors)
        if not self._options["quiet"]:
            shown = printable(os.path.relpath(path))
            click.echo(f"{len(report.findings)} findings written to {shown}")
        return Status.ERROR if report.errors else Status.CLEAN


def _write_all(write: Any, pieces: Iterable[str]) -> None:
    for piece in pieces:
        write(piece)


class _Sources:
    """Reads the sources of findings again; the last one is kept, as findings are sorted."""

    def __init__(self, stdin: bytes | None, stdin_name: str) -> None:
        self._stdin = stdin
        self._stdin_name = stdin_name
        self._path: str | None = None
        self._source: Source | None = None

    def __call__(self, path: str) -> Source | None:
        if path != self._path:
            self._path, self._source = path, self._read(path)
        return self._source

    def _read(self, path: str) -> Source | None:
        from memlint.source.read import SourceError, decode_source, read_source

        try:
            if self._stdin is not None:
                return decode_source(self._stdin, self._stdin_name)
            return read_source(path)
        except (OSError, SourceError):
            # The file was readable when it was checked and has changed since: its findings
            # are shown without an excerpt.
            return None
