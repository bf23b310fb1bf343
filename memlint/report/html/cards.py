"""A finding as the page shows it: its place, its source, its numbers, what to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from memlint.findings import Applicability, Finding, Place
from memlint.report.evidence_text import verdict_of
from memlint.report.html.excerpts import Row, excerpt, one_line
from memlint.report.html.quantities import shown_bytes, shown_ms, shown_ratio, shown_share
from memlint.report.html.ratio_plot import Ratios, ratio_plot
from memlint.report.html.recorded import Layout, layout_of
from memlint.report.view import shown_place
from memlint.source.model import Source

VERDICTS: Mapping[str, str] = {
    "confirmed": "the alternative takes less time here",
    "observed": "seen, not measured",
    "inconclusive": "it ran, where it settles nothing",
    "refuted": "it costs nothing worth mentioning here, leave it",
    "not_reached": "its lines did not run",
}
"""What each verdict means, in the order in which they are offered."""
_MEASURED = (
    "as_is_ms", "alternative_ms", "conversion_ms", "uses", "ratio", "ratio_low", "ratio_high",
    "net_ratio",
)  # fmt: skip
_MOST_PLACES = 12
_MOST_LAYOUTS = 6
_FIX_KINDS = {Applicability.SAFE: "safe", Applicability.UNSAFE: "unsafe"}


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its name, and what it is."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class OtherPlace:
    """A place that a finding depends on."""

    where: str
    message: str
    source: str | None


@dataclass(frozen=True, slots=True)
class Card:
    """All that is shown of a finding.  ``traced_line`` stands for ``rows`` where the file is not
    what it was."""

    finding: Finding
    verdict: str
    verdict_text: str
    meaning: str
    where: str
    cost: str
    seen: str
    link: str | None
    rows: tuple[Row, ...]
    traced_line: str | None
    places: tuple[OtherPlace, ...]
    places_left_out: int
    amounts: tuple[Amount, ...]
    plot: Markup | None
    layouts: tuple[Layout, ...]
    layouts_left_out: int
    facts: tuple[Amount, ...]
    fix: str | None


@dataclass(frozen=True, slots=True)
class Sources:
    """``now`` reads a file as it is now, ``None`` where it is not what was traced; ``traced`` are
    lines as they were, by path and number."""

    now: Callable[[str], Source | None]
    traced: Mapping[tuple[str, int], str]

    def lines(self, path: str, cell: int | None) -> Sequence[str]:
        """The lines of a file, or of a cell of it; none where it cannot be shown."""
        source = self.now(path)
        if source is None:
            return ()
        for known in source.cells:
            if known.number == cell:
                return source.lines[known.first_line - 1 : known.first_line - 1 + known.lines]
        return source.lines

    def line(self, path: str, cell: int | None, number: int) -> str | None:
        """A line without the blanks around it; ``None`` where it is not known."""
        traced = self.traced.get((path, number)) if cell is None else None
        return traced or one_line(self.lines(path, cell), number)


def card(finding: Finding, sources: Sources) -> Card:
    """A finding of a trace as it is shown."""
    evidence: Mapping[str, Any] = finding.evidence or {}
    verdict = str(evidence.get("verdict", "observed"))
    rows = excerpt(sources.lines(finding.path, finding.cell), finding.location)
    related, layouts = finding.related, evidence.get("layouts") or ()
    return Card(
        finding,
        verdict,
        verdict_of(evidence),
        VERDICTS.get(verdict, ""),
        shown_place(finding.path, finding.cell, finding.location),
        _cost(evidence),
        _seen(evidence),
        finding.url if finding.url.startswith(("https://", "http://")) else None,
        rows,
        None if rows else sources.line(finding.path, finding.cell, finding.location.line),
        tuple(_other(one, sources) for one in related[:_MOST_PLACES]),
        max(len(related) - _MOST_PLACES, 0),
        tuple(_amounts(evidence)),
        _plot(evidence),
        tuple(layout_of(one) for one in layouts[:_MOST_LAYOUTS]),
        max(len(layouts) - _MOST_LAYOUTS, 0),
        tuple(_facts(finding, evidence)),
        _fix(finding),
    )


def _other(place: Place, sources: Sources) -> OtherPlace:
    return OtherPlace(
        shown_place(place.path, place.cell, place.location),
        place.message,
        sources.line(place.path, place.cell, place.location.line),
    )


def _fix(finding: Finding) -> str | None:
    if finding.fix is None:
        return None
    kind = _FIX_KINDS.get(finding.fix.applicability)
    return finding.fix.message + (f" ({kind})" if kind else "")


def _seen(evidence: Mapping[str, Any]) -> str:
    """How often it was seen, and how much it moved in a step."""
    count, steps, nbytes = evidence.get("count"), evidence.get("steps") or 1, evidence.get("bytes")
    if count is None:
        return ""
    times = count / steps
    text = f"{times:.4g} time{'' if times == 1 else 's'} a step"
    return f"{text}, {shown_bytes(nbytes / steps)}" if nbytes else text


def _cost(evidence: Mapping[str, Any]) -> str:
    """The number that a reader looks for first, or the word."""
    verdict, saved = evidence.get("verdict"), evidence.get("ms_per_step")
    if verdict == "refuted":
        return "leave it"
    if verdict == "not_reached":
        return ""
    if saved is not None and verdict in ("confirmed", "inconclusive"):
        sure = "" if verdict == "confirmed" else "perhaps "
        return f"{sure}{shown_ms(saved)} a step"
    nbytes = evidence.get("bytes")
    if not nbytes:
        return _seen(evidence)
    return f"{shown_bytes(nbytes / (evidence.get('steps') or 1))} a step"


def _amounts(evidence: Mapping[str, Any]) -> list[Amount]:
    """What was measured; nothing where nothing was."""
    if any(evidence.get(name) is None for name in _MEASURED):
        return []
    uses, low, high = evidence["uses"], evidence["ratio_low"], evidence["ratio_high"]
    found = [
        Amount("As it is", shown_ms(evidence["as_is_ms"]), "one run"),
        Amount("Alternative", shown_ms(evidence["alternative_ms"]), "one run, without conversion"),
        Amount(
            "Conversion",
            shown_ms(evidence["conversion_ms"]),
            f"once for {uses:.4g} use{'' if uses == 1 else 's'}",
        ),
        Amount(
            "Ratio",
            shown_ratio(evidence["ratio"]),
            f"95 % interval {low:.2f} to {high:.2f}",
        ),
        Amount("Net ratio", shown_ratio(evidence["net_ratio"]), "conversion charged"),
    ]
    saved, share = evidence.get("ms_per_step"), evidence.get("share_of_step")
    if saved is not None:
        note = "of a step" if share is None else f"{shown_share(share)} of a step"
        found.append(Amount("Saved" if saved >= 0 else "Lost", shown_ms(abs(saved)), note))
    return found


def _plot(evidence: Mapping[str, Any]) -> Markup | None:
    names = ("ratio", "ratio_low", "ratio_high", "net_ratio", "aa_low", "aa_high")
    values = [evidence.get(name) for name in names]
    if any(one is None or not one > 0 for one in values):
        return None
    return ratio_plot(Ratios(*(float(one) for one in values if one is not None)))


def _facts(finding: Finding, evidence: Mapping[str, Any]) -> list[Amount]:
    facts = []
    if evidence.get("function"):
        facts.append(Amount("In", str(evidence["function"])))
    if evidence.get("born_at"):
        facts.append(Amount("Layout born at", str(evidence["born_at"])))
    if evidence.get("numerics") == "same":
        facts.append(Amount("Results", "the same either way"))
    if evidence.get("numerics") == "different":
        facts.append(Amount("Results", "differ between the two: a matter of correctness"))
    if evidence.get("note"):
        facts.append(Amount("Note", str(evidence["note"])))
    ranks = evidence.get("ranks")
    if ranks:
        facts.append(Amount("Ranks", _ranks(ranks)))
    facts.append(Amount("Confidence", finding.confidence.value))
    return facts


def _ranks(ranks: Mapping[str, Any]) -> str:
    text = f"seen on {len(ranks['seen'])} of {len(ranks['all'])}"
    others = ranks["other_layouts"]
    return f"{text}; in another layout on {', '.join(map(str, others))}" if others else text
