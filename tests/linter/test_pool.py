from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memlint.findings import Report
from memlint.linter import pool
from memlint.linter.run import check
from tests.linter.conftest import Write


def lint(**options: object) -> Report:
    return check(["."], overrides={"select": ("TST",)}, use_cache=False, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("abort", "the process that checked this file died (SIGABRT)"),
        ("exit", "the process that checked this file died (exit status 7)"),
        ("system_exit", "SystemExit"),
        ("memory", "MemoryError"),
        ("raise", "rule misbehaving failed: KeyError: 'from the rule'"),
    ],
)
def test_trouble_costs_one_file_one_error(
    write: Write, monkeypatch: pytest.MonkeyPatch, how: str, message: str, method: str
) -> None:
    monkeypatch.setattr(pool, "start_method", lambda: method)
    monkeypatch.setattr(pool, "_BYTES_PER_WORKER", 10)
    for number in range(5):
        write(f"m{number}.py", "flag_me()\n")
    write("bad1.py", f"misbehave_{how}\n")
    write("bad2.py", f"misbehave_{how}\n" + "#" * 100)
    report = lint(jobs=2)
    assert [f.path for f in report.findings] == [f"m{number}.py" for number in range(5)]
    assert [error.path for error in report.errors] == ["bad1.py", "bad2.py"]
    assert all(message in error.message for error in report.errors), report.errors


def test_a_rule_that_raises_does_not_cost_other_rules(write: Write) -> None:
    write("a.py", "misbehave_raise\nflag_me()\n")
    report = lint()
    assert [f.code for f in report.findings] == ["TST101"]
    assert "misbehaving" in report.errors[0].message


def test_a_file_that_takes_too_long_is_given_up(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "FILE_TIMEOUT", 0.5)
    write("a.py", "flag_me()\n")
    write("slow.py", "misbehave_hang\n" + "#" * 50)
    started = time.monotonic()
    report = lint()
    assert time.monotonic() - started < 20
    assert [f.path for f in report.findings] == ["a.py"]
    assert report.errors[0].message == "took longer than 0.5 seconds and was given up"


def test_what_rules_print_stays_off_standard_output(
    write: Write, capfd: pytest.CaptureFixture[str]
) -> None:
    write("a.py", "misbehave_print\nflag_me()\n")
    assert len(lint().findings) == 1
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "noise" in captured.err


def test_no_process_is_left_behind(write: Write) -> None:
    write("a.py", "flag_me()\n")
    write("b.py", "misbehave_abort\n")

    def children() -> set[str]:
        path = Path(f"/proc/self/task/{os.getpid()}/children")
        return set(path.read_text().split()) if path.exists() else set()

    before = children()
    lint()

    def fail(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lint(progress=fail)
    assert children() <= before


def test_as_many_workers_as_there_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    from memlint.linter.file import Job

    small = [Job(f"{n}.py", f"{n}.py", 0, 100) for n in range(50)]
    large = [Job(f"{n}.py", f"{n}.py", 0, 500_000) for n in range(50)]
    monkeypatch.setattr(pool, "usable_cpus", lambda: 8)
    assert pool._worker_count(small, None) == 1
    assert pool._worker_count(large, None) == 8
    assert pool._worker_count(large[:3], None) == 3
    assert pool._worker_count(large, 2) == 2
