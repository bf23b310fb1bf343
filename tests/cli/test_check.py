"""``memlint check``: paths, rules, settings, exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import EVERYTHING, Shell

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_rules_are_selected_by_code_name_family_prefix(everything: Shell) -> None:
    codes = everything.codes
    assert codes(status=1) == "101 102 103 202"
    assert codes("--select", "TOY101,grave-call") == "101 102"
    assert codes("--select", "TOY101", "--select", "TOY103") == "101 103"
    assert codes("--select", "noise") == "101 102 103 104"
    assert codes("--select", "TOY2") == "202"
    assert codes("--select", "ALL", "--ignore", "TOY1") == "202"
    assert codes("--extend-select", "shy-call", "--ignore", "TOY10", status=1) == "104 202"
    unknown = everything.memlint("check", "--select", "flaged-call", status=2)
    assert unknown.stderr == (
        "error: unknown rule selector 'flaged-call' (did you mean 'flagged-call'?)\n"
    )
    assert unknown.stdout == ""


def test_configuration_is_found_overridden_and_left_alone(everything: Shell) -> None:
    everything.write("memlint.toml", 'select = ["TOY101", "TOY102"]\n')
    everything.write("other.toml", 'select = ["TOY103"]\nfail-level = "error"\n')
    everything.write("sub/pyproject.toml", '[tool.memlint]\nignore = ["TOY101"]\n')
    everything.write("sub/deep/more.py", "flag_me()\ngrave()\n")
    codes = everything.codes
    assert codes(status=1) == "101 102 102"
    assert codes("--ignore", "TOY101") == "102 102"
    assert codes("--select", "TOY101") == "101 101"
    assert codes("--config", "other.toml", status=0) == "103"
    assert codes("--isolated", "all.py") == "101 102 103 202"
    both = everything.memlint("check", "--isolated", "--config", "other.toml", status=2)
    assert "exclude each other" in both.stderr
    assert "no such file" in everything.memlint("check", "--config", "x.toml", status=2).stderr


def test_options_of_rules_and_ignores_by_file(everything: Shell) -> None:
    everything.write(
        "pyproject.toml",
        """\
        [tool.memlint]
        select = ["TOY101", "TOY102"]
        [tool.memlint.per-file-ignores]
        "/tests/" = ["noise"]
        [tool.memlint.rules.flagged-call]
        limit = 7
        """,
    )
    everything.write("tests/test_all.py", EVERYTHING)
    first, second = everything.json(status=1)["findings"]
    assert first["message"] == "this call is flagged, limit 7"
    assert [first["path"], second["path"]] == ["all.py", "all.py"]


def test_an_error_in_the_configuration_has_its_line(everything: Shell) -> None:
    everything.write("memlint.toml", 'fail-level = "error"\nfail_level = "error"\n')
    done = everything.memlint("check", status=2)
    assert done.stderr == (
        "error: memlint.toml:2: unknown key 'fail_level' (did you mean 'fail-level'?)\n"
    )
    assert done.stdout == ""


def test_the_exit_status(everything: Shell) -> None:
    everything.write("only_light.py", "light()\n")
    everything.write("broken.py", "flag_me(\n")

    def status(*arguments: str) -> int:
        return everything.memlint("check", *arguments).returncode

    assert status("all.py") == 1
    assert status("only_light.py") == 0
    assert status("only_light.py", "--fail-level", "info") == 1
    assert status("all.py", "--select", "TOY101", "--fail-level", "error") == 0
    assert status("all.py", "--exit-zero") == 0
    assert status("broken.py") == 2
    assert status("broken.py", "only_light.py") == 2
    assert status("broken.py", "--exit-zero") == 2
    assert status("all.py", "--no-such-option") == 2
    assert status("all.py", "--jobs", "0") == 2
    both = everything.memlint("check", "broken.py", "all.py", status=1)
    assert both.stderr.startswith("error: broken.py:1:")
    assert "flagged-call" in both.stdout
    shown = everything.memlint("check", "only_light.py", status=0).stdout
    assert "info[TOY103] light-call" in shown


def test_confidence(everything: Shell) -> None:
    assert everything.codes("--min-confidence", "high") == "101 102 103"
    assert everything.codes("--min-confidence", "low") == "101 102 103 201 202"


def test_files_are_left_out_by_pattern_and_by_gitignore(shell: Shell) -> None:
    for name in ("a.py", "skip/b.py", "gone/c.py", "build/d.py", "notes.txt"):
        shell.write(name, "flag_me()\n")
    shell.write(".gitignore", "gone/\n")
    (shell.folder / ".git").mkdir()

    def files(*arguments: str) -> list[str]:
        done = shell.memlint("check", "--show-files", *arguments, status=0)
        return done.stdout.splitlines()

    assert files() == ["a.py", "skip/b.py"]
    assert files("--extend-exclude", "skip") == ["a.py"]
    assert files("--exclude", "skip,a.py") == ["build/d.py"]
    assert files("skip/b.py", "--extend-exclude", "skip") == ["skip/b.py"]
    assert files("skip/b.py", "--extend-exclude", "skip", "--force-exclude") == []
    nothing = shell.memlint("check", "--exclude", "*.py", status=0)
    assert nothing.stderr == "warning: no Python files or notebooks found\n"


def test_standard_input(shell: Shell) -> None:
    shell.write("sub/memlint.toml", 'ignore = ["TOY102"]\n')
    document = shell.json("-", stdin="flag_me()\n", status=1)
    assert [f["path"] for f in document["findings"]] == ["<stdin>"]
    named = ("-", "--stdin-filename", "sub/x.py")
    document = shell.json(*named, stdin=EVERYTHING, status=1)
    assert [f["code"] for f in document["findings"]] == ["TOY101", "TOY103", "TOY202"]
    assert {f["path"] for f in document["findings"]} == {"sub/x.py"}
    full = shell.memlint("check", *named, stdin=EVERYTHING, status=1).stdout
    assert " --> sub/x.py:2:1\n" in full
    assert "2 | flag_me(origin)\n" in full
    assert shell.memlint("check", "-", "x.py", status=2).stdout == ""
    assert shell.memlint("check", "x.py", "--stdin-filename", "y.py", status=2).stdout == ""


def test_a_baseline_hides_what_is_known_while_lines_move(everything: Shell) -> None:
    needs = everything.memlint("check", "--write-baseline", status=2)
    assert "--write-baseline needs --baseline FILE" in needs.stderr
    written = everything.memlint("check", "--baseline", "b.json", "--write-baseline", status=0)
    assert written.stdout == "4 findings written to b.json\n"
    known = ("check", "--baseline", "b.json")
    everything.write("all.py", "import os\n\n\n" + EVERYTHING)
    quiet = everything.memlint(*known, status=0)
    assert quiet.stdout == "No findings in 1 file; 4 in the baseline.\n"
    everything.write("all.py", EVERYTHING + "flag_me(os)\n")
    new = everything.memlint(*known, "--output-format", "concise", "-q", status=1)
    assert new.stdout.startswith("all.py:8:1: warning[TOY101]")
    assert len(new.stdout.splitlines()) == 1
    everything.memlint(*known, "--write-baseline", status=0)
    everything.write("memlint.toml", 'baseline = "b.json"\n')
    assert everything.memlint("check", status=0).stderr == ""
    everything.write("b.json", "[]")
    assert everything.memlint("check", status=2).stderr.startswith("error: ")
    (everything.folder / "b.json").unlink()
    assert "b.json" in everything.memlint("check", status=2).stderr


def test_settings_can_be_shown_and_read_back(everything: Shell) -> None:
    everything.write(
        "memlint.toml",
        """\
        select = ["TOY1"]
        max-file-size = 1000
        target-device = "cuda"
        baseline = "known.json"
        [per-file-ignores]
        "a*.py" = ["noise"]
        [rules.flagged-call]
        strict = true
        """,
    )
    shown = everything.memlint("check", "--show-settings", "--fail-level", "info", status=0).stdout
    settings = tomllib.loads(shown)
    assert settings["select"] == ["TOY1"]
    assert settings["fail-level"] == "info"
    assert settings["per-file-ignores"] == {"a*.py": ["noise"]}
    assert settings["rules"] == {"flagged-call": {"strict": True}}
    everything.write("again.toml", shown)
    again = everything.memlint("check", "--show-settings", "--config", "again.toml", status=0)
    assert again.stdout == shown


def test_the_cache(everything: Shell) -> None:
    def cached(*arguments: str) -> str:
        return everything.memlint("check", "-v", *arguments).stderr.splitlines()[-1]

    cache = everything.folder / ".memlint_cache"
    assert "(0 from the cache)" in cached("--no-cache")
    assert not cache.exists()
    cached()
    assert cache.is_dir()
    first = everything.memlint("check", "--output-format", "json").stdout
    assert first == everything.memlint("check", "--output-format", "json", "--no-cache").stdout
    assert "(1 from the cache)" in cached()
    cached("--cache-dir", "elsewhere")
    assert (everything.folder / "elsewhere" / "CACHEDIR.TAG").is_file()
    everything.write("sub/memlint.toml", "")
    everything.write("sub/a.py", "flag_me()\n")
    cached()
    everything.write("precious/CACHEDIR.TAG", "of another tool\n")
    everything.write("memlint.toml", 'cache-dir = "precious"\n')
    removed = everything.memlint("clean", status=0).stdout.splitlines()
    assert sorted(removed) == [f"removed {Path('.memlint_cache')}", "removed sub/.memlint_cache"]
    assert not cache.exists()
    assert (everything.folder / "precious").is_dir()
    everything.write("memlint.toml", 'cache-dir = "elsewhere"\n')
    everything.write("elsewhere/notes.txt", "not of memlint\n")
    everything.memlint("clean", "-q", status=0)
    assert [p.name for p in (everything.folder / "elsewhere").iterdir()] == ["notes.txt"]


def test_jobs_do_not_change_the_report(everything: Shell) -> None:
    for number in range(8):
        everything.write(f"f{number}.py", EVERYTHING + "# filling\n" * 4_000)
    arguments = ("check", "--no-cache", "--output-format", "json", "--jobs")
    one = everything.memlint(*arguments, "1", status=1).stdout
    assert one == everything.memlint(*arguments, "3", status=1).stdout
    assert len(json.loads(one)["findings"]) == 36


def test_settings_of_a_nested_folder_decide_its_exit_status(shell: Shell) -> None:
    shell.write("memlint.toml", 'fail-level = "error"\n')
    shell.write("a.py", "flag_me()\n")
    shell.memlint("check", status=0)
    shell.write("strict/memlint.toml", 'fail-level = "info"\n')
    shell.write("strict/b.py", "light()\n")
    shell.memlint("check", status=1)
    shell.memlint("check", "--fail-level", "error", status=0)


@pytest.mark.skipif(sys.platform == "win32", reason="file names are Unicode there")
def test_any_file_name_can_be_shown(shell: Shell) -> None:
    path = shell.folder / "odd\udcff\n\x1b[31m.py"
    path.write_text("flag_me()\n")
    for name in ("full", "concise", "github", "json", "sarif"):
        done = shell.memlint("check", "--output-format", name, status=1, PYTHONUTF8="1")
        assert "\x1b" not in done.stdout
        assert "\udcff" not in done.stdout
