"""``memlint check --evidence``: what a trace has seen of the linter's findings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.tracer.command import Command
from tests.tracer.programs import FACES


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence of one run, in the folder of the program."""
    command = Command(tmp_path_factory.mktemp("traced"))
    command.write("program.py", FACES)
    command.memlint("trace", "-q", "--no-replay", "-o", "out.json", "program.py")
    return command.folder / "out.json"


@pytest.fixture
def traced(evidence: Path, tmp_path: Path) -> Command:
    """A folder with the program and the evidence of a run of it there."""
    command = Command(tmp_path)
    command.write("program.py", FACES)
    command.write("out.json", evidence.read_text("utf-8"))
    return folder_is_here(command)


def folder_is_here(command: Command) -> Command:
    document = command.load("out.json")
    document["meta"]["folder"] = command.folder.as_posix()
    command.store("out.json", document)
    return command


def verdicts(findings: list[dict[str, Any]]) -> dict[tuple[str, int], str | None]:
    return {
        (one["code"], one["location"]["line"]): one["evidence"] and one["evidence"]["verdict"]
        for one in findings
    }


EXPECTED = {
    ("SEEN101", 5): "observed",
    ("SEEN101", 9): "not_reached",
    ("SEEN101", 15): "inconclusive",
    ("SEEN102", 23): "observed",
    ("SEEN103", 13): "inconclusive",
    ("SEEN104", 16): None,
}


def test_each_finding_gets_its_verdict(traced: Command) -> None:
    findings = traced.check("--evidence", "out.json", ".")
    assert verdicts(findings) == EXPECTED
    by_place = {(one["code"], one["location"]["line"]): one["evidence"] for one in findings}
    assert by_place["SEEN101", 5]["count"] == 3
    assert by_place["SEEN102", 23]["count"] == 3  # seen where the array is filled
    assert by_place["SEEN103", 13]["note"] == "the run did not use cuda"


def test_without_evidence_there_is_none(traced: Command) -> None:
    assert set(verdicts(traced.check("."))) == set(EXPECTED)
    assert not any(verdicts(traced.check(".")).values())


def test_lines_that_have_moved_are_found(traced: Command) -> None:
    moved = FACES.replace(
        "def flatten(batch):\n    return batch",
        "# one\n\n\ndef flatten(batch):\n    # two\n    if True:\n        return   batch",
    )
    traced.write("program.py", moved)
    found = verdicts(traced.check("--evidence", "out.json", "."))
    assert found == {(code, line + 5): verdict for (code, line), verdict in EXPECTED.items()}


def test_equal_statements_are_told_apart_by_their_number(tmp_path: Path) -> None:
    command = Command(tmp_path)
    twice = (
        "import torch\n\nx = torch.ones(4, 16, 64, 32)\ny = x.permute(0, 2, 3, 1)\n\n\n"
        "def work(batch, again):\n    if again:\n        batch.reshape(-1, 16)\n"
        "    batch.reshape(-1, 16)\n\n\nwork(y, False)\n"
    )
    command.write("program.py", twice)
    command.memlint("trace", "-q", "--no-replay", "-o", "out.json", "program.py")
    assert verdicts(command.check("--evidence", "out.json", ".")) == {
        ("SEEN101", 9): "inconclusive",
        ("SEEN101", 10): "observed",
    }
    command.write("program.py", "# moved\n" * 3 + twice)
    assert verdicts(command.check("--evidence", "out.json", ".")) == {
        ("SEEN101", 12): "inconclusive",
        ("SEEN101", 13): "observed",
    }


def test_evidence_of_another_machine_is_matched_by_path(traced: Command) -> None:
    document = traced.load("out.json")
    document["meta"]["folder"] = "/no/such/folder"
    traced.store("out.json", document)
    assert verdicts(traced.check("--evidence", "out.json", ".")) == EXPECTED


