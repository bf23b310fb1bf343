"""Ratios as bars on one logarithmic scale, so that they can be compared by eye."""

from __future__ import annotations

import math
from collections.abc import Iterable

from markupsafe import Markup

from memlint.bench.quantities import interval, ratio
from memlint.bench.results import Row, Verdict
from memlint.report.html.svg import element, percent, picture

_HEIGHT = 20
_LEAST, _MOST = 1 / 64, 1024.0
_LABELS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
_APART = 0.2
_KINDS = {
    Verdict.SLOWER: "worse", Verdict.MORE: "worse",
    Verdict.FASTER: "better", Verdict.LESS: "better",
    Verdict.NO_DIFFERENCE: "even",
}  # fmt: skip


class RatioScale:
    """The scale that all rows of a page share; what lies beyond its bounds is drawn at them."""

    def __init__(self, rows: Iterable[Row]) -> None:
        ends = [one for row in rows for one in (row.low, row.high)]
        low = max(_LEAST, min([0.8, *ends]))
        high = min(_MOST, max([2.0, *ends]))
        self._low, self._high = math.log2(low) - 0.1, math.log2(high) + 0.1

    def _at(self, value: float) -> float:
        bounded = min(max(value, _LEAST), _MOST)
        part = (math.log2(bounded) - self._low) / (self._high - self._low)
        return min(max(part, 0.0), 1.0)

    def labels(self) -> Markup:
        """The scale itself, for the head of the column."""
        kept: list[float] = []
        for one in sorted(_LABELS, key=lambda value: abs(math.log2(value))):
            place = self._at(one)
            if 0.0 < place < 1.0 and all(abs(place - self._at(k)) >= _APART for k in kept):
                kept.append(one)
        return element(
            "svg",
            *(
                element(
                    "text", f"{_label(one)}\N{MULTIPLICATION SIGN}", x=percent(self._at(one)), y=11,
                    text_anchor="end" if self._at(one) > 0.92 else
                    "start" if self._at(one) < 0.08 else "middle",
                )
                for one in sorted(kept)
            ),
            width="100%", height=14, aria_hidden="true", class_="ratio-scale",
        )  # fmt: skip

    def bar(self, row: Row) -> Markup:
        """A bar from 1 to the ratio, its interval, and behind it what two equal forms give."""
        one, at, low, high = (self._at(value) for value in (1.0, row.ratio, row.low, row.high))
        same, to = self._at(row.control_low), self._at(row.control_high)
        middle = _HEIGHT / 2
        return picture(
            f"{ratio(row.ratio)} times",
            f"interval {interval(row.low, row.high)}; against itself "
            f"{interval(row.control_low, row.control_high)}",
            element("rect", x=percent(same), width=percent(to - same), y=0, height=_HEIGHT,
                    class_="same"),
            element("rect", x=percent(min(one, at)), width=percent(abs(at - one)), y=5, height=10,
                    class_=f"length {_KINDS[row.verdict]}"),
            element("line", x1=percent(one), x2=percent(one), y1=0, y2=_HEIGHT, class_="one"),
            element("line", x1=percent(low), x2=percent(high), y1=middle, y2=middle,
                    class_="whisker"),
            *(
                element("line", x1=percent(end), x2=percent(end), y1=middle - 4, y2=middle + 4,
                        class_="whisker")
                for end in (low, high)
            ),
            height=_HEIGHT,
            class_="ratio-bar",
        )  # fmt: skip


def _label(value: float) -> str:
    return f"{value:g}" if value >= 1 else f"1/{1 / value:g}"
