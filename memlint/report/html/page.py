"""The page itself: one file with all that it shows, which loads nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from jinja2 import Environment

from memlint.findings import Finding
from memlint.report.html.cards import VERDICTS, Amount, Card, Sources, card
from memlint.report.html.journey_plot import MOST_JOURNEYS, JourneyPlot, journey_plot
from memlint.report.html.memory_plot import memory_plot
from memlint.report.html.phase_table import phase_table
from memlint.report.html.prose import prose
from memlint.report.html.quantities import shown_bytes, shown_ms, shown_share
from memlint.report.html.recorded import Recorded
from memlint.report.html.site_table import site_table
from memlint.report.html.template import environment, own_file, policy, shared_script
from memlint.report.html.timeline import phase_class, timeline

MOST_CARDS = 150
_HERE = "memlint.report.html"
_OPEN_CARDS = 3


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that findings can be filtered by, and how many have it."""

    value: str
    label: str
    count: int


def render_page(
    meta: Mapping[str, Any],
    findings: Sequence[Finding],
    known: Recorded,
    sources: Sources,
) -> str:
    """The page of a trace, with its findings in the order in which they are given."""
    cards = [card(one, sources) for one in findings]
    profile = known.profile
    style, script = own_file(_HERE, "page.css"), shared_script() + own_file(_HERE, "page.js")
    journeys = _journeys(known)
    return _environment().get_template("page.html.jinja").render(
        title=_title(meta),
        policy=policy(style, script),
        style=style,
        script=script,
        meta=meta,
        facts=_facts(meta),
        figures=_figures(meta, cards, known),
        cards=cards[:MOST_CARDS],
        brief=cards[MOST_CARDS:],
        open_cards=_OPEN_CARDS,
        verdicts=_verdicts(cards),
        codes=_codes(findings),
        profile=profile,
        phases=None if profile is None else phase_table(profile),
        timeline=None if profile is None else timeline(profile),
        memory=() if profile is None else [memory_plot(m, profile.span) for m in profile.memory],
        journeys=journeys,
        journeys_left_out=len(known.journeys or ()) - len(journeys or ()),
        sites=site_table(known.sites),
        source_of=lambda line: sources.traced.get((line.path, line.line)),
    )  # fmt: skip


def _environment() -> Environment:
    return environment(
        _HERE,
        bytes=shown_bytes,
        ms=shown_ms,
        share=shown_share,
        phase_class=phase_class,
        prose=prose,
    )


def _title(meta: Mapping[str, Any]) -> str:
    return f"Trace of {PurePosixPath(str(meta.get('folder', ''))).name or 'a program'}"


def _figures(meta: Mapping[str, Any], cards: Sequence[Card], known: Recorded) -> list[Amount]:
    """The few numbers that a reader wants before all others."""
    steps, device = meta.get("steps", 0), str(meta.get("device", ""))
    confirmed = sum(one.verdict == "confirmed" for one in cards)
    found = [
        Amount("Findings", f"{len(cards):,}", f"{confirmed} confirmed"),
        Amount("Steps traced", _plain(steps), f"on {device}"),
    ]
    if "operations" in meta:
        found.append(Amount("Operations", _plain(meta["operations"]), "in these steps"))
    if known.profile is not None:
        found.append(Amount("Profiled step", shown_ms(known.profile.step_ms), "profiler included"))
        found += [
            Amount("Peak memory", shown_bytes(one.peak_bytes), f"on {one.device}, in this step")
            for one in known.profile.memory
        ]
    return found


def _facts(meta: Mapping[str, Any]) -> list[Amount]:
    """What is known of the run, by name; what the page has no name for is shown as it is."""
    names = {
        "memlint": "memlint", "torch": "PyTorch", "python": "Python", "device": "Device",
        "host": "Host", "rank": "Rank", "ranks": "Ranks", "folder": "Folder", "steps": "Steps",
        "operations": "Operations", "complete": "All places noted",
    }  # fmt: skip
    facts = [Amount(names[key], _plain(meta[key])) for key in names if meta.get(key) is not None]
    overhead = meta.get("overhead")
    if overhead:
        cost, whole = overhead["us_per_operation"], overhead["seconds"]
        text = f"about {shown_ms(cost / 1e3)} an operation, {shown_ms(whole * 1e3)} in all"
        facts.append(Amount("Cost of tracing", text))
    shown = {*names, "overhead", "blind_spots"}
    facts += [
        Amount(str(key), _plain(value))
        for key, value in meta.items()
        if key not in shown and value is not None
    ]
    return facts


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _verdicts(cards: Sequence[Card]) -> list[Choice]:
    counts = Counter(one.verdict for one in cards)
    known = [*VERDICTS, *sorted(counts.keys() - VERDICTS.keys())]
    return [Choice(one, one.replace("_", " "), counts[one]) for one in known if counts[one]]


def _codes(findings: Sequence[Finding]) -> list[Choice]:
    counts = Counter((one.code, one.name) for one in findings)
    return [Choice(code, f"{code} {name}", count) for (code, name), count in sorted(counts.items())]


def _journeys(known: Recorded) -> list[JourneyPlot] | None:
    """Those with the most uses that are shown; ``None`` where none were recorded."""
    if known.journeys is None:
        return None
    return [journey_plot(one) for one in known.journeys[:MOST_JOURNEYS]]