def test_evidence_of_another_folder_is_matched_by_fingerprint(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command.write("memlint.toml", "")
    command.write("jobs/program.py", FACES)
    there = Command(tmp_path / "jobs")
    there.memlint("trace", "-q", "--no-replay", "-o", "../out.json", "program.py")
    document = command.load("out.json")
    document["meta"]["folder"] = "/no/such/folder"
    command.store("out.json", document)
    found = verdicts(command.check("--evidence", "out.json", "."))
    assert found["SEEN101", 5] == "observed"


def test_changed_code_is_said_to_be_stale(traced: Command) -> None:
    traced.write("program.py", FACES.replace(".reshape(-1, 16)", ".reshape(-1, 8)", 1))
    options = ("check", "--select", "SEEN", "--evidence", "out.json", "--no-cache", ".")
    done = traced.memlint(*options, status=1)
    assert "1 finding of the trace left out: the code has changed" in done.stderr
    found = verdicts(traced.check("--evidence", "out.json", "."))
    assert found["SEEN101", 5] == "inconclusive"


def test_an_incomplete_trace_says_of_nothing_that_it_was_not_reached(traced: Command) -> None:
    document = traced.load("out.json")
    document["meta"]["complete"] = False
    traced.store("out.json", document)
    found = verdicts(traced.check("--evidence", "out.json", "."))
    assert found == {**EXPECTED, ("SEEN101", 9): "inconclusive"}


def refute(command: Command) -> None:
    """Turn the evidence into one that was measured and came to nothing."""
    document = command.load("out.json")
    numbers = dict.fromkeys(
        ("as_is_ms", "alternative_ms", "conversion_ms", "uses", "ratio", "ratio_low", "ratio_high",
         "net_ratio", "aa_low", "aa_high", "ms_per_step"), 1.0,
    )  # fmt: skip
    for one in document["findings"]:
        one["evidence"].update(numbers, verdict="refuted")
    command.store("out.json", document)


def test_what_is_refuted_does_not_count(traced: Command) -> None:
    traced.write("program.py", "import torch\n\nx = torch.ones(4, 16, 64, 32)\n"
                 "x.permute(0, 2, 3, 1).reshape(-1, 16)\n")  # fmt: skip
    traced.memlint("trace", "-q", "--no-replay", "-o", "out.json", "program.py")
    assert traced.check("--evidence", "out.json", ".", status=1)
    refute(traced)
    [finding] = traced.check("--evidence", "out.json", ".", status=0)
    assert finding["evidence"]["verdict"] == "refuted"
    options = ("check", "--select", "SEEN", "--evidence", "out.json", "--no-cache", ".")
    full = traced.memlint(*options, "--color", "always").stdout
    assert full.startswith("\x1b[2mwarning[SEEN101]")
    assert "refuted: 1 time a step" in full
    assert "leave it" in full
    assert "No findings" in full
    assert "1 refuted" in full
    concise = traced.memlint(*options, "--output-format", "concise", "--color", "always").stdout
    short = r"\(refuted: \d\.\d\d times as long with the conversion\)"
    assert re.match(rf"\x1b\[2mprogram\.py:4:1: .*{short}\x1b\[0m\n", concise)
    github = traced.memlint(*options, "--output-format", "github").stdout
    assert github.startswith("::notice ")
    assert '"kind": "pass"' in traced.memlint(*options, "--output-format", "sarif").stdout


def test_a_run_without_the_device_refutes_nothing_of_it(traced: Command) -> None:
    refute(traced)
    document = traced.load("out.json")
    for one in document["findings"]:
        one.update(code="SEEN103")
        one["evidence"].update(function="halfway", statement="total=batch.sum()", number=0)
    traced.store("out.json", document)
    found = verdicts(traced.check("--evidence", "out.json", "."))
    assert found["SEEN103", 13] == "inconclusive"


def test_what_only_the_trace_has_is_added(tmp_path: Path) -> None:
    command = Command(tmp_path)
    # Not even an attribute called reshape: the linter has nothing to find here.
    hidden = "import torch\n\nx = torch.ones(4, 16, 64, 32)\nx.permute(0, 2, 3, 1).flatten(0, 2)\n"
    command.write("program.py", hidden)
    command.memlint("trace", "-q", "--no-replay", "-o", "out.json", "program.py")
    assert command.check(".", status=0) == []
    assert verdicts(command.check("--evidence", "out.json", ".")) == {("SEEN101", 4): "observed"}
    command.write("other.py", "pass\n")
    assert command.check("--evidence", "out.json", "other.py", status=0) == []
    ignoring = ("--ignore", "SEEN101", "--evidence", "out.json")
    assert command.check(*ignoring, ".", status=0) == []
    commented = hidden.replace("(0, 2)\n", "(0, 2)  # memlint: ignore[SEEN101]\n")
    command.write("program.py", commented)
    assert command.check("--evidence", "out.json", ".", status=0) == []


def test_what_is_no_evidence_is_an_error(traced: Command) -> None:
    traced.write("other.json", "{}")
    done = traced.memlint("check", "--evidence", "other.json", ".", status=2)
    assert done.stderr.startswith("error: other.json: no evidence")
    traced.memlint("check", "--evidence", "out.json", "--fix", ".", status=2)


def test_torch_is_not_imported(traced: Command) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from memlint.cli.main import main\n"
        "main(['check', '--select', 'SEEN', '--no-cache', '--evidence', 'out.json', '.'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=traced.folder,
        env=traced.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    assert "observed: 3 times a step" in done.stdout
