"""A session as JSON for programs; ``memlint/schemas/bench.schema.json`` describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from enum import Enum
from typing import Any

from memlint.bench.claims import CLAIMS
from memlint.bench.results import Outcome, Session
from memlint.bench.standings import standings

_VERSION = 1


def json_report(session: Session) -> str:
    """One document."""
    document = {
        "version": _VERSION,
        "date": session.date,
        "machine": {**asdict(session.machine), "key": session.machine.key},
        "plan": asdict(session.plan),
        "benches": [_outcome(one) for one in session.outcomes],
        "claims": [
            {
                "claim": answer.claim,
                "text": CLAIMS[answer.claim].text,
                "standing": answer.standing.value,
                "measured": answer.measured,
                "bench": CLAIMS[answer.claim].bench,
                "note": CLAIMS[answer.claim].note,
            }
            for answer in standings(session.outcomes)
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False)


def _outcome(one: Outcome) -> Mapping[str, Any]:
    written = _plain(asdict(one))
    del written["answers"]
    return {key: written[key] or None if key in ("code", "skipped", "failed") else written[key]
            for key in written}  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value
