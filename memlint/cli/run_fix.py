"""What ``memlint check`` does with ``--fix``, ``--fix-only`` or ``--diff``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import click

from memlint.cli.run_check import CheckRun
from memlint.cli.status import Failed, Status, silence
from memlint.cli.terminal import wants_color
from memlint.findings import FileError, Finding, Report
from memlint.linter.fixes import FixedFile, Fixing, Refused, fix_findings, is_applicable
from memlint.linter.replace_file import FileChangedError, replace_content
from memlint.report.diff import for_terminal, unified_diff
from memlint.report.formats import FOR_PEOPLE
from memlint.report.view import printable, shown_place
from memlint.source.discover import os_error_text


class FixRun:
    """One run: findings, their fixes, and what remains."""

    def __init__(
        self, paths: Sequence[str], overrides: Mapping[str, object], options: Mapping[str, Any]
    ) -> None:
        self._paths, self._overrides, self._options = paths, overrides, options
        # The program itself takes standard output, so that editors can read it from there.
        self._filters = "-" in paths and not options["diff"]
        self._stream = sys.stderr if self._filters else sys.stdout
        self._before = CheckRun(paths, overrides, options, stream=self._stream)

    def run(self) -> int:
        """Do what was asked for and return the exit status."""
        if self._options["show_settings"] or self._options["show_files"]:
            return self._before.run()
        report = self._before.lint()
        fixing = fix_findings(
            report.findings,
            self._before.settings_for,
            unsafe=self._options["unsafe_fixes"],
            jobs=self._options["jobs"],
            stdin=self._before.stdin,
            stdin_filename=self._options["stdin_filename"],
        )
        if self._options["diff"]:
            return self._show(report, fixing)
        if self._filters:
            self._hand_on(fixing)
        else:
            fixing = _stored(fixing)
        return self._conclude(report, fixing)

    def _show(self, report: Report, fixing: Fixing) -> int:
        errors = _joined(report.errors, fixing.errors)
        try:
            self._write_diff(fixing.files)
        except BrokenPipeError:
            silence(sys.stdout)
        self._before.complain(errors)
        self._describe(fixing, "Would fix", sys.stderr)
        if fixing.files and not self._options["exit_zero"]:
            return Status.FINDINGS
        return Status.ERROR if errors else Status.CLEAN

    def _write_diff(self, files: Iterable[FixedFile]) -> None:
        lines = (line for f in files for line in unified_diff(f.path, f.before, f.after))
        target: Path | None = self._options["output_file"]
        if target is not None:
            try:
                with target.open("wb") as stream:
                    stream.writelines(lines)
            except OSError as error:
                raise Failed(f"{target}: {error.strerror}") from error
            return
        color = wants_color(self._options["color"], sys.stdout)
        if color or sys.stdout.isatty():
            sys.stdout.writelines(for_terminal(line, color) for line in lines)
        else:
            _write_bytes(b"".join(lines))

    def _hand_on(self, fixing: Fixing) -> None:
        program = self._before.stdin or b""
        _write_bytes(fixing.files[0].after if fixing.files else program)

    def _conclude(self, report: Report, fixing: Fixing) -> int:
        check = self._before
        if fixing.files and not self._options["fix_only"]:
            options = {**self._options, "verbose": False}
            program = fixing.files[0].after if self._filters else None
            check = CheckRun(
                self._paths, self._overrides, options, stdin=program, stream=self._stream
            )
            report = check.lint()
        report = replace(report, errors=_joined(report.errors, fixing.errors))
        if self._options["fix_only"]:
            check.complain(report.errors)
            status: int = Status.ERROR if report.errors else Status.CLEAN
        else:
            status = check.conclude(report)
        for_people = self._options["output_format"] in FOR_PEOPLE or self._options["fix_only"]
        self._describe(fixing, "Fixed", self._stream if for_people else sys.stderr, report)
        return status

    def _describe(
        self, fixing: Fixing, verb: str, stream: IO[str], remaining: Report | None = None
    ) -> None:
        quiet = self._options["quiet"]
        if self._options["show_fixes"]:
            for finding in (finding for file in fixing.files for finding in file.applied):
                assert finding.fix is not None
                click.echo(f"{_title(finding)}: {printable(finding.fix.message)}", file=stream)
        if quiet:
            return
        for refused in fixing.refused:
            click.echo(_refusal(refused), err=True)
        if fixing.files:
            in_files = _count(len(fixing.files), "file")
            text = f"{verb} {_count(fixing.applied, 'finding')} in {in_files}."
            click.echo(text, file=stream)
        if remaining is not None and not self._options["unsafe_fixes"]:
            self._hint(remaining, stream)

    def _hint(self, remaining: Report, stream: IO[str]) -> None:
        more = sum(
            is_applicable(finding, unsafe=True) and not is_applicable(finding, unsafe=False)
            for finding in remaining.findings
        )
        if more and not self._options["fix_only"]:
            verb = "has" if more == 1 else "have"
            text = f"{_count(more, 'finding')} {verb} a fix that --unsafe-fixes would apply."
            click.echo(text, file=stream)


def _stored(fixing: Fixing) -> Fixing:
    """Write the files; what is left out of the answer's files could not be written."""
    written: dict[str, bytes] = {}
    files: list[FixedFile] = []
    errors: list[FileError] = []
    for file in fixing.files:
        real = os.path.realpath(file.path)
        if written.get(real) == file.after:
            continue
        try:
            replace_content(file.path, file.before, file.after)
        except OSError as error:
            errors.append(FileError(file.path, f"cannot be fixed: {os_error_text(error)}"))
        except FileChangedError:
            message = "was changed by something else while it was being fixed: left as it is"
            errors.append(FileError(file.path, message))
        else:
            written[real] = file.after
            files.append(file)
    return replace(fixing, files=tuple(files), errors=(*fixing.errors, *errors))


def _joined(one: Iterable[FileError], other: Iterable[FileError]) -> tuple[FileError, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _write_bytes(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _title(finding: Finding) -> str:
    place = shown_place(finding.path, finding.cell, finding.location)
    return f"{place}: {finding.code} {finding.name}"


def _refusal(refused: Refused) -> str:
    return f"note: {_title(refused.finding)}: fix not applied: {printable(refused.reason)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
