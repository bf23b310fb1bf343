"""What memlint reports in real code, beside the verdict of a reader on each finding.

Every project of the corpus is linted; findings are matched with ``verdicts/<rule>.json``, which
map ``path:line`` to whether the finding is right, and why.  The versions of the projects are
pinned, so lines stay where they are.  Prints a table in Markdown, and every finding that
nobody has read yet.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

VERDICTS = Path(__file__).with_name("verdicts")


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding, as far as it is needed to read it and to find it again."""

    path: str
    line: int
    name: str
    confidence: str
    message: str

    @property
    def key(self) -> str:
        """What the finding is called among the verdicts."""
        return f"{self.path}:{self.line} {self.name}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reader says about a finding."""

    right: bool
    why: str


def read_verdicts(folder: Path) -> dict[str, Verdict]:
    """All verdicts by the key of their finding; there is a file for each rule."""
    verdicts = {}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        for place, entry in document.items():
            verdicts[f"{place} {path.stem}"] = Verdict(entry["right"], entry["why"])
    return verdicts


def lint(wheels: Path, selection: str | None) -> Iterator[Reported]:
    """Every finding in every project, its path relative to the folder of its corpus."""
    for name in ("all", "compiled"):
        yield from _lint(wheels / name, selection)


def _lint(root: Path, selection: str | None) -> Iterator[Reported]:
    if not root.is_dir():
        raise SystemExit(f"{root} is missing: run python -m tests.benchmarks.wheels first")
    memlint = Path(sys.executable).with_name("memlint")
    command = [str(memlint), "check", "--isolated", "--no-cache", "--output-format", "json"]
    command += ["--select", selection] if selection else []
    done = subprocess.run([*command, "."], cwd=root, stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        raise SystemExit(f"memlint ended with status {done.returncode} and no output")
    for finding in json.loads(done.stdout)["findings"]:
        yield Reported(
            path=finding["path"],
            line=finding["location"]["line"],
            name=finding["name"],
            confidence=finding["confidence"],
            message=finding["message"],
        )


def table(findings: Iterable[Reported], verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """Counts by rule, as a table in Markdown."""
    counts: dict[str, Counter[str]] = {}
    for finding in findings:
        verdict = verdicts.get(finding.key)
        state = "unread" if verdict is None else "right" if verdict.right else "wrong"
        counts.setdefault(finding.name, Counter())[state] += 1
    yield "| rule | findings | right | wrong | not read |"
    yield "|---|---:|---:|---:|---:|"
    for name, count in sorted(counts.items()):
        cells = (name, count.total(), count["right"], count["wrong"], count["unread"])
        yield f"| {' | '.join(str(cell) for cell in cells)} |"


def remarks(findings: Sequence[Reported], verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """The wrong findings with the reader's reason, the unread ones, and stale verdicts."""
    for finding in findings:
        verdict = verdicts.get(finding.key)
        if verdict is None:
            yield f"unread: {finding.key} ({finding.confidence}): {finding.message}"
        elif not verdict.right:
            yield f"wrong: {finding.key}: {verdict.why}"
    for key in sorted(verdicts.keys() - {finding.key for finding in findings}):
        yield f"no longer reported: {key}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Lint the projects and print the table and the remarks."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.accuracy", description=__doc__
    )
    add = parser.add_argument
    add("--wheels", type=Path, required=True, metavar="DIR", help="made by tests.benchmarks.wheels")
    add("--select", metavar="RULES", help="instead of the rules that are on by default")
    options = parser.parse_args(arguments)
    verdicts = read_verdicts(VERDICTS)
    findings = list(lint(options.wheels.resolve(), options.select))
    print("\n".join(table(findings, verdicts)))
    print()
    print("\n".join(remarks(findings, verdicts)))


if __name__ == "__main__":
    main()
