"""Sessions as text, Markdown and JSON."""

from __future__ import annotations

import doctest
import json
import re
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from memlint.bench import quantities
from memlint.bench import text_report as text_module
from memlint.bench.claims import CLAIMS
from memlint.bench.json_report import json_report
from memlint.bench.markdown_report import markdown_report
from memlint.bench.results import Curve, Outcome, Plot, Point, Session, Standing
from memlint.bench.run import OUT_OF_TIME
from memlint.bench.standings import standings
from memlint.bench.text_report import text_report
from memlint.schemas.validation import schema, validate
from tests.bench import sessions

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "\x1b[2J|\n*bold* <b> `"


def text(session: Session, width: int = 100, color: bool = False) -> list[str]:
    return list(text_report(session, width, color))


@pytest.mark.parametrize("module", [quantities, text_module])
def test_the_examples_of_docstrings_are_true(module: Any) -> None:
    done = doctest.testmod(module)
    assert done.attempted
    assert not done.failed


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("color", [False, True])
def test_no_line_is_wider_than_the_terminal(width: int, color: bool) -> None:
    rows = text(sessions.SESSION, width, color)
    assert any(ESCAPE.search(row) for row in rows) == color
    plain = [ESCAPE.sub("", row) for row in rows]
    assert max(map(len, plain)) <= width
    assert plain == text(sessions.SESSION, width)


@pytest.mark.parametrize("width", [60, 100])
def test_bars_and_numbers_stand_below_each_other(width: int) -> None:
    rows = text(sessions.SESSION, width)
    compared = [row for row in rows if re.search(r"\d+x \(", row)]
    assert len(compared) == 5
    assert len({row.index("x (") - len(_ratio(row)) for row in compared}) == 1
    (head,) = {row for row in rows if "ratio (interval)" in row}
    assert head.index("ratio") == compared[0].index("x (") - len(_ratio(compared[0]))
    assert sum("█" in row for row in rows) == 2  # of those that are slower or take more


def _ratio(row: str) -> str:
    found = re.search(r"([\d.]+)x \(", row)
    assert found
    return found[1]


def test_what_is_compared_is_told_once_for_rows_alike() -> None:
    alike = replace(sessions.OUTCOMES[0], rows=(sessions.SLOWER, sessions.SLOWER))
    rows = text(replace(sessions.SESSION, outcomes=(alike,)))
    forms = [row for row in rows if "against" in row]
    assert forms == ["  compiled: columns in the outer loop against rows in the outer loop"]
    assert sum("float64, 1024 x 1024" in row for row in rows) == 2


def test_operands_too_long_for_their_column_have_lines_of_their_own() -> None:
    rows = text(sessions.SESSION)
    index = next(i for i, row in enumerate(rows) if "float32, 8 x 16" in row)
    assert rows[index].endswith("and then some more words")
    assert rows[index + 1].split() == ["faster", "0.51x", "(0.40-0.60)", "1", "us", "/", "2", "us"]
    assert "0.20x with a conversion" in rows[index + 2]


def test_an_interval_beside_1_that_shows_nothing_has_its_control_below() -> None:
    off = replace(sessions.EVEN, low=1.15, high=2.93, control_low=0.6, control_high=2.5)
    told = text(replace(sessions.SESSION, outcomes=(Outcome("one", "One.", rows=(off,)),)))
    (place,) = [number for number, row in enumerate(told) if "not measurable" in row]
    assert told[place + 1].split() == ["control", "(0.60-2.50)"]
    even = replace(sessions.SESSION, outcomes=(Outcome("one", "One.", rows=(sessions.EVEN,)),))
    assert not any("control (" in row for row in text(even))


def test_claims_failures_and_what_was_not_measured_are_told() -> None:
    told = "\n".join(text(sessions.SESSION))
    assert f"  {CLAIMS['dram-latency'].text}\n    holds: 81 ns in 512 MiB\n" in told
    assert "does not hold here: 1.2 to 24 times" in told
    assert CLAIMS["column-order"].note in told
    assert "  blocking-transfer, uncoalesced: torch sees no CUDA device\n" in told
    assert "  broken-one: failed: ValueError: <no> such | thing" in told
    assert "plot, with --html: A compiled sum over a square array, 8 points" in told
    assert "blocking-transfer: A copy waits." not in told


