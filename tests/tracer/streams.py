"""Streams of records that are checked in as data: what a run with a device would leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memlint.layout import Strided
from memlint.tracer.records import Hole, Maker, Operand, Operation, Site

FOLDER = Path(__file__).parent / "streams"
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "uint8": 1, "int64": 8}


def stream(name: str) -> list[Operation]:
    """The operations of one file."""
    data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return [_operation(one) for one in data]


def _site(text: str) -> Site:
    path, _, line = text.rpartition(":")
    return Site(path, "train", int(line))


def _operand(data: dict[str, Any]) -> Operand:
    shape = tuple(data["shape"])
    strides = data.get("strides")
    if strides is None:
        strides = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
    array = Strided(shape, tuple(strides), SIZES[data["dtype"]])
    return Operand(array, data["dtype"], data["device"], data.get("pinned", False))


def _operation(data: dict[str, Any]) -> Operation:
    operands = tuple(map(_operand, data["operands"]))
    return Operation(
        _site(data["site"]),
        data["name"],
        data.get("phase", "forward"),
        operands,
        tuple(map(_operand, data.get("results", []))),
        tuple(Hole(n) for n in range(len(operands))),
        tuple(data.get("keywords", {}).items()),
        data["count"],
        data["steps"],
        makers={
            int(index): Maker(
                one["name"], _site(one["site"]), one.get("phase", "forward"), one.get("took", "")
            )
            for index, one in data.get("makers", {}).items()
        },
        fresh=data["count"],
        conflicts=data.get("conflicts", 0),
        conflict_at=_site(data["conflict_at"]) if "conflict_at" in data else None,
    )
