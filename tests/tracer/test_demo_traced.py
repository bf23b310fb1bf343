"""The demo program under the tracer, and what ``check --evidence`` makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tracer.command import ROOT, Command

DEMO = ROOT / "fixtures" / "demo"
SHORT = ("--steps", "3", "--workers", "0", "--batch-size", "16")
TIMED = {
    ("MEM508", "weights = scores.softmax"),
    ("MEM307", "self.positions.repeat"),
    ("MEM506", "gain = torch.from_numpy"),
    ("MEM308", "grid.flatten(2).transpose"),
}
COUNTED = {("MEM502", "total += F.cross_entropy")}
# Parts of the stream, copies that products and reshapes make, and a sum across the fast axis: each
# is there, whether it pays to change it or not.
SEEN = {
    ("MEM310", "x = x + self.attention"),
    ("MEM310", "return x + self.mlp"),
    ("MEM311", "x = x + self.attention"),
    ("MEM311", "return x + self.mlp"),
    ("MEM311", "return self.norm(x)"),
    ("MEM311", "channels.abs().amax"),
    ("MEM312", "scores = q @ k.transpose"),
    ("MEM312", "mixed = weights @ v"),
    ("MEM312", "mixed.transpose(1, 2).reshape"),
}
# They depend on how long things take on a machine.
BY_TIME = {"MEM217", "MEM302"}


def findings(folder: Path, program: str, *options: str) -> list[dict[str, Any]]:
    """What the command line says of a program that it has traced."""
    command = Command(folder)
    # One thread: what else the machine does delays it least.
    command.memlint("trace", "-q", *options, "-o", "out.json", str(DEMO / program), *SHORT,
                    OMP_NUM_THREADS="1")  # fmt: skip
    arguments = ("--isolated", "--no-cache", "--select", "MEM", "--exit-zero", "--evidence")
    done = command.memlint(
        "check", *arguments, "out.json", "--output-format", "json", str(DEMO / program)
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return findings(tmp_path_factory.mktemp("demo"), "train.py", "--replay-budget", "60")


def seen_at(found: list[dict[str, Any]], code: str, text: str) -> dict[str, Any]:
    """The evidence of a rule's finding on the line that holds a text."""
    lines = (DEMO / "train.py").read_text("utf-8").splitlines()
    (line,) = [number for number, one in enumerate(lines, start=1) if text in one]
    (one,) = [one for one in found if (one["code"], one["location"]["line"]) == (code, line)]
    evidence: dict[str, Any] = one["evidence"]
    return evidence


@pytest.mark.parametrize(("code", "text"), sorted(TIMED))
def test_what_the_demo_wastes_is_measured_where_it_does(
    found: list[dict[str, Any]], code: str, text: str
) -> None:
    evidence = seen_at(found, code, text)
    assert evidence["count"] > 0
    assert evidence["numerics"] == "same"
    assert 0 < evidence["ratio_low"] <= evidence["ratio"] <= evidence["ratio_high"]
    assert evidence["as_is_ms"] > 0
    assert evidence["alternative_ms"] > 0
    assert evidence["net_ratio"] > 0
    assert evidence["ms_per_step"] is not None
    assert evidence["verdict"] in ("confirmed", "refuted", "inconclusive")


@pytest.mark.parametrize(("code", "text"), sorted(COUNTED))
def test_what_the_demo_keeps_is_counted_where_it_does(
    found: list[dict[str, Any]], code: str, text: str
) -> None:
    evidence = seen_at(found, code, text)
    assert evidence["verdict"] == "observed"
    assert evidence["bytes"] > 0


def test_nothing_is_seen_elsewhere(found: list[dict[str, Any]]) -> None:
    lines = (DEMO / "train.py").read_text("utf-8").splitlines()
    seen = {
        (one["code"], lines[one["location"]["line"] - 1].strip())
        for one in found
        if (one["evidence"] or {}).get("count") and one["code"] not in BY_TIME
    }
    known = TIMED | COUNTED | SEEN
    assert {
        (code, line)
        for code, line in seen
        if not any(code == other and text in line for other, text in known)
    } == set()


def test_the_sound_twin_shows_nothing_but_what_is_left_alone(tmp_path: Path) -> None:
    found = findings(tmp_path, "train_fixed.py", "--no-replay")
    codes = {one["code"] for one in found if one["evidence"]}
    assert codes <= BY_TIME
    assert all(one["severity"] == "info" for one in found if one["code"] == "MEM302")
