"""Subscripts: a tuple of positions, slices, new axes and an ellipsis."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from memlint.analysis.axes.model import OPAQUE, Layout, Size
from memlint.analysis.axes.views import NotKnown, select, slice_axis, unsqueeze
from memlint.late_dataclass import dataclass


class Item(Enum):
    """An item of a subscript that carries no numbers."""

    AT = "one position"
    NEW = "a new axis"
    REST = "an ellipsis"
    OTHER = "an array, a mask or not known"


@dataclass(frozen=True, slots=True)
class Cut:
    """A slice; ``length`` is the number of positions where it is known otherwise."""

    start: Size | NotKnown = None
    stop: Size | NotKnown = None
    step: Size | NotKnown = None
    length: Size = None


IndexItem: TypeAlias = Item | Cut


def index(layout: Layout, items: Sequence[IndexItem]) -> Layout:
    """The view that a basic subscript gives; opaque where an item is an array or unknown."""
    if Item.OTHER in items or list(items).count(Item.REST) > 1:
        return OPAQUE
    if Item.REST not in items:
        return _forward(layout, items)
    place = list(items).index(Item.REST)
    before, after = items[:place], items[place + 1 :]
    if layout.axes is not None:
        used = sum(item not in (Item.NEW, Item.REST) for item in items)
        filling = [Cut()] * max(0, len(layout.axes) - used)
        return _forward(layout, [*before, *filling, *after])
    return _backward(_forward(layout, before), after)


def _forward(layout: Layout, items: Sequence[IndexItem]) -> Layout:
    axis = 0
    for item in items:
        if layout.axes is not None and item is not Item.NEW and axis >= len(layout.axes):
            return OPAQUE
        if item is Item.AT:
            layout = select(layout, axis)
        elif item is Item.NEW:
            layout = unsqueeze(layout, axis)
            axis += 1
        else:
            layout = _cut(layout, axis, item)
            axis += 1
    return layout


def _backward(layout: Layout, items: Sequence[IndexItem]) -> Layout:
    axis = -1
    for item in reversed(items):
        if item is Item.AT:
            layout = select(layout, axis)
        elif item is Item.NEW:
            layout = unsqueeze(layout, axis)
            axis -= 1
        else:
            layout = _cut(layout, axis, item)
            axis -= 1
    return layout


def _cut(layout: Layout, axis: int, item: IndexItem) -> Layout:
    if not isinstance(item, Cut):
        return OPAQUE
    return slice_axis(layout, axis, item.start, item.stop, item.step, item.length)
