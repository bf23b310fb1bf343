from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from memlint.findings import Report
from memlint.linter.run import check
from tests.linter.conftest import Write
from tests.packs import FLAG_PACK, environment

OLD = time.time() - 1000


def lint(**overrides: object) -> Report:
    return check(["."], overrides={"select": ("TST",), **overrides})


def outcome(report: Report) -> tuple[object, ...]:
    return report.findings, report.errors, report.suppressed, report.files


@pytest.fixture
def project(write: Write, tmp_path: Path) -> Path:
    write("a.py", "flag_me()\nflag_me()  # memlint: ignore[flag-me]\n")
    write("clean.py", "x = 1\n")
    write("broken.py", "flag_me(\n")
    write("d/b.py", "for x in flag_loop():\n    pass\n")
    for path in tmp_path.rglob("*.py"):
        os.utime(path, (OLD, OLD))
    return tmp_path


def results(project: Path) -> list[Path]:
    return list((project / ".memlint_cache").glob("*.results.json"))


def kept(file: Path) -> list[Any]:
    content: list[Any] = json.loads(file.read_bytes().partition(b"\n")[2])
    return content


def keep(file: Path, content: object) -> None:
    """Write a cache file that is sound as far as its checksum goes."""
    text = json.dumps(content).encode()
    file.write_bytes(b"%s\n%s\n" % (blake2b(text, digest_size=16).hexdigest().encode(), text))


