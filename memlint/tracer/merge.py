"""The evidence of the ranks of one distributed run, joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from memlint.findings import Finding
from memlint.tracer.evidence import weight
from memlint.tracer.evidence_file import EvidenceFile
from memlint.tracer.journeys import MOST_JOURNEYS
from memlint.tracer.sites import MOST_SITES, SiteCount

Rank = int | str
_COMPARED = ("count", "bytes", "as_is_ms", "alternative_ms", "conversion_ms", "ratio", "net_ratio",
             "ms_per_step", "share_of_step")  # fmt: skip


def merge(ranks: Mapping[Rank, EvidenceFile]) -> EvidenceFile:
    """One evidence of all ranks, by their numbers or names.

    Each finding is there once, with the evidence of the rank that it costs most on and, in
    ``ranks``, the maxima and medians over those that have it.  The steps that the ranks profiled
    are not joined.  Raises ``ValueError`` if there is no rank.
    """
    if not ranks:
        raise ValueError("no evidence to merge")
    found: dict[tuple[str, str], dict[Rank, Finding]] = {}
    for rank, evidence in ranks.items():
        for finding in evidence.findings:
            key = (finding.code, finding.fingerprint)
            found.setdefault(key, {})[rank] = finding
    findings = [_joined(by_rank, list(ranks)) for by_rank in found.values()]
    findings.sort(key=lambda one: weight(one.evidence or {}), reverse=True)
    sites, left_out = _sites(ranks.values())
    return EvidenceFile(
        _meta(ranks, left_out), tuple(findings), sites, None, _journeys(ranks.values())
    )


def _joined(by_rank: Mapping[Rank, Finding], every: Sequence[Rank]) -> Finding:
    evidence = {rank: one.evidence or {} for rank, one in by_rank.items()}
    worst = max(by_rank.values(), key=lambda one: weight(one.evidence or {}))
    values = {
        name: [one[name] for one in evidence.values() if one.get(name) is not None]
        for name in _COMPARED
    }
    told = {
        "all": list(every),
        "seen": list(by_rank),
        "max": {name: max(found) for name, found in values.items() if found},
        "median": {name: median(found) for name, found in values.items() if found},
        "other_layouts": _other_layouts(evidence),
    }
    return replace(worst, evidence={**(worst.evidence or {}), "ranks": told})


def _other_layouts(evidence: Mapping[Rank, Mapping[str, Any]]) -> list[Rank]:
    """The ranks whose operands are laid out otherwise than on most; of two layouts that are as
    frequent, the one of the first rank counts as the usual one."""
    layouts = {rank: _layout(one) for rank, one in evidence.items()}
    [(usual, _)] = Counter(layouts.values()).most_common(1)
    return [rank for rank, layout in layouts.items() if layout != usual]


def _layout(evidence: Mapping[str, Any]) -> tuple[object, ...]:
    """Ranks compute on devices of different numbers: of the device, its kind counts."""
    return tuple(
        (
            tuple(one["shape"]),
            tuple(one["strides"]),
            one["dtype"],
            str(one["device"]).partition(":")[0],
        )
        for one in evidence.get("layouts", ())
    )


def _sites(every: Iterable[EvidenceFile]) -> tuple[tuple[SiteCount, ...], int]:
    counts: Counter[tuple[str, str, int, str]] = Counter()
    sources: dict[tuple[str, str, int, str], str | None] = {}
    for evidence in every:
        for one in evidence.sites:
            place = (one.path, one.function, one.line, one.operation)
            counts[place] += one.count
            sources[place] = sources.get(place) or one.source
    kept = [
        SiteCount(*place, count, sources[place]) for place, count in counts.most_common(MOST_SITES)
    ]
    return tuple(sorted(kept)), max(len(counts) - MOST_SITES, 0)


def _journeys(every: Iterable[EvidenceFile]) -> tuple[Mapping[str, Any], ...]:
    """Each layout once, as it was on the rank that used it most."""
    found: dict[tuple[object, ...], Mapping[str, Any]] = {}
    for evidence in every:
        for one in evidence.journeys:
            born = one["born"]
            key = (born["path"], born["line"], *_layout({"layouts": [one["layout"]]}))
            if key not in found or _uses(one) > _uses(found[key]):
                found[key] = one
    return tuple(sorted(found.values(), key=_uses, reverse=True)[:MOST_JOURNEYS])


def _uses(journey: Mapping[str, Any]) -> int:
    return sum(one["count"] for one in (*journey["uses"], *journey["converted"]))


def _meta(ranks: Mapping[Rank, EvidenceFile], left_out: int) -> dict[str, Any]:
    metas = [one.meta for one in ranks.values()]
    spots = dict.fromkeys(spot for meta in metas for spot in meta.get("blind_spots", ()))
    if any(one.profile for one in ranks.values()):
        spots["the steps that the ranks profiled: they are in the files of the ranks"] = None
    hosts = dict.fromkeys(str(meta.get("host", "")) for meta in metas)
    costs = [meta["overhead"] for meta in metas if meta.get("overhead")]
    dearest = {"overhead": max(costs, key=lambda cost: cost["seconds"])} if costs else {}
    return {
        **metas[0],
        **dearest,
        "host": ", ".join(hosts),
        "rank": None,
        "ranks": list(ranks),
        "steps": max(int(meta.get("steps", 0)) for meta in metas),
        "operations": sum(int(meta.get("operations", 0)) for meta in metas),
        "complete": not left_out and all(bool(meta.get("complete")) for meta in metas),
        "blind_spots": list(spots),
    }
