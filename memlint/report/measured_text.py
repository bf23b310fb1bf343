"""What the bench of a rule has measured on this machine, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memlint.bench.quantities import interval, ratio


def measured_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each row: ``on this machine on 2026-11-30: 9.27 times slower (7.73-13.0) at
    float64, 1024 x 1024``; where rows compare different forms each names them, and the day is told
    where it changes."""
    several = len({(row["as_is_form"], row["alternative_form"]) for row in rows}) > 1
    lines, day = [], ""
    for row in rows:
        text = _named(row) if several else _placed(row)
        if day != (day := row["date"][:10]):
            text = f"on this machine on {day}: {text}"
        lines.append(text)
    return "\n".join(lines)


def difference(row: Mapping[str, Any]) -> str:
    """How the form that a rule speaks of compares to the alternative, and at which operands."""
    text = f"{_difference(row)} at {row['what']}"
    if row["net_ratio"] is None:
        return text
    return f"{text}, {ratio(row['net_ratio'])} times with the conversion of the alternative"


def _placed(row: Mapping[str, Any]) -> str:
    return difference(row) + ("" if row["device"] == "cpu" else f" on {row['device']}")


def _named(row: Mapping[str, Any]) -> str:
    return f"{_placed(row)} ({row['as_is_form']} against {row['alternative_form']})"


def _beside(row: Mapping[str, Any]) -> str:
    """Why an interval off 1 shows no difference: what two equal forms gave."""
    if row["low"] <= 1.0 <= row["high"]:
        return ""
    return f"; two equal forms {interval(row['control_low'], row['control_high'])}"


def _difference(row: Mapping[str, Any]) -> str:
    low, high = row["low"], row["high"]
    held = interval(low, high)
    match row["verdict"]:
        case "slower":
            text = f"{ratio(row['ratio'])} times slower ({held})"
        case "faster":
            inverse = interval(1 / max(high, 1e-12), 1 / max(low, 1e-12))
            text = f"{ratio(1 / max(row['ratio'], 1e-12))} times faster as it is ({inverse})"
        case "takes more":
            text = f"{ratio(row['ratio'])} times as many bytes ({held})"
        case "takes less":
            text = f"only {ratio(row['ratio'])} times as many bytes as it is ({held})"
        case _:
            text = f"no measurable difference ({held}{_beside(row)})"
    return text
