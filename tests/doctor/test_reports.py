"""Lines as text and as JSON."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memlint.doctor.examine import CHECKS, examine
from memlint.doctor.json_report import json_report
from memlint.doctor.lines import Line, State, attention, bad, good, unknown
from memlint.doctor.machine import read_machine
from memlint.doctor.text_report import text_report
from memlint.doctor.unknown import NOT_HERE
from tests.doctor import machines

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
LINES = [
    good("caches", "L1d 32 KiB"),
    bad("shared memory", "64 MiB of 64 MiB free " + "and so on " * 12, "docker run ..."),
    attention("NUMA", "two nodes"),
    unknown("huge pages", NOT_HERE),
]


def schema() -> Any:
    path = resources.files("memlint").joinpath("schemas/doctor.schema.json")
    return json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("name", ["server", "laptop", "container", "old_container", "wsl"])
@pytest.mark.parametrize("color", [False, True])
def test_a_screen_is_80_columns_wide(name: str, color: bool, tmp_path: Path) -> None:
    cores = {"cores": 4} if name == "server" else {}
    lines = examine(read_machine(getattr(machines, name)(tmp_path, **cores)))
    rows = [ESCAPE.sub("", row) for row in text_report(lines, 80, color)]

    assert max(len(row) for row in rows if "$ " not in row) <= 80
    assert len(rows) <= 60
    shown = " ".join(" ".join(rows).split())
    for line in lines:
        assert line.topic in shown
        assert " ".join(line.why.split()) in shown
        assert line.command is None or " ".join(f"$ {line.command}".split()) in shown


def test_what_is_worst_comes_first() -> None:
    rows = list(text_report(LINES, 80, False))

    assert [row for row in rows if row in {state.value for state in State}] == [
        "bad",
        "attention",
        "good",
    ]
    assert rows[-1] == "1 bad, 1 attention, 1 unknown, 1 good"
    assert "not on this system: huge pages" in rows


def test_colours_are_written_only_where_they_are_wanted() -> None:
    plain, colored = (list(text_report(LINES, 80, color)) for color in (False, True))

    assert not any(ESCAPE.search(row) for row in plain)
    assert [ESCAPE.sub("", row) for row in colored] == plain
    assert colored != plain


def test_what_would_disturb_a_terminal_is_escaped() -> None:
    rows = "\n".join(text_report([bad("threads", "OMP_NUM_THREADS=\x1b[2J", "x\x07")], 80, False))

    assert "\x1b" not in rows
    assert "\x07" not in rows


def test_json_is_as_its_schema_says(tmp_path: Path) -> None:
    lines = examine(read_machine(machines.container(tmp_path)))
    document = json.loads(json_report(lines, "linux"))

    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(document, schema())
    read = [
        Line(entry["topic"], State(entry["state"]), entry["why"], entry["command"])
        for entry in document["lines"]
    ]
    assert read == list(lines)
    assert document["counts"] == {
        state.value: sum(line.state is state for line in lines) for state in State
    }


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"lines": [{"topic": "x", "state": "fine", "why": "y", "command": None}]},
        {"lines": [{"topic": "x", "state": "bad", "why": "", "command": None}]},
        {"more": 1},
    ],
)
def test_the_schema_refuses_other_documents(change: dict[str, Any]) -> None:
    document = json.loads(json_report(LINES, "linux")) | change

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_cites_a_page(check: Any) -> None:
    if check.__name__ == "page_size":  # it says a number, and judges nothing
        return
    assert re.search(r"https://\S+|page on NUMA", check.__doc__)
