"""Ignore patterns, compared with what git itself says."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from memlint.config import Settings
from memlint.source.discover import discover
from memlint.source.gitignore import IgnorePatterns

# Letters beyond ASCII are left out: git matches bytes, so that "?" is half of an "é" to it.
FOLDERS = ("", "a/", "a/b/", "build/", "a/build/", "src/", "src/gen/", "a/b/c d/", "x.y/", "[z]/")
FILES = ("m.py", "n.py", "mm.py", "test_m.py", "gen.py", "#h.py", "!bang.py", "a-b.py")
SEGMENTS = (
    "a", "b", "build", "src", "gen", "*.py", "m.py", "m*.py", "?.py", "[mn].py", "[!m].py", "*",
    "**", "test_*", "x.?", "[a-m]*.py", "c d", r"\#h.py", r"\!bang.py", "[[:alpha:]].py",
    "[^a-m].py", "x.y", r"\[z\]", "[z]", "a[", r"m\.py", "gen.py", "***", "a-[a-c].py", "[]a].py",
)  # fmt: skip


def _random_lines(rng: random.Random) -> list[str]:
    lines = []
    for _ in range(rng.randint(1, 6)):
        body = "/".join(rng.choice(SEGMENTS) for _ in range(rng.choice((1, 1, 1, 2, 2, 3))))
        start = rng.choice(("", "", "", "!", "/", "!/"))
        lines.append(start + body + rng.choice(("", "", "/", " ", "/**")))
    return lines


def _tree(root: Path) -> None:
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (root / folder / name).write_text("")


def _untracked(root: Path) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "-z"],
        cwd=root, capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    return {name for name in listed.stdout.decode().split("\0") if name.endswith(".py")}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_walk_sees_what_git_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    root = tmp_path / "repository"
    _tree(root)
    subprocess.run(["git", "init", "-q", str(root)], check=True, timeout=30)
    monkeypatch.chdir(root)
    rng = random.Random(20)
    settings = Settings(root=root, exclude=(".git",))
    ignored = 0
    for _ in range(80):
        holders = [root, *rng.sample([root / folder for folder in FOLDERS[1:]], 2)]
        texts = {holder / ".gitignore": "\n".join(_random_lines(rng)) for holder in holders}
        texts[root / ".git/info/exclude"] = "\n".join(_random_lines(rng)) + "\n"
        for path, text in texts.items():
            path.write_text(text)
        ours = {target.path for target in discover(["."], lambda _: settings).targets}
        expected = _untracked(root)
        assert ours == expected, [
            sorted(ours ^ expected),
            *((p.as_posix()[len(str(root)) :], t) for p, t in texts.items()),
        ]
        ignored += len(expected) < len(FOLDERS) * len(FILES)
        for path in texts:
            path.write_text("")
    assert ignored > 60, "the patterns must ignore something for this to mean anything"


def test_the_last_pattern_that_matches_decides() -> None:
    patterns = IgnorePatterns(["*.py", "!keep.py", "/keep.py"])
    assert patterns.ignores("a/other.py", "other.py", False) is True
    assert patterns.ignores("a/keep.py", "keep.py", False) is False
    assert patterns.ignores("keep.py", "keep.py", False) is True
    assert patterns.ignores("a/readme.md", "readme.md", False) is None


def test_letters_beyond_ascii_count_as_one_character() -> None:
    assert IgnorePatterns(["?.py"]).ignores("é.py", "é.py", False) is True
    assert IgnorePatterns(["é*"]).ignores("été.py", "été.py", False) is True


def test_comments_blank_lines_and_windows_line_ends() -> None:
    assert not IgnorePatterns(["# comment", "", "   ", "/", "!"])
    assert IgnorePatterns(["build/\r\n"]).ignores("build", "build", True) is True


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 25 + "b.py", "a" * 240 + ".py"),
        ("**/a/" * 20 + "b.py", "a/" * 500 + "x.py"),
        ("x/" + "*a*/**/" * 20 + "b.py", "x/" + "aaa/" * 500 + "x.py"),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    started = time.monotonic()
    assert IgnorePatterns([pattern]).ignores(path, path.rpartition("/")[2], False) is None
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("*a*b*c.py", "xabcabc.py", True),
        ("*ab*ab.py", "ab.py", False),
        ("**/a*b/**/c", "ax/ab/c", True),
        ("**/a*b/**/c", "ax/a/c", False),
        ("**/a/**/b/**/c", "a/c/b/a/b/c", True),
        ("x/**/a/**/a/**/c", "x/a/c", False),
        ("~own~*a*b", "~own~aab", True),
        ("build/", "src/build/a.py", True),
        ("build/", "src/build", False),
        ("!a.py", "a.py", False),
        ("[z-a]", "a", False),
    ],
)
def test_a_pattern_covers_what_lies_below_it(pattern: str, path: str, covered: bool) -> None:
    assert IgnorePatterns([pattern]).cover(path) is covered
