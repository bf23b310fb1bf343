"""What the bench of a rule has measured on this machine, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memlint.bench.quantities import interval, ratio


def measured_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each row: ``on this machine on 2026-11-30: 9.27 times slower (7.73-13.0) at
    float64, 1024 x 1024``; where rows compare different forms each names them."""
    several = len({(row["as_is_form"], row["alternative_form"]) for row in rows}) > 1
    return "\n".join(_line(row, named=several) for row in rows)


def difference(row: Mapping[str, Any]) -> str:
    """How the form that a rule speaks of compares to the alternative, and at which operands."""
    return f"{_difference(row)} at {row['what']}"


def _line(row: Mapping[str, Any], *, named: bool) -> str:
    text = f"on this machine on {row['date'][:10]}: {difference(row)}"
    if row["device"] != "cpu":
        text += f" on {row['device']}"
    return f"{text} ({row['as_is_form']} against {row['alternative_form']})" if named else text


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
            text = f"no measurable difference ({held})"
    if row["net_ratio"] is not None:
        text += f", {ratio(row['net_ratio'])} times with the conversion of the alternative"
    return text
