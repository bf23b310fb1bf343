"""The sample programs beside the checkout, scored by their own script."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.linting import pack_rules


@pytest.mark.shared
def test_precision_and_recall_on_the_sample_programs(shared_cases: Path) -> None:
    names = ",".join(rule.name for rule in pack_rules())
    run = subprocess.run(
        [
            sys.executable,
            str(shared_cases / "score.py"),
            "--verbose",
            "--memlint",
            f"{sys.executable} -m memlint",
            "--only",
            names,
            str(shared_cases / "snippets"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    score = re.search(r"precision ([\d.]+) recall ([\d.]+)", run.stdout)
    assert score is not None, run.stdout
    assert float(score[1]) >= 0.97, run.stdout
    assert float(score[2]) >= 0.9, run.stdout
