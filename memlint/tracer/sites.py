"""Where operations ran, and how often: what the evidence file keeps of every place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from memlint.tracer.records import Asked, Operation, Site

MOST_SITES = 5_000


@dataclass(frozen=True, slots=True, order=True)
class SiteCount:
    """An operation at a line, and how often it was noted there.

    ``function`` is spelled as Python's ``co_qualname`` (3.10 knows the bare name only); ``source``
    is the line's text, ``None`` where the file cannot be read.
    """

    path: str
    function: str
    line: int
    operation: str
    count: int
    source: str | None = field(default=None, compare=False)


def site_counts(
    operations: Iterable[Operation],
    asked: Iterable[Asked],
    shown: Callable[[str], str],
    line: Callable[[str, int], str | None],
) -> tuple[list[SiteCount], int]:
    """The places by path and line, and how many were left out beyond :data:`MOST_SITES`; the
    most frequent ones are kept.  ``shown`` spells a path as findings do, ``line`` gives the text
    of a line."""
    counts: Counter[tuple[Site, str]] = Counter()
    for one in operations:
        counts[_line_of(one.site), one.name] += one.count
    for request in asked:
        counts[_line_of(request.site), request.name] += request.count
    # What came from no file (a prompt, a thread of autograd's own) has no place to be told.
    placed = [one for one in counts.most_common() if not one[0][0].path.startswith("<")]
    kept = [
        SiteCount(
            shown(site.path), site.function, site.line, name, count, line(site.path, site.line)
        )
        for (site, name), count in placed[:MOST_SITES]
    ]
    return sorted(kept), max(len(placed) - MOST_SITES, 0)


def _line_of(site: Site) -> Site:
    return Site(site.path, site.function, site.line)