def test_a_second_run_reads_everything_from_the_cache(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lint()
    assert (first.cached, len(first.findings), len(first.errors)) == (0, 2, 1)
    monkeypatch.setattr("memlint.linter.pool.run_jobs", None)
    second = lint()
    assert second.cached == 4
    assert outcome(second) == outcome(first)


def test_the_cache_is_marked_and_ignored_by_git(project: Path) -> None:
    lint()
    folder = project / ".memlint_cache"
    assert (folder / ".gitignore").read_text() == "*\n"
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f0688")
    (file,) = results(project)
    entries = kept(file)[2]
    assert entries["clean.py"][3] == []
    assert not list(folder.glob("*.tmp"))


def test_touched_files_are_recognised_by_content(project: Path) -> None:
    first = lint()
    os.utime(project / "a.py", (OLD + 5, OLD + 5))
    second = lint()
    assert second.cached == 4
    assert outcome(second) == outcome(first)


def test_changed_files_are_linted_again(project: Path) -> None:
    lint()
    (project / "clean.py").write_text("flag_me()\n")
    second = lint()
    assert second.cached == 3
    assert "clean.py" in [finding.path for finding in second.findings]


def test_a_change_of_the_same_size_right_after_a_run_is_seen(project: Path) -> None:
    (project / "clean.py").write_text("flag_mx()\n")
    lint()
    stamp = (project / "clean.py").stat().st_mtime_ns
    (project / "clean.py").write_text("flag_me()\n")
    os.utime(project / "clean.py", ns=(stamp, stamp))
    assert "clean.py" in [finding.path for finding in lint().findings]


def test_moving_a_file_does_not_bring_another_path_back(project: Path) -> None:
    lint()
    os.rename(project / "a.py", project / "moved.py")
    assert [f.path for f in lint().findings] == ["d/b.py", "moved.py"]


def test_paths_are_shown_from_where_one_stands(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "memlint.toml").write_text("")
    lint()
    monkeypatch.chdir(project / "d")
    report = check([".."], overrides={"select": ("TST",)})
    assert report.cached == 4
    assert [f.path for f in report.findings] == ["../a.py", "b.py"]


def test_other_settings_and_rules_have_other_results(project: Path) -> None:
    lint()
    assert lint(select=("TST102",)).cached == 0
    assert lint(target_device="cuda").cached == 0
    assert lint(exclude=("d",)).cached == 3, "what only selects files does not count"
    assert len(results(project)) == 3


@pytest.mark.parametrize("damage", ["", "{", "[1,2]", "null", '[1,0,{"a.py":3}]', "\0\xff", "["])
def test_a_damaged_cache_is_ignored_and_rewritten(project: Path, damage: str) -> None:
    first = lint()
    (file,) = results(project)
    file.write_bytes(damage.encode("latin-1"))
    assert outcome(lint()) == outcome(first)
    assert lint().cached == 4


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("value", [None, "x", [], [[]], [[1], [], 0], [[], 5, 0], {}])
def test_damaged_entries_are_ignored(project: Path, place: int, value: object) -> None:
    first = lint()
    (file,) = results(project)
    content = kept(file)
    if place == 3 and value == []:
        pytest.skip("that is an entry of a clean file, and intact")
    content[2]["a.py"][place] = value
    keep(file, content)
    assert outcome(lint()) == outcome(first)


def test_an_unwritable_cache_is_done_without(project: Path) -> None:
    (project / "file").write_text("")
    report = lint(cache_dir=project / "file/cache")
    assert len(report.findings) == 2
    assert "cache cannot be written" in report.notes[0]


def test_a_linked_cache_folder_is_not_followed(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / ".memlint_cache").symlink_to(elsewhere)
    assert "symbolic link" in lint().notes[0]
    assert list(elsewhere.iterdir()) == []


def test_a_shared_cache_folder_keeps_its_other_files(project: Path) -> None:
    for number in range(40):
        (project / f"data{number}.results.json").write_text("{}")
    lint(cache_dir=project)
    assert len(list(project.glob("data*.results.json"))) == 40
    assert not (project / ".gitignore").exists()
    assert len(list(project.glob("*.results.json"))) == 41


def test_projects_that_share_a_cache_folder_keep_their_results_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    for name, text in (("one", "flag_me()\n"), ("two", "flag_no()\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(text)
        os.utime(tmp_path / name / "a.py", (OLD, OLD))
        monkeypatch.chdir(tmp_path / name)
        for cached in (0, 1):
            report = lint(cache_dir=shared)
            assert (report.cached, len(report.findings)) == (cached, int(name == "one"))


def test_a_cache_with_any_bit_changed_is_ignored(project: Path) -> None:
    first = lint()
    (file,) = results(project)
    sound = file.read_bytes()
    for place in random.Random(0).sample(range(len(sound) - 1), 20):
        file.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        again = lint()
        assert outcome(again) == outcome(first)
        assert again.cached == 0


def test_no_cache_writes_nothing(project: Path) -> None:
    check(["."], overrides={"select": ("TST",)}, use_cache=False)
    assert not (project / ".memlint_cache").exists()


def test_failures_that_may_pass_are_not_kept(project: Path) -> None:
    (project / "a.py").write_text("misbehave_raise\nflag_me()\n")
    os.utime(project / "a.py", (OLD, OLD))
    first, second = lint(), lint()
    assert second.cached == 3
    assert outcome(first) == outcome(second)


def test_files_that_are_gone_leave_the_cache_in_time(project: Path) -> None:
    lint()
    (file,) = results(project)
    content = kept(file)
    content[2].update({f"gone{n}.py": [1, 1, "", []] for n in range(2000)})
    keep(file, content)
    (project / "clean.py").write_text("y = 2\n")
    lint()
    assert len(kept(file)[2]) == 4


def test_two_runs_at_once_do_not_harm_each_other(project: Path) -> None:
    command = [str(Path(sys.executable).with_name("memlint")), "check", "--select", "TST", "-q"]
    (project / "b.ipynb").write_text('{"cells": [{"cell_type": "code", "source": "flag_me()"}]}')
    runs = [
        subprocess.Popen(
            command, cwd=project, env=environment(FLAG_PACK),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]  # fmt: skip
    outputs = {run.communicate(timeout=60) for run in runs}
    assert len(outputs) == 1
    (file,) = results(project)
    assert len(kept(file)[2]) == 5
    assert not list(file.parent.glob("*.tmp"))
