"""The ratios that are kept: what they replace, and what is not theirs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memlint.bench.collect import rule_benches
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.bench.results import Session
from memlint.bench.store import keep, kept, measured_rows, others_are_kept, store_folder
from memlint.rule import Rule
from memlint.schemas.validation import schema
from tests.bench import sessions


class ColumnOrder(Rule):
    """It stands for the rule of the sessions."""

    code, name = "TST001", "column-order-loop"

    @bench(
        "walks", as_is="columns", alternative="rows", needs=(),
        sizes=Sizes("rows", quick=1024, full=(128, 1024)),
    )  # fmt: skip
    def bench_compiled(self, size: Size) -> Pair:
        raise NotImplementedError

    @bench(
        "walks", as_is="columns", alternative="rows", needs=(),
        sizes=Sizes("rows", quick=64, full=(64, 128)), quick=False,
    )  # fmt: skip
    def bench_interpreted(self, size: Size) -> Pair:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path / "memlint" / "measured"


def rows_of(session: Session) -> list[dict[str, Any]]:
    return measured_rows(session, rule_benches([ColumnOrder]))


def test_where_ratios_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    own = tmp_path / ".cache/memlint/measured"
    assert store_folder({}, "linux") == own
    assert store_folder({"XDG_CACHE_HOME": "not/absolute"}, "linux") == own
    assert store_folder({"XDG_CACHE_HOME": "/x"}, "linux") == Path("/x/memlint/measured")
    assert store_folder({}, "darwin") == tmp_path / "Library/Caches/memlint/measured"
    told = store_folder({"LOCALAPPDATA": "/local", "XDG_CACHE_HOME": "/x"}, "win32")
    assert told == Path("/local/memlint/measured")


def test_what_was_measured_of_rules_is_kept_with_its_date() -> None:
    rows = rows_of(sessions.SESSION)
    assert [(row["bench"], row["variant"], row["quick"]) for row in rows] == [
        ("column-order-loop", "compiled", True),
        ("column-order-loop", "interpreted", False),
        ("repeated-transposed-use", None, False),
        ("graph-kept", None, False),
        ("graph-kept", None, False),
    ]
    path, complaint = keep(sessions.MACHINE, rows)
    assert complaint == ""
    assert path.name == f"{sessions.MACHINE.key}.json"
    assert kept(sessions.MACHINE).rows == tuple(rows)
    document = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema("measured"))
    jsonschema.validate(document, schema("measured"))
    assert {row["date"] for row in document["rows"]} == {sessions.SESSION.date}
    assert os.listdir(path.parent) == [path.name]


def test_newer_rows_take_the_place_of_older_ones_of_the_same() -> None:
    keep(sessions.MACHINE, rows_of(sessions.SESSION))
    again = replace(sessions.SLOWER, ratio=5.0)
    other = replace(sessions.SLOWER, threads=1)
    outcome = replace(sessions.OUTCOMES[0], rows=(again, other))
    later = replace(sessions.SESSION, date="2026-12-01T00:00:00+00:00", outcomes=(outcome,))
    keep(sessions.MACHINE, rows_of(later))
    found = kept(sessions.MACHINE).rows
    assert len(found) == 6
    dated = [(row["ratio"], row["threads"]) for row in found if row["date"] == later.date]
    assert dated == [(5.0, 2), (9.27, 1)]


def test_machines_and_versions_are_kept_apart(folder: Path) -> None:
    assert not others_are_kept()
    keep(sessions.MACHINE, rows_of(sessions.SESSION))
    newer = replace(sessions.MACHINE, packages={"numpy": "9.9"})
    assert kept(newer).rows == ()
    assert kept(newer).complaint == ""
    assert others_are_kept()
    keep(newer, [])
    assert len(os.listdir(folder)) == 2


def test_numbers_that_are_none_are_not_kept() -> None:
    odd = replace(sessions.SLOWER, high=float("inf"))
    outcome = replace(sessions.OUTCOMES[0], rows=(odd, sessions.EVEN))
    rows = rows_of(replace(sessions.SESSION, outcomes=(outcome,)))
    assert [row["variant"] for row in rows] == ["interpreted"]


def _spoilt(change: Callable[[Any], Any]) -> Callable[[str], str]:
    def spoil(text: str) -> str:
        document = json.loads(text)
        changed = change(document)
        return json.dumps(document if changed is None else changed)

    return spoil


SPOILT = [
    (lambda text: text[: len(text) // 2], "no JSON"),
    (lambda text: "", "no JSON"),
    (lambda text: "[" * 100_000, "no JSON"),
    (_spoilt(lambda one: []), "object expected"),
    (_spoilt(lambda one: one["rows"][0].pop("ratio")), "object expected|has no 'ratio'"),
    (_spoilt(lambda one: one["rows"][0].update(ratio="9")), "number expected"),
    (_spoilt(lambda one: one.update(version=2)), "another version of memlint"),
    (_spoilt(lambda one: one["machine"].update(key="0" * 16)), "another machine"),
]


@pytest.mark.parametrize(("spoil", "told"), SPOILT)
def test_a_file_that_is_not_as_it_should_be_is_said_and_replaced(
    spoil: Callable[[str], str], told: str
) -> None:
    path, _ = keep(sessions.MACHINE, rows_of(sessions.SESSION))
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
    found = kept(sessions.MACHINE)
    assert found.rows == ()
    assert str(path) in found.complaint
    assert any(part in found.complaint for part in told.split("|"))
    _, complaint = keep(sessions.MACHINE, rows_of(sessions.SESSION)[:1])
    assert complaint == found.complaint
    assert len(kept(sessions.MACHINE).rows) == 1


def test_what_cannot_be_read_or_written_is_said(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("no folder", encoding="utf-8")
    assert kept(sessions.MACHINE).rows == ()
    assert not others_are_kept()
    with pytest.raises(OSError, match="measured"):
        keep(sessions.MACHINE, rows_of(sessions.SESSION))


def test_a_file_that_is_no_text_is_said(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / f"{sessions.MACHINE.key}.json").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in kept(sessions.MACHINE).complaint


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_in_its_place_is_not_waited_for(folder: Path) -> None:
    folder.mkdir(parents=True)
    os.mkfifo(folder / f"{sessions.MACHINE.key}.json")
    assert kept(sessions.MACHINE).complaint.endswith("not what memlint keeps: no regular file")
    keep(sessions.MACHINE, rows_of(sessions.SESSION))
    assert kept(sessions.MACHINE).rows


def test_a_write_that_fails_leaves_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(sessions.MACHINE, rows_of(sessions.SESSION))

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space left"):
        keep(sessions.MACHINE, [])
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parents[1]))
    assert len(kept(sessions.MACHINE).rows) == 5
    assert len(os.listdir(folder)) == 1
