"""An evidence document with everything that a page can show, in sizes that are asked for."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from typing import Any

from memlint.findings import Location
from memlint.source.model import Source
from memlint.tracer.statement_index import StatementIndex

MODEL = """\
import torch


class Block(torch.nn.Module):
    def embed(self, images):
        grid = self.patches(images)
        return grid.flatten(2).transpose(1, 2)

    def forward(self, tokens):
        tokens = tokens + self.attention(self.norm1(tokens))
        return tokens + self.mlp(self.norm2(tokens))


def train(model, loader, optimizer):
    for images, labels in loader:
        loss = model(images.double()).sum()
        loss.backward()
        optimizer.step()
"""
PATH = "src/model.py"


def line(number: int, function: str = "Block.forward", path: str = PATH) -> dict[str, Any]:
    return {"path": path, "function": function, "line": number}


def layout(*shape: int, strides: tuple[int, ...]) -> dict[str, Any]:
    return {"shape": [*shape], "strides": [*strides], "dtype": "float32", "device": "cpu"}


STREAM = layout(16, 256, 128, strides=(32768, 1, 256))


def location(number: int, start: int, end: int) -> dict[str, int]:
    return {"line": number, "column": start, "end_line": number, "end_column": end}


def evidence(verdict: str, **known: Any) -> dict[str, Any]:
    names = (
        "count bytes steps as_is_ms alternative_ms conversion_ms uses ratio ratio_low ratio_high "
        "net_ratio aa_low aa_high ms_per_step share_of_step born_at numerics"
    )
    return {
        "verdict": verdict,
        **dict.fromkeys(names.split()),
        "count": 27,
        "bytes": 509_607_936,
        "steps": 27,
        "layouts": [STREAM],
        **known,
    }


def measured(verdict: str, ratio: float, net: float, saved: float) -> dict[str, Any]:
    return evidence(
        verdict,
        as_is_ms=10.0 * ratio,
        alternative_ms=10.0,
        conversion_ms=2.5,
        uses=4,
        ratio=ratio,
        ratio_low=ratio * 0.9,
        ratio_high=ratio * 1.2,
        net_ratio=net,
        aa_low=0.93,
        aa_high=1.08,
        ms_per_step=saved,
        share_of_step=saved / 480,
        numerics="same",
        born_at=f"{PATH}:7",
    )


def statement(where: dict[str, int]) -> dict[str, Any]:
    """The statement at a place of the model, as the tracer notes it."""
    key = StatementIndex(Source(PATH, MODEL), ast.parse(MODEL)).at(Location(**where))
    assert key is not None
    return {"function": key.function, "statement": key.text, "number": key.number}


def finding(code: str, name: str, where: dict[str, int], seen: dict[str, Any]) -> dict[str, Any]:
    return {
        "code": code,
        "name": name,
        "severity": "warning",
        "confidence": "high",
        "path": PATH,
        "cell": None,
        "location": where,
        "message": f"`{name}`: float32[16, 256, 128] is read across the order in which it lies",
        "help": "make the array dense once, where it is transposed: `.contiguous()`",
        "related": [
            {
                "message": "its axes are exchanged here",
                "path": PATH,
                "cell": None,
                "location": location(7, 16, 47),
            }
        ],
        "fix": {"applicability": "safe", "message": "add `.contiguous()`", "edits": []},
        "fingerprint": "0" * 32,
        "evidence": {**seen, **statement(where)},
        "url": f"https://memlint.readthedocs.io/rules/{name}/",
    }


def findings() -> list[dict[str, Any]]:
    return [
        finding("MEM308", "transposed-stream", location(7, 16, 47),
                measured("confirmed", 2.12, 1.67, 29.3)),
        finding("MEM311", "strided-operand", location(10, 18, 60),
                measured("inconclusive", 1.3, 1.05, 0.4)),
        finding("MEM506", "implicit-float64", location(16, 22, 37), evidence("observed")),
        finding("MEM310", "mixed-layout-operands", location(11, 16, 53),
                measured("refuted", 1.0, 0.5, -8.1)),
        finding("MEM205", "sync-in-loop", location(17, 9, 24),
                evidence("not_reached", count=0, bytes=0, layouts=[])),
    ]  # fmt: skip


_PARTS = (
    ("loading", "aten::to", 15, "train", 0.06),
    ("forward", "aten::conv2d", 6, "Block.embed", 0.1),
    ("forward", "aten::layer_norm", 10, "Block.forward", 0.12),
    ("forward", "aten::linear", 11, "Block.forward", 0.2),
    ("backward", "aten::mm", 11, "Block.forward", 0.3),
    ("backward", "aten::native_layer_norm_backward", 10, "Block.forward", 0.12),
    ("optimizer", "aten::_foreach_addcdiv_", 18, "train", 0.1),
)


def profile(events: int = 60, lines: int = 7, step_ms: float = 480.0) -> dict[str, Any]:
    """``events`` operations, every third of them called by the one before, at so many lines."""
    random.seed(events)
    written: list[dict[str, Any]] = []
    start = 0.0
    for index in range(events):
        phase, name, number, function, _ = _PARTS[index * len(_PARTS) // events]
        length = step_ms * 1e3 / events
        site = line(number + 20 * (index % max(lines // len(_PARTS), 1)), function)
        inner = index % 3 == 2
        at = start - 0.8 * length if inner else start
        written.append(
            {
                "name": f"{name}{'_inner' if inner else ''}",
                "site": None if index % 11 == 5 else site,
                "phase": phase,
                "start_us": at,
                "us": length * (0.5 if inner else 0.9),
                "thread": int(phase == "backward"),
                "device": "cpu",
            }
        )
        start += 0 if inner else length * 1.5
    return {
        "step_ms": step_ms,
        "events": written,
        "events_left_out": 12,
        "phases": [
            {"phase": phase, "ms": share * step_ms, "operations": round(share * events)}
            for phase, share in (
                ("loading", 0.06), ("forward", 0.42), ("backward", 0.42), ("optimizer", 0.1),
            )
        ],
        "memory": [memory(step_ms * 1e3)],
    }  # fmt: skip


def memory(span: float, points: int = 200) -> dict[str, Any]:
    curve = []
    for index in range(points):
        part = index / (points - 1)
        level = part / 0.45 if part < 0.45 else max(0.05, 1 - (part - 0.45) / 0.45)
        wave = 0.04 * (index % 7 - 3) / 3
        curve.append([part * span, round(400e6 * min(max(level + wave, 0.02), 1))])
    peak = max(range(points), key=lambda index: curve[index][1])
    top = int(curve[peak][1])
    return {
        "device": "cpu",
        "points": curve,
        "peak_bytes": top,
        "peak_us": curve[peak][0],
        "holders": [
            {"site": line(11), "operation": "aten::linear", "bytes": top // 2},
            {"site": line(10), "operation": "aten::native_layer_norm", "bytes": top // 4},
            {"site": None, "operation": "", "bytes": top // 8},
        ],
        "other_bytes": top // 8,
    }


def journeys() -> list[dict[str, Any]]:
    uses = [
        {"site": line(10), "operation": "aten.native_layer_norm.default", "count": 54},
        {"site": line(10), "operation": "aten.add.Tensor", "count": 54},
        {"site": line(11), "operation": "aten.native_layer_norm.default", "count": 54},
    ]
    return [
        {
            "born": line(7, "Block.embed"),
            "layout": STREAM,
            "births": 27,
            "uses": uses,
            "converted": [
                {"site": line(11), "operation": "aten.clone.default", "count": 27,
                 "bytes": 56_623_104},
            ],
            "copy_ms": 0.9,
            "sum_ms": 29.3,
        },
        {
            "born": line(16, "train"),
            "layout": layout(16, 1, 64, 64, strides=(4096, 1, 1, 64)),
            "births": 1,
            "uses": uses[:1],
            "converted": [],
            "copy_ms": None,
            "sum_ms": None,
        },
    ]  # fmt: skip


def document(**changed: Any) -> dict[str, Any]:
    """The document, with some of its keys as they are given."""
    sources = MODEL.splitlines()
    places = ((7, "Block.embed"), (10, "Block.forward"), (11, "Block.forward"), (16, "train"))
    return {
        "version": 1,
        "meta": {
            "memlint": "0.1.0",
            "torch": "2.13.0",
            "python": "3.11.7",
            "device": "cpu",
            "host": "node7",
            "rank": None,
            "folder": "/home/someone/vision",
            "steps": 27,
            "operations": 12_285,
            "overhead": {"us_per_operation": 6.8, "seconds": 0.084},
            "complete": True,
            "blind_spots": ["other threads and DataLoader workers are not seen"],
        },
        "findings": findings(),
        "sites": [
            {
                **line(number, function),
                "operation": "aten.add.Tensor",
                "count": 54,
                "source": sources[number - 1].strip(),
            }
            for number, function in places
        ],
        "profile": profile(),
        "journeys": journeys(),
        **changed,
    }


_FIXED = {"severity", "confidence", "applicability"}


def with_texts(document: Any, change: Callable[[str], str], key: str = "") -> Any:
    """A document in which every text that a traced program could choose, and a few more, is
    changed."""
    if isinstance(document, dict):
        return {name: with_texts(value, change, name) for name, value in document.items()}
    if isinstance(document, list):
        return [with_texts(value, change, key) for value in document]
    return change(document) if isinstance(document, str) and key not in _FIXED else document
