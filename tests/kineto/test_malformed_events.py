"""Events that are not as Kineto writes them are counted and left out, alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlint.kineto.analysis import analyze
from memlint.kineto.timeline import Collector
from tests.kineto.traces import Recording


def _recording() -> Recording:
    made = Recording()
    for number in range(4):
        made.operator("aten::add", 10.0 * number, 5, [[256, 256]], sequence=number)
    return made


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("ts", float("nan")), ("ts", float("inf")), ("dur", float("inf")), ("ts", None),
        ("dur", "long"), ("Sequence number", 10**30), ("Sequence number", -(10**30)),
    ],
)  # fmt: skip
def test_such_an_event_is_left_out_alone(tmp_path: Path, where: str, what: Any) -> None:
    made = _recording()
    event = made.events[1]
    (event if where in event else event["args"])[where] = what
    line = Collector().collect(made.events)
    assert line.unread == {"cpu_op": 1}
    (thread,) = line.threads.values()
    columns = (thread.begins, thread.lasts, thread.kinds, thread.names, thread.givens)
    assert {len(one) for one in (*columns, thread.extras)} == {3}
    assert line.operators == 3
    analyze(made.save(tmp_path / "trace.json"), tmp_path)
