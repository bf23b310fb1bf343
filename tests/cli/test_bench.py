"""``memlint bench``: what is run, what is refused, how it ends.  Its benches are those of the rule
pack beside these tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memlint.schemas.validation import schema
from tests.cli.conftest import Shell
from tests.conftest import heed_interrupts


@pytest.fixture
def kept(shell: Shell) -> Path:
    """Where ratios are kept, in the folder of the test."""
    shell.environment["XDG_CACHE_HOME"] = str(shell.folder / "cache")
    shell.environment["LOCALAPPDATA"] = str(shell.folder / "cache")
    return shell.folder / "cache/memlint/measured"


def measured(shell: Shell, *arguments: str, status: int = 0) -> Any:
    done = shell.memlint("bench", "--format", "json", *arguments, status=status)
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema("bench"))
    return document


def rows_of(document: Any) -> list[tuple[str, int, str | None]]:
    return [
        (row["variant"], row["size"], row["dtype"])
        for one in document["benches"]
        for row in one["rows"]
    ]


def test_benches_are_named_like_rules_and_run_at_what_is_asked_for(shell: Shell) -> None:
    by_code = measured(shell, "TOY101", "--threads", "1")
    assert rows_of(by_code) == [("sum", 4, None), ("typed", 2, "float32")]
    assert by_code["plan"]["threads"] == 1
    assert by_code["benches"][0]["rows"][0]["verdict"] == "slower"
    full = measured(shell, "flagged-call", "--full")
    assert rows_of(full) == [("sum", 4, None), ("sum", 8, None), ("typed", 2, "float32")]
    sized = measured(shell, "flagged-call", "--size", "3", "--dtype", "float64")
    assert rows_of(sized) == [("typed", 3, "float64")]
    assert sized["benches"][0]["notes"] == [
        "sum not measured: no form for float64: its number types cannot be chosen"
    ]


def test_a_number_type_without_a_form_is_said(shell: Shell) -> None:
    (bench,) = measured(shell, "TOY101", "--dtype", "float16")["benches"]
    assert bench["rows"] == []
    assert "no form for float16, but for float32, float64" in bench["skipped"]
    done = shell.memlint("bench", "TOY101", "--dtype", "float16", status=0)
    assert "Not measured\n  flagged-call: no form for float16" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("flaged-call",),
            "unknown rule or experiment 'flaged-call' (did you mean 'flagged-call'?)",
        ),
        (("row-colum-scan",), "(did you mean 'row-column-scan'?)"),
        (("shy-call",), "shy-call has no bench: `memlint bench --list` shows those that have"),
        (("--size", "0"), "0 is not in the range x>=1"),
        (("--size", "many"), "'many' is not a valid integer"),
        (("--threads", "0"), "0 is not in the range x>=1"),
        (("--budget", "0"), "0.0 is not in the range x>0"),
        (("--budget", "nan"), "not a number"),
        (("--dtype", "float8"), "'float8' is not one of"),
        (("--format", "xml"), "'xml' is not one of"),
        (("--control", "--save"), "a control run measures no rule"),
        (("--html", "no/such/folder.html"), "--html: no such folder: no/such"),
    ],
)
def test_what_cannot_be_done_is_refused(
    shell: Shell, arguments: tuple[str, ...], told: str
) -> None:
    done = shell.memlint("bench", *arguments, status=2)
    assert told in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("device", ["toaster", "meta", "cuda:99", "cpu:toaster"])
def test_a_device_that_is_not_there_is_named(shell: Shell, device: str) -> None:
    pytest.importorskip("torch")
    done = shell.memlint("bench", "TOY101", "--device", device, status=2)
    assert f"--device {device}: " in done.stderr
    assert done.stdout == ""


def test_the_list_names_all_that_can_be_run(shell: Shell) -> None:
    listed = shell.memlint("bench", "--list", "noise", "row-column-scan", status=0).stdout
    assert listed.splitlines() == [
        "TOY101  flagged-call (sum): adds up numbers",
        "TOY101  flagged-call (typed): adds up numbers of a type",
        "TOY102  grave-call (quick): adds up numbers",
        "TOY102  grave-call (slow): takes its time",
        "TOY103  light-call: fails",
        "row-column-scan: Rows against columns: a sum over a square array, walked in both orders.",
    ]


def test_the_list_of_all_has_those_that_are_not_in_a_quick_run(shell: Shell) -> None:
    listed = shell.memlint("bench", "--list", status=0).stdout
    assert "TOY102  grave-call (slow): takes its time" in listed
    assert listed == shell.memlint("bench", "--list", "--full", status=0).stdout


def test_a_bench_that_fails_takes_no_other_along(shell: Shell) -> None:
    done = shell.memlint("bench", "TOY101", "TOY103", status=2)
    assert "flagged-call" in done.stdout
    assert r"light-call: failed: ValueError: this bench\x1b[2J is broken" in done.stdout


def test_a_spent_budget_is_said_and_no_error(shell: Shell) -> None:
    document = measured(shell, "TOY101", "--budget", "1e-9")
    assert document["benches"][0]["skipped"].startswith("the budget was spent")


def test_the_control_finds_nothing_in_a_pair_that_differs(shell: Shell) -> None:
    document = measured(shell, "TOY101", "--control", "--size", "8")
    assert document["plan"]["control"]
    (ratio,) = (row["ratio"] for row in document["benches"][0]["rows"] if row["variant"] == "sum")
    assert ratio < 4  # the bad form takes eight times as long


def test_formats_and_colours(shell: Shell) -> None:
    markdown = shell.memlint("bench", "TOY101", "--format", "markdown", status=0).stdout
    assert "| TOY101 flagged-call | 2000 numbers | sum: as often as the size says" in markdown
    plain = shell.memlint("bench", "TOY101", status=0).stdout
    assert "\x1b" not in plain
    colored = shell.memlint("bench", "TOY101", "--color", "always", status=0).stdout
    assert "\x1b[1mTOY101 flagged-call\x1b[0m" in colored


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_tells_what_was_measured(
    shell: Shell, kept: Path, number: signal.Signals
) -> None:
    started = shell.folder / "started"
    process = subprocess.Popen(
        shell.command("bench", "TOY102", "TOY101", "--format", "json", "--save"),
        cwd=shell.folder,
        env={**shell.environment, "TOY_STARTED": str(started)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    deadline = time.monotonic() + 60
    while not started.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    document = json.loads(out)
    assert [(one["name"], len(one["rows"]), one["skipped"]) for one in document["benches"]] == [
        ("flagged-call", 2, None),
        ("grave-call", 1, "the run was interrupted"),
    ]
    assert err.startswith("kept 3 ratios in ")
    assert len(os.listdir(kept)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="pipes differ there")
def test_a_reader_that_has_gone_costs_nothing_else(shell: Shell, kept: Path) -> None:
    process = subprocess.Popen(
        shell.command("bench", "TOY101", "--save"),
        cwd=shell.folder,
        env=shell.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    assert process.wait(timeout=60) == 0
    assert err.startswith("kept 2 ratios in ")
    assert len(os.listdir(kept)) == 1


def test_a_page_that_cannot_be_written_is_an_error_after_the_report(shell: Shell) -> None:
    pytest.importorskip("jinja2")
    (shell.folder / "page.html").mkdir()
    refused = shell.memlint("bench", "TOY101", "--html", "page.html", status=2)
    assert "page.html" in refused.stderr
    # A name that no file can have is only found out when it is written.
    name = "x" * 300 + ".html"
    done = shell.memlint("bench", "TOY101", "--html", name, status=2)
    assert "2000 numbers" in done.stdout
    assert done.stderr.startswith(f"error: {name}: ")


def test_a_page_is_written_beside_the_report(shell: Shell) -> None:
    pytest.importorskip("jinja2")
    done = shell.memlint("bench", "TOY101", "--html", "page.html", status=0)
    assert "2000 numbers" in done.stdout
    page = (shell.folder / "page.html").read_text(encoding="utf-8")
    assert "flagged-call" in page
    assert page.startswith("<!DOCTYPE html>")


def test_what_was_kept_is_renewed_and_a_broken_file_is_said(shell: Shell, kept: Path) -> None:
    shell.memlint("bench", "TOY101", "--save", status=0)
    (file,) = kept.iterdir()
    before = json.loads(file.read_text(encoding="utf-8"))["rows"]
    shell.memlint("bench", "TOY101", "--save", "--full", status=0)
    after = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [(one["variant"], one["size"], one["quick"]) for one in before] == [
        ("sum", 4, True), ("typed", 2, True),
    ]  # fmt: skip
    assert [(one["variant"], one["size"], one["quick"]) for one in after] == [
        ("sum", 4, True), ("typed", 2, True), ("sum", 8, False),
    ]  # fmt: skip
    file.write_text("{", encoding="utf-8")
    done = shell.memlint("bench", "TOY101", "--save", status=0)
    assert "not what memlint keeps: no JSON: begun anew" in done.stderr


def test_nothing_measured_is_nothing_to_keep(shell: Shell, kept: Path) -> None:
    done = shell.memlint("bench", "TOY103", "--save", status=2)
    assert done.stderr == "nothing to keep: no rule was measured\n"
    assert not kept.exists()


def test_where_nothing_can_be_kept_that_is_an_error_after_the_report(
    shell: Shell, kept: Path
) -> None:
    shell.write("cache", "no folder")
    done = shell.memlint("bench", "TOY101", "--save", status=2)
    assert "2000 numbers" in done.stdout
    assert done.stderr.startswith("error: the ratios cannot be kept: ")


def test_the_page_of_a_rule_names_its_bench(shell: Shell) -> None:
    page = shell.memlint("explain", "flagged-call", status=0).stdout
    assert "measured by `memlint bench flagged-call`" in page
    assert "measured by" not in shell.memlint("explain", "shy-call", status=0).stdout
    for name, expected in (("flagged-call", True), ("shy-call", False)):
        told = shell.memlint("explain", name, "--format", "json", status=0).stdout
        assert json.loads(told)["bench"] is expected
