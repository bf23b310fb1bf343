"""Lines as JSON for programs; ``memlint/schemas/doctor.schema.json`` describes it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from memlint import __version__
from memlint.doctor.lines import Line, State

_VERSION = 1


def json_report(lines: Sequence[Line], platform: str) -> str:
    """One document; ``platform`` as ``sys.platform`` spells it."""
    document = {
        "version": _VERSION,
        "memlint": __version__,
        "platform": platform,
        "counts": {s.value: sum(line.state is s for line in lines) for s in State},
        "lines": [
            {
                "topic": line.topic,
                "state": line.state.value,
                "why": line.why,
                "command": line.command,
            }
            for line in lines
        ],
    }
    return json.dumps(document, indent=2)
