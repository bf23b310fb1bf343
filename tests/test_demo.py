"""The demo program and its sound twin: what memlint says about them, and that both run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "fixtures" / "demo"
MARK = re.compile(r"# expect: ([\w-]+)")
LOSS = re.compile(r"loss (\d+\.\d+)")

Place = tuple[int, str]


def marks(path: Path) -> Iterator[Place]:
    """The line and the rule name of every mark in a program."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for name in MARK.findall(line):
            yield number, name


def reported(path: Path) -> Iterator[Place]:
    """The line and the rule name of everything that the installed command reports."""
    memlint = Path(sys.executable).with_name("memlint")
    command = [str(memlint), "check", "--isolated", "--no-cache", "--select", "ALL"]
    command += ["--output-format", "json", str(path.relative_to(ROOT))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert document["errors"] == []
    for finding in document["findings"]:
        yield finding["location"]["line"], finding["name"]


def test_the_finding_in_the_readme_is_a_real_one() -> None:
    memlint = Path(sys.executable).with_name("memlint")
    command = [str(memlint), "check", "--no-cache", "fixtures/demo/train.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    _, _, shown = readme.partition("```console\n$ memlint check fixtures/demo/train.py\n")
    excerpt = shown.partition("```\n")[0]
    assert excerpt.startswith("warning[MEM201]")
    assert excerpt in done.stdout


def run(program: str, checkpoint: Path) -> str:
    """The output of a short run of one of the two programs."""
    pytest.importorskip("torch", reason="torch is not installed: the demo cannot run")
    command = [sys.executable, "-W", "ignore", str(DEMO / program), "--checkpoint", str(checkpoint)]
    command += ["--steps", "3", "--batch-size", "8", "--size", "16", "--workers", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_planted_defect_is_found_and_nothing_else() -> None:
    path = DEMO / "train.py"
    planted = Counter(marks(path))
    assert len({name for _, name in planted}) >= 5
    assert Counter(reported(path)) == planted


def test_the_sound_program_is_silent_under_all_rules() -> None:
    path = DEMO / "train_fixed.py"
    assert list(marks(path)) == []
    assert list(reported(path)) == []


def test_both_programs_run_and_learn_alike(tmp_path: Path) -> None:
    losses = []
    for program in ("train.py", "train_fixed.py"):
        checkpoint = tmp_path / f"{program}.pt"
        output = run(program, checkpoint)
        assert "restored: accuracy" in output
        assert checkpoint.stat().st_size > 0
        found = LOSS.search(output)
        assert found is not None, output
        losses.append(float(found.group(1)))
    # The two draw their random gain in different ways, so the losses are only close.
    assert losses[0] == pytest.approx(losses[1], abs=0.1)
