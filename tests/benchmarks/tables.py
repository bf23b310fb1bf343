"""Measured figures as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.benchmarks.limits import Limit
from tests.benchmarks.sections import Facts, Section
from tests.benchmarks.timing import Timing


def page(
    sections: Sequence[Section],
    limits: Sequence[Limit],
    facts: Sequence[Facts],
    machine: Mapping[str, object],
) -> str:
    """All tables, in the order in which they were measured."""
    parts = [", ".join(f"{key} {value}" for key, value in machine.items())]
    parts += ["\n".join(_section(section)) for section in sections]
    parts += ["\n".join(_limits(limits)), "\n".join(_facts(facts))]
    return "\n\n".join(parts)


def _section(section: Section) -> Iterator[str]:
    yield f"### {section.title[0].upper()}{section.title[1:]}\n"
    yield "| | median | fastest to slowest | CPU time | runs | MB/s | ratio | largest process |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    yield from (_row(section, timing) for timing in _ordered(section))
    if section.missing:
        yield f"\nNot installed, not measured: {', '.join(section.missing)}."


def _ordered(section: Section) -> list[Timing]:
    """Growing files by their size, all else by the time that it took."""
    if section.reference is None and section.megabytes:
        return sorted(section.timings.values(), key=lambda timing: section.megabytes[timing.name])
    return sorted(section.timings.values(), key=lambda timing: timing.median)


def _row(section: Section, timing: Timing) -> str:
    megabytes = section.megabytes.get(timing.name)
    cells = [
        timing.name,
        f"{_figures(timing.median)} s",
        f"{_figures(timing.fastest)} to {_figures(timing.slowest)}",
        f"{_figures(timing.cpu)} s",
        str(len(timing.runs)),
        _figures(megabytes / timing.median) if megabytes else "",
        _ratio(section, timing),
        f"{timing.peak / 1e6:.0f} MB",
    ]
    return f"| {' | '.join(cells)} |"


def _ratio(section: Section, timing: Timing) -> str:
    if section.reference is None or timing.name not in section.megabytes:
        return ""
    return f"{_figures(timing.median / section.timings[section.reference].median)}x"


def _limits(limits: Sequence[Limit]) -> Iterator[str]:
    yield "### Limits\n"
    yield "| | measured | bound | |"
    yield "|---|---:|---:|---|"
    for limit in limits:
        sign = ">=" if limit.at_least else "<="
        measured = f"{_figures(limit.measured)} {limit.unit}"
        bound = f"{sign} {_figures(limit.bound)} {limit.unit}"
        yield f"| {limit.promise} | {measured} | {bound} | {'met' if limit.met else 'NOT met'} |"


def _facts(facts: Sequence[Facts]) -> Iterator[str]:
    yield "### What memlint read\n"
    yield "| | files | findings, all rules | errors |"
    yield "|---|---:|---:|---:|"
    for fact in facts:
        yield f"| {fact.target} | {fact.files} | {fact.findings} | {fact.errors} |"


def _figures(value: float) -> str:
    """Two or three figures: what a repeated run would show again."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
