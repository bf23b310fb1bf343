"""A session as JSON for programs; ``memlint/schemas/bench.schema.json`` describes it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from enum import Enum
from typing import Any

from memlint.bench.claims import CLAIMS
from memlint.bench.results import Outcome, Plot, Row, Session
from memlint.bench.standings import standings

_VERSION = 1


def json_report(session: Session) -> str:
    """One document, in ASCII so that no terminal or pipe can spoil it."""
    document = {
        "version": _VERSION,
        "date": session.date,
        "machine": {**asdict(session.machine), "key": session.machine.key},
        "plan": asdict(session.plan),
        "benches": [_outcome(one) for one in session.outcomes],
        "claims": list(_claims(session)),
    }
    return json.dumps(_finite(document), indent=2, allow_nan=False)


def _outcome(one: Outcome) -> dict[str, Any]:
    return {
        "name": one.name,
        "code": one.code or None,
        "title": one.title,
        "seconds": one.seconds,
        "skipped": one.skipped or None,
        "failed": one.failed or None,
        "notes": list(one.notes),
        "rows": [row_object(row) for row in one.rows],
        "plots": [_plot(plot) for plot in one.plots],
    }


def row_object(row: Row) -> dict[str, Any]:
    """A comparison as plain data; what says nothing is null."""
    written = {
        key: value.value if isinstance(value, Enum) else value for key, value in asdict(row).items()
    }
    for key in ("variant", "dtype", "nbytes", "size"):
        written[key] = written[key] or None
    return written


def _plot(plot: Plot) -> dict[str, Any]:
    return {
        "title": plot.title,
        "x": {"label": plot.x_label, "unit": plot.x_unit, "log": plot.log_x},
        "y": {"label": plot.y_label, "unit": plot.y_unit, "log": plot.log_y},
        "marks": dict(plot.marks),
        "curves": [
            {"label": curve.label, "points": [asdict(point) for point in curve.points]}
            for curve in plot.curves
        ],
    }


def _claims(session: Session) -> Iterator[dict[str, Any]]:
    for answer in standings(session.outcomes):
        claim = CLAIMS[answer.claim]
        yield {
            "claim": answer.claim,
            "text": claim.text,
            "standing": answer.standing.value,
            "measured": answer.measured,
            "note": claim.note or None,
            "bench": claim.bench or None,
        }


def _finite(value: Any) -> Any:
    """JSON knows no infinity: what is not finite is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, (list, tuple)) else value
