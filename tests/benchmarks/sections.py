"""What is timed together: one corpus, one small file, one growing file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks import contenders as c
from tests.benchmarks import samples
from tests.benchmarks.timing import Contender, Timing, interleave
from tests.benchmarks.wheels import Corpus, python_files

CLEAN_FILE = "memlint, small clean file"
FILE_WITH_FINDINGS = "memlint, small file with findings"
GROWTH = (125_000, 250_000, 500_000, 1_000_000, 1_900_000)
SMALLEST_REAL_MODULE = 2_000


class SampleError(Exception):
    """memlint did not do what the benchmark is about, so its time says nothing."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a benchmark run is told."""

    peers: c.Peers
    rounds: int
    slow_rounds: int
    seed: int
    scratch: Path
    say: Callable[[str], None]

    def time(self, those: Sequence[Contender]) -> dict[str, Timing]:
        """Time contenders in the same rounds."""
        return interleave(
            those, rounds=self.rounds, directory=self.scratch, seed=self.seed, say=self.say
        )


@dataclass(frozen=True, slots=True)
class Section:
    """Contenders that were timed in the same rounds.

    ``reference`` is the contender that ratios are taken to, ``megabytes`` how much Python
    each contender read, ``missing`` the peers that are not installed.
    """

    key: str
    title: str
    timings: Mapping[str, Timing]
    reference: str | None = None
    megabytes: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """How much memlint read and reported in one target."""

    target: str
    files: int
    findings: int
    errors: int


def facts_of(name: str, target: Path) -> Facts:
    """What memlint says it did: a run that did nothing must not pass for a fast one."""
    probe = c.memlint(name, target, "--no-cache", "--output-format", "json")
    done = subprocess.run(probe.command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in probe.accepts or not done.stdout:
        raise SampleError(f"memlint ended with status {done.returncode} on {target}")
    document = json.loads(done.stdout)
    files = int(document["summary"]["files"])
    return Facts(name, files, len(document["findings"]), len(document["errors"]))


def corpus_facts(found: Corpus) -> Facts:
    """The facts about a corpus, nearly all files of which must have been read."""
    facts = facts_of(found.name, found.path)
    # The default excludes leave out a few directories (build, dist ...) of real wheels.
    if facts.files < 0.95 * found.files:
        raise SampleError(f"memlint read {facts.files} of {found.files} files in {found.path}")
    return facts


def time_corpus(plan: Plan, found: Corpus, *, slow: bool) -> Section:
    """memlint, its peers and the yardsticks on one corpus."""
    ours = [
        c.memlint_cold(found.path),
        c.memlint_one_job(found.path),
        c.memlint_warm(found.path, plan.scratch / f"memlint-{found.name}"),
    ]
    ruff_cache = plan.scratch / f"ruff-{found.name}"
    peers, missing = c.fast_peers(plan.peers, found.path, ruff_cache)
    if slow and plan.slow_rounds:
        slow_ones, without = c.slow_peers(plan.peers, found.path, plan.slow_rounds)
        peers += slow_ones
        missing += without
    linters = [*ours, *peers]
    return Section(
        key=found.name,
        title=f"{found.files} files, {found.megabytes:.1f} MB of Python",
        timings=plan.time([*linters, *c.start_up(), c.walk(found.path)]),
        reference=c.MEMLINT_COLD,
        megabytes={linter.name: found.megabytes for linter in linters},
        missing=tuple(missing),
    )


def time_small_files(plan: Plan) -> Section:
    """One small file without findings and one with findings."""
    (clean := plan.scratch / "clean.py").write_text(samples.CLEAN, encoding="utf-8")
    (dirty := plan.scratch / "findings.py").write_text(samples.findings(), encoding="utf-8")
    if facts_of("clean", clean).findings or not facts_of("findings", dirty).findings:
        raise SampleError("the small samples are not what their names say")
    those = [
        c.memlint(CLEAN_FILE, clean, "--no-cache"),
        c.memlint(FILE_WITH_FINDINGS, dirty, "--no-cache"),
        *c.start_up(),
    ]
    return Section("file", "one small file", plan.time(those))


def time_growth(plan: Plan, kind: str, write: Callable[[int], str]) -> Section:
    """One file of growing size, up to the largest that is read by default."""
    those: list[Contender] = []
    megabytes: dict[str, float] = {}
    for size in GROWTH:
        path = plan.scratch / f"growing_{kind}_{size}.py"
        path.write_text(write(size), encoding="utf-8")
        actual = path.stat().st_size / 1e6
        name = f"memlint, {actual:.2f} MB"
        # A file that does not parse is done at once and would pass for a fast one.
        if facts_of(name, path).errors:
            raise SampleError(f"the sample of {actual:.2f} MB cannot be read as Python")
        those.append(c.memlint(name, path, "--no-cache", "--jobs", "1"))
        megabytes[name] = actual
    title = f"one growing file ({kind})"
    return Section(f"growth-{kind}", title, plan.time(those), megabytes=megabytes)


def real_modules(root: Path) -> list[Path]:
    """The modules below ``root`` that are long enough to hold code, in order."""
    return sorted(
        Path(path) for path, status in python_files(root) if status.st_size > SMALLEST_REAL_MODULE
    )
