"""``memlint check --measured``: what is kept of this machine, beside the findings."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from memlint.bench.machine import Machine, this_machine
from memlint.bench.results import Outcome, Session, Verdict
from memlint.bench.store import keep, measured_rows
from memlint.doctor.host import this_host
from memlint.schemas.validation import schema
from tests.bench import sessions
from tests.cli.conftest import Shell


@pytest.fixture
def machine() -> Machine:
    return this_machine(this_host())


@pytest.fixture
def project(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A flagged and a grave call, and an empty store."""
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(shell.folder / "cache"))
        shell.environment[name] = str(shell.folder / "cache")
    if sys.platform == "darwin":
        shell.environment["HOME"] = str(shell.folder)
    shell.write("all.py", "flag_me()\ngrave()\n")
    return shell


def fill(machine: Machine, *rows: tuple[int, float, Verdict]) -> None:
    """Keep rows of the flagged call: sizes, ratios and verdicts."""
    made = tuple(
        replace(
            sessions.SLOWER, bench="flagged-call", variant=f"v{size}", what=f"{size} numbers",
            size=size, ratio=ratio, low=ratio * 0.9, high=ratio * 1.1, verdict=verdict,
        )
        for size, ratio, verdict in rows
    )  # fmt: skip
    outcome = Outcome("flagged-call", "A call.", rows=made, code="TOY101")
    session = Session(machine, sessions.SESSION.plan, sessions.SESSION.date, (outcome,))
    keep(machine, measured_rows(session, ()))


def test_findings_say_what_their_rule_costs_here(project: Shell, machine: Machine) -> None:
    fill(machine, (1024, 9.27, Verdict.SLOWER))
    done = project.memlint("check", "--measured", status=1)
    assert done.stderr == ""
    assert done.stdout.count("measured:") == 1
    assert (
        "= measured: on this machine on 2026-11-30: 9.27 times slower (8.34-10.2) at 1024 numbers\n"
        in done.stdout
    )
    concise = project.memlint("check", "--measured", "--output-format", "concise").stdout
    first, second, *_ = concise.splitlines()
    assert first.endswith("(measured: 9.27 times slower (8.34-10.2) at 1024 numbers)")
    assert "measured" not in second
    github = project.memlint("check", "--measured", "--output-format", "github").stdout
    assert "%0Ameasured on this machine on 2026-11-30: 9.27 times slower" in github


def test_the_larger_sizes_come_first_and_few_are_shown(project: Shell, machine: Machine) -> None:
    fill(
        machine,
        (64, 1.02, Verdict.NO_DIFFERENCE),
        (4096, 0.5, Verdict.FASTER),
        (512, 3.0, Verdict.MORE),
        (1024, 9.0, Verdict.SLOWER),
    )
    document = project.json("--measured", status=1)
    jsonschema.validate(document, schema("check"))
    flagged, grave = document["findings"]
    assert [one["size"] for one in flagged["measured"]] == [4096, 1024, 512]
    assert grave["measured"] is None
    told = project.memlint("check", "--measured").stdout
    assert "2.00 times faster as it is (1.82-2.22) at 4096 numbers" in told
    assert "3.00 times as many bytes (2.70-3.30) at 512 numbers" in told
    sarif = json.loads(project.memlint("check", "--measured", "--output-format", "sarif").stdout)
    results = sarif["runs"][0]["results"]
    assert results[0]["properties"]["measured"] == flagged["measured"]
    assert "measured" not in results[1]["properties"]


def test_no_difference_is_an_answer(project: Shell, machine: Machine) -> None:
    fill(machine, (64, 1.02, Verdict.NO_DIFFERENCE))
    told = project.memlint("check", "--measured", status=1).stdout
    assert "no measurable difference (0.92-1.12) at 64 numbers" in told


def test_where_nothing_was_measured_a_note_says_how(project: Shell, machine: Machine) -> None:
    plain = project.memlint("check", status=1)
    done = project.memlint("check", "--measured", status=1)
    note = "note: nothing measured on this machine yet: `memlint bench --save`\n"
    assert (done.stdout, done.stderr) == (plain.stdout, note)
    assert project.memlint("check", "--measured", "--quiet").stderr == ""
    fill(replace(machine, memlint="0.0.1"), (64, 2.0, Verdict.SLOWER))
    other = project.memlint("check", "--measured", status=1)
    assert other.stdout == plain.stdout
    assert "on this machine with these versions yet: `memlint bench --save`" in other.stderr


def test_a_broken_store_is_said_and_changes_nothing(project: Shell, machine: Machine) -> None:
    fill(machine, (64, 2.0, Verdict.SLOWER))
    (file,) = Path(project.folder / "cache").rglob("*.json")
    file.write_text("[]", encoding="utf-8")
    done = project.memlint("check", "--measured", status=1)
    assert done.stdout == project.memlint("check").stdout
    assert done.stderr.startswith(f"warning: {file}: not what memlint keeps")


def test_the_cache_of_results_holds_nothing_of_it(project: Shell, machine: Machine) -> None:
    fill(machine, (64, 2.0, Verdict.SLOWER))
    with_it = project.memlint("check", "--measured", "--verbose")
    assert "measured:" in with_it.stdout
    without = project.memlint("check", "--verbose")
    assert "(1 from the cache)" in without.stderr
    assert "measured:" not in without.stdout
    fill(machine, (64, 7.0, Verdict.SLOWER))
    assert "7.00 times slower" in project.memlint("check", "--measured").stdout


def test_it_does_not_go_with_fixes(project: Shell) -> None:
    done = project.memlint("check", "--measured", "--fix", status=2)
    assert done.stderr.endswith("--measured cannot be combined with fixes.\n")


@pytest.mark.parametrize("arguments", [(), ("--measured",)])
def test_no_library_is_imported_and_no_store_read_unasked(
    project: Shell, machine: Machine, arguments: tuple[str, ...]
) -> None:
    fill(machine, (64, 2.0, Verdict.SLOWER))
    program = (
        "import sys\nfrom memlint.cli.main import main\n"
        f"try: main(['check', '--jobs', '1', *{arguments!r}])\n"
        "finally: print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project.folder, env=project.environment, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    modules = set(done.stderr.split())
    assert not modules & {"numpy", "torch", "numba"}
    assert ("memlint.bench.store" in modules) == bool(arguments)
    assert ("measured:" in done.stdout) == bool(arguments)
