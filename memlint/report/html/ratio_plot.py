"""A measured ratio with its interval, beside the spread of no difference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from memlint.report.html.svg import element, percent, picture

_HEIGHT = 58
_MARGIN = 0.04
_APART = 0.14
_NEAR_ONE = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)


@dataclass(frozen=True, slots=True)
class Ratios:
    """As-is over alternative, all above 0: the median with its interval, with the conversion
    charged, and the as-is against itself."""

    ratio: float
    low: float
    high: float
    net: float
    same_low: float
    same_high: float


class _Scale:
    """Logarithmic, with 1 in it and room at both ends."""

    def __init__(self, ratios: Ratios) -> None:
        values = (ratios.low, ratios.high, ratios.net, ratios.same_low, ratios.same_high, 0.8, 1.25)
        self._low, self._high = math.log2(min(values)), math.log2(max(values))

    def __call__(self, ratio: float) -> float:
        part = (math.log2(ratio) - self._low) / (self._high - self._low)
        return _MARGIN + part * (1 - 2 * _MARGIN)

    def labels(self) -> list[float]:
        """1 and other ratios within the scale, far enough from each other to be told apart."""
        powers = range(math.ceil(self._low), math.floor(self._high) + 1)
        every = {*_NEAR_ONE, *(2.0**power for power in powers)}
        kept: list[float] = []
        for one in sorted(every, key=lambda ratio: abs(math.log2(ratio))):
            place = self(one)
            if _MARGIN <= place <= 1 - _MARGIN and all(
                abs(place - self(other)) >= _APART for other in kept
            ):
                kept.append(one)
        return sorted(kept)


def ratio_plot(ratios: Ratios) -> Markup:
    """The plot; what it says is in its description too."""
    at = _Scale(ratios)

    def x(ratio: float) -> str:
        return percent(at(ratio))

    def bar(low: float, high: float, y: float, height: float, kind: str) -> Markup:
        width = percent(at(high) - at(low))
        return element("rect", x=x(low), width=width, y=y, height=height, class_=kind)

    def tick(ratio: float) -> Markup:
        kind = "one" if ratio == 1 else "grid"
        label = f"{ratio:g}\N{MULTIPLICATION SIGN}"
        return element(
            "g",
            element("line", x1=x(ratio), x2=x(ratio), y1=4, y2=40, class_=kind),
            element("text", label, x=x(ratio), y=54, text_anchor="middle"),
        )

    return picture(
        f"{ratios.ratio:.2f} times as long as the alternative",
        f"95 % interval {ratios.low:.2f} to {ratios.high:.2f}; with the conversion charged "
        f"{ratios.net:.2f}; measured against itself {ratios.same_low:.2f} to "
        f"{ratios.same_high:.2f}.",
        bar(ratios.same_low, ratios.same_high, 4, 36, "same"),
        *(tick(one) for one in at.labels()),
        bar(ratios.low, ratios.high, 15, 4, "interval"),
        element("circle", cx=x(ratios.ratio), cy=17, r=5, class_="ratio"),
        element("circle", cx=x(ratios.net), cy=31, r=4.5, class_="net"),
        height=_HEIGHT,
        class_="ratio-plot",
    )
