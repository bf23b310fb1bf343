"""A profiler's trace with stacks and shapes tells what the tracer tells of the same program, on the
same lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("torch")

from tests.kineto.programs import AMBIGUOUS, CONVOLUTIONS, FAULTS, WATCH
from tests.tracer.command import Command
from tests.tracer.programs import schema

FROM_IDENTITY = frozenset({"MEM305", "MEM306", "MEM501", "MEM502"})
"""Rules that need to know which arrays are the same one, which no profiler tells."""
TIMED = "in a profiled step"
"""What the copies within convolutions take decides whether they are told."""
HAS_COLUMNS = sys.version_info >= (3, 11)


def watched(folder: Path, text: str) -> Command:
    command = Command(folder)
    command.write("program.py", text)
    command.write("watch.py", WATCH.format(name="program"))
    done = command.python("watch.py")
    assert done.returncode == 0, done.stderr
    command.memlint("analyze", "-q", "-o", "evidence.json", "profile.json.gz")
    return command


def places(document: Any) -> dict[tuple[Any, ...], Any]:
    """The findings by rule and place, without those that a profiler cannot tell."""
    found = {}
    for one in document["findings"]:
        where = one["location"]
        place = tuple(where.values()) if HAS_COLUMNS else where["line"]
        if not one["code"].startswith("MEM") or one["code"] in FROM_IDENTITY:
            continue
        if TIMED not in one["message"]:
            found[one["code"], one["path"], place] = one
    return found


def sites(document: Any) -> set[tuple[str, str, int]]:
    return {(one["path"], one["function"], one["line"]) for one in document["sites"]}


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return watched(tmp_path_factory.mktemp("faults"), FAULTS)


@pytest.fixture(scope="module")
def convolutions(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return watched(tmp_path_factory.mktemp("convolutions"), CONVOLUTIONS)


@pytest.mark.parametrize("program", ["faults", "convolutions"])
def test_same_findings(program: str, request: pytest.FixtureRequest) -> None:
    command: Command = request.getfixturevalue(program)
    live, told = places(command.load("live.json")), places(command.load("evidence.json"))
    assert told.keys() == live.keys()
    for key, one in told.items():
        assert one["message"] == live[key]["message"]
        evidence, other = one["evidence"], live[key]["evidence"]
        for name in ("count", "bytes", "steps", "statement", "function", "number"):
            assert evidence[name] == other[name], (key, name)
        assert evidence["born_at"] in (None, other["born_at"]), key
        assert evidence["verdict"] == other["verdict"]
        assert evidence["spent_ms"] > 0


def test_faults_are_found(faults: Command, convolutions: Command) -> None:
    def codes(command: Command) -> set[str]:
        return {code for code, _, _ in places(command.load("evidence.json"))}

    assert codes(faults) == {"MEM205", "MEM308", "MEM310", "MEM311", "MEM312", "MEM506", "MEM508"}
    assert codes(convolutions) == {"MEM302", "MEM310", "MEM311", "MEM312", "MEM508"}


@pytest.mark.skipif(not HAS_COLUMNS, reason="before Python 3.11 functions have bare names")
@pytest.mark.parametrize("program", ["faults", "convolutions"])
def test_same_sites(program: str, request: pytest.FixtureRequest) -> None:
    command: Command = request.getfixturevalue(program)
    assert sites(command.load("evidence.json")) == sites(command.load("live.json"))


def test_schema(faults: Command) -> None:
    document = faults.load("evidence.json")
    jsonschema.validate(document, schema())
    assert document["meta"]["source"] == "profile.json.gz"
    assert document["meta"]["device"] == "cpu"
    # The optimizer has stepped twice, and nothing else marks the steps.
    assert document["meta"]["steps"] == 2


def test_no_line_is_guessed(tmp_path: Path) -> None:
    command = watched(tmp_path, AMBIGUOUS)
    live, told = places(command.load("live.json")), places(command.load("evidence.json"))
    assert len(live) == 3
    [(code, path, _)] = told
    [finding] = told.values()
    assert (code, path, finding["location"]["line"]) == ("MEM310", "program.py", 6)
    assert finding["evidence"]["note"].endswith("it may be line 11, 12 or 14")
    assert finding["evidence"]["count"] == sum(one["evidence"]["count"] for one in live.values())


def test_checked_beside_the_source(faults: Command) -> None:
    """The evidence confirms nothing, but says what has run and what was seen."""
    done = faults.memlint(
        "check", "--no-cache", "--evidence", "evidence.json", "--select", "ALL", "program.py",
        "--output-format", "json", status=1,
    )  # fmt: skip
    import json

    findings = json.loads(done.stdout)["findings"]
    traced = {one["code"]: one["evidence"]["verdict"] for one in findings if one["evidence"]}
    assert traced["MEM310"] == traced["MEM308"] == "observed"
    assert done.stderr == ""