def test_a_run_in_which_nothing_was_measured_has_its_report() -> None:
    assert text(sessions.EMPTY, 60) == [
        "CPU: Some CPU 9000 with a long name @ 3.00GHz",
        "system: Linux 6.1.0 x86_64",
        "versions: Python 3.12.1, memlint 0.1.0",
        "run: 2026-11-30T20:56:07+00:00, 1 thread",
    ]
    assert "|" not in markdown_report(sessions.EMPTY)
    assert json.loads(json_report(sessions.EMPTY))["benches"] == []


def test_what_a_bench_says_disturbs_no_terminal() -> None:
    row = replace(sessions.SLOWER, what=HOSTILE, variant=HOSTILE, as_is_form=HOSTILE)
    wild = Outcome(HOSTILE, HOSTILE, rows=(row,), notes=(HOSTILE,), failed=HOSTILE)
    session = replace(sessions.SESSION, outcomes=(wild,))
    assert "\x1b" not in "".join(text(session))
    assert "\x1b" not in markdown_report(session)


def test_markdown_has_a_row_for_each_comparison_and_no_markup_of_others() -> None:
    rows = markdown_report(sessions.SESSION).splitlines()
    cells = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows if row.startswith("|")]
    compared = [one for one in cells if len(one) == 7]
    assert len(compared) == 2 + 5  # the head, and the line below it
    assert [cell.strip() for cell in compared[2]] == [
        "MEM101 column-order-loop",
        "float64, 1024 x 1024",
        "compiled: columns in the outer loop against rows in the outer loop",
        "9.27 (8.21-10.5)",
        "13.5 ms",
        "1.43 ms",
        "slower",
    ]
    assert [" broken-one ", r" failed: ValueError: \<no\> such \| thing "] in cells
    assert "- column-order-loop: cuda not measured: torch sees no CUDA device" in rows


def document(session: Session) -> Any:
    written = json.loads(json_report(session))
    jsonschema.Draft202012Validator.check_schema(schema("bench"))
    jsonschema.validate(written, schema("bench"))
    validate(written, schema("bench"))
    return written


def test_json_is_as_its_schema_says() -> None:
    written = document(sessions.SESSION)
    document(sessions.EMPTY)
    benches = {one["name"]: one for one in written["benches"]}
    assert len(benches) == len(sessions.OUTCOMES)
    first, second = benches["column-order-loop"]["rows"]
    assert (first["variant"], first["size"], first["unit"], first["ratio"]) == (
        "compiled", 1024, "s", 9.27,
    )  # fmt: skip
    assert second["verdict"] == "no measurable difference"
    assert benches["graph-kept"]["rows"][0]["nbytes"] is None
    assert benches["row-column-scan"]["code"] is None
    assert benches["blocking-transfer"]["skipped"] == "torch sees no CUDA device"
    plot = benches["working-set"]["plots"][0]
    assert plot["x"] == {"label": "working set", "unit": "B", "log": True}
    assert plot["marks"]["L1"] == 48 << 10
    claims = {one["claim"]: one for one in written["claims"]}
    assert claims["column-scan"]["standing"] == "holds in part"


def test_what_is_no_number_is_null() -> None:
    point = Point(1.0, float("nan"), float("-inf"), float("inf"))
    plot = Plot("all or nothing", "x", "", "y", "s", (Curve("one", (point,)),))
    written = document(replace(sessions.SESSION, outcomes=(Outcome("odd", "Odd.", plots=(plot,)),)))
    (found,) = written["benches"][0]["plots"][0]["curves"][0]["points"]
    assert found == {"x": 1.0, "y": None, "low": None, "high": None}


def test_claims_of_benches_that_a_run_did_not_come_to_have_no_standing() -> None:
    spent = [Outcome("tlb-reach", "TLB", skipped=OUT_OF_TIME)]
    assert not list(standings(spent))
    (missing,) = {answer.standing for answer in standings([Outcome("tlb-reach", "", skipped="no")])}
    assert missing is Standing.UNMEASURED
