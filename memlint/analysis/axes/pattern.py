"""einops patterns: axes split, reordered and merged, in one string."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memlint.analysis.axes.model import OPAQUE, Axis, Layout, Size
from memlint.analysis.axes.reshape import reshape
from memlint.analysis.axes.views import give_rank, permute
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

_TOKEN = late_pattern(r"\(|\)|[^\s()]+")
_Side = list[list[str]]


def rearrange(
    layout: Layout, pattern: str, lengths: Mapping[str, Size]
) -> tuple[Layout, bool | None]:
    """``einops.rearrange``: the result, and whether it is a copy."""
    sides = pattern.split("->")
    if len(sides) != 2 or "..." in pattern or "…" in pattern:
        return OPAQUE, None
    left, right = _parse(sides[0]), _parse(sides[1])
    if left is None or right is None:
        return OPAQUE, None
    layout = give_rank(layout, len(left)) if layout.loose is not None else layout
    if layout.rank != len(left):
        return OPAQUE, None
    result, copies = _rearranged(_with_names(layout), left, right, lengths)
    return _without_names(result), copies


@dataclass(frozen=True, slots=True)
class _Length:
    """The length of an axis that is not known, called by its number."""

    axis: int


def _with_names(layout: Layout) -> Layout:
    """The same layout with a name for each length that is not known."""
    memory = list(layout.memory)
    named: list[Axis] = []
    for number, axis in enumerate(layout.axes or ()):
        place = axis.memory
        if axis.size is None and place is not None and axis.step == 1 and axis.whole:
            memory[place] = _Length(number)
            axis = replace(axis, size=_Length(number))
        named.append(axis)
    return Layout(tuple(named), tuple(memory))


def _without_names(layout: Layout) -> Layout:
    if layout.axes is None:
        return layout
    named = [replace(a, size=None) if isinstance(a.size, _Length) else a for a in layout.axes]
    memory = tuple(None if isinstance(size, _Length) else size for size in layout.memory)
    return Layout(tuple(named), memory)


def _rearranged(
    layout: Layout, left: _Side, right: _Side, lengths: Mapping[str, Size]
) -> tuple[Layout, bool | None]:
    sizes = _sizes(left, layout, dict(lengths))
    flat = [name for group in left for name in group]
    moved = [name for group in right for name in group if name != "1"]
    if sorted(flat) != sorted(moved):
        return OPAQUE, None
    split, first = (
        reshape(layout, [sizes[name] for name in flat])
        if _grouped(left)
        else (
            layout,
            False,
        )
    )
    turned = permute(split, [flat.index(name) for name in moved])
    if not _grouped(right):
        return turned, first
    merged, second = reshape(turned, [_product(group, sizes) for group in right])
    if first is None or second is None:
        return merged, True if True in (first, second) else None
    return merged, first or second


def _parse(side: str) -> _Side | None:
    groups: _Side = []
    inside = False
    for token in _TOKEN.findall(side):
        if token in "()":
            if inside == (token == "("):
                return None
            inside = token == "("
            if inside:
                groups.append([])
        elif inside:
            groups[-1].append(token)
        else:
            groups.append([token])
    return None if inside else groups


def _grouped(side: _Side) -> bool:
    return any(len(group) != 1 or group == ["1"] for group in side)


def _sizes(left: _Side, layout: Layout, lengths: dict[str, Size]) -> dict[str, Size]:
    sizes = dict(lengths)
    for group, size in zip(left, layout.sizes or (), strict=False):
        unknown = [name for name in group if name not in sizes]
        if len(group) == 1:
            sizes[group[0]] = size
        elif len(unknown) == 1:
            rest = _product([name for name in group if name in sizes], sizes)
            whole = type(size) is int and type(rest) is int and rest > 0
            sizes[unknown[0]] = size // rest if whole else None  # type: ignore[operator]
        for name in unknown:
            sizes.setdefault(name, None)
    return sizes


def _product(names: list[str], sizes: dict[str, Size]) -> Size:
    total = 1
    wide = [name for name in names if sizes.get(name, 1) != 1]
    if len(wide) == 1:
        return sizes[wide[0]]
    for name in wide:
        size = sizes[name]
        if type(size) is not int:
            return None
        total *= size
    return total
