"""Findings that are known and accepted for now, by fingerprint, so that lines may move."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from memlint.config import ConfigError
from memlint.findings import Finding, Report

_VERSION = 1


def write_baseline(path: Path, report: Report) -> int:
    """Write a report's findings as a baseline; returns how many they are.

    The file is sorted and has a line per finding, so that its changes can be reviewed.
    A file that is no baseline is never overwritten: a configuration that nobody has looked
    at may have named it.
    """
    if os.path.lexists(path):
        read_baseline(path)
    findings = sorted(report.findings, key=lambda f: (f.path, f.code, f.fingerprint))
    entries = [
        {"fingerprint": f.fingerprint, "code": f.code, "path": f.path, "message": f.message}
        for f in findings
    ]
    lines = ",\n".join(f"    {json.dumps(entry)}" for entry in entries)
    body = f"[\n{lines}\n  ]" if entries else "[]"
    text = f'{{\n  "version": {_VERSION},\n  "findings": {body}\n}}\n'
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="ascii")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return len(entries)


def read_baseline(path: Path) -> Counter[str]:
    """How often each fingerprint is in a baseline; raises :class:`ConfigError`."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ConfigError(path, None, "the baseline cannot be read: not a regular file")
    try:
        content = json.loads(path.read_bytes())
        version = content["version"]
        fingerprints = Counter(str(entry["fingerprint"]) for entry in content["findings"])
    except OSError as error:
        text = error.strerror or str(error)
        raise ConfigError(path, None, f"the baseline cannot be read: {text}") from error
    except KeyError as error:
        raise ConfigError(path, None, f"not a baseline of memlint: no {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigError(path, None, f"not a baseline of memlint: {error}") from error
    if version != _VERSION:
        raise ConfigError(path, None, f"baseline of an unknown version: {version!r}")
    return fingerprints


def without_known(findings: Iterable[Finding], left: Counter[str]) -> tuple[list[Finding], int]:
    """The findings that are not in a baseline, and how many are.

    Each of these uses up one of the baseline's entries in ``left``.
    """
    fresh: list[Finding] = []
    count = 0
    for finding in findings:
        if left[finding.fingerprint] > 0:
            left[finding.fingerprint] -= 1
            count += 1
        else:
            fresh.append(finding)
    return fresh, count
