from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memlint.config import Resolver, Settings
from memlint.source.discover import Discovery, discover

Make = Callable[..., None]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Create files in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def create(*names: str, text: str = "") -> None:
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return create


def found(*paths: str | Path, **values: object) -> list[str]:
    return [target.path for target in discovery(*paths, **values).targets]


def discovery(*paths: str | Path, **values: object) -> Discovery:
    settings = Settings(root=Path.cwd(), **values)  # type: ignore[arg-type]
    return discover(paths or ["."], lambda _: settings)


def test_python_files_and_notebooks_sorted_by_path(make: Make) -> None:
    make("b.py", "a/z.py", "a/y.ipynb", "a/x.pyi", "readme.md", "a.py.txt")
    assert found() == ["a/y.ipynb", "a/z.py", "b.py"]


def test_overlapping_paths_give_each_file_once(make: Make, tmp_path: Path) -> None:
    make("a/x.py")
    assert found(".", "a", "a/x.py", "./a/../a/x.py", tmp_path / "a") == ["a/x.py"]


def test_a_named_file_of_any_suffix_is_taken(make: Make) -> None:
    make("script", "venv/x.py")
    assert found("script", "venv/x.py") == ["script", "venv/x.py"]


def test_paths_above_the_working_directory(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make("a/x.py", "a/b/y.py", "a/b/a/b/z.py", "c/a/y.py", ".git/HEAD")
    make(".gitignore", text="/c\n/a/b/y.py\n")
    monkeypatch.chdir("a/b")
    assert found("..") == ["../x.py", "a/b/z.py"]
    assert found("../..", ".", "../../c") == ["../../c/a/y.py", "../x.py", "a/b/z.py"]


def test_default_excludes(make: Make) -> None:
    make("ok.py", *(f"{folder}/x.py" for folder in (".git", ".venv", "venv", "node_modules")))
    make(*(f"deep/{folder}/x.py" for folder in ("__pycache__", "build", "dist", "site-packages")))
    assert found() == ["ok.py"]
    assert found(exclude=("dist",)) != ["ok.py"], "exclude replaces the defaults"


def test_exclude_and_extend_exclude(make: Make) -> None:
    make("a/x.py", "a/gen_x.py", "b/x.py", "build/x.py", "c/d/x.py")
    assert found(extend_exclude=("gen_*.py", "c/d")) == ["a/x.py", "b/x.py"]
    assert found(exclude=("a/*.py",)) == ["b/x.py", "build/x.py", "c/d/x.py"]
    assert found(exclude=(f"{Path.cwd()}/b/",), extend_exclude=("./c",)) == [
        "a/gen_x.py", "a/x.py", "build/x.py",
    ]  # fmt: skip


def test_force_exclude_holds_for_named_files(make: Make) -> None:
    make("build/sub/x.py", "ok.py")
    assert found("build/sub/x.py", "build", "ok.py", force_exclude=True) == ["ok.py"]


def test_gitignore_counts_inside_a_repository_only(make: Make) -> None:
    make("repo/a.py", "repo/gen/b.py", "repo/sub/c.py", "repo/sub/keep.py")
    make("repo/.gitignore", text="gen/\n*.py\n!keep.py\n!a.py\n")
    everything = ["repo/a.py", "repo/gen/b.py", "repo/sub/c.py", "repo/sub/keep.py"]
    assert found() == everything
    (Path.cwd() / "repo/.git").mkdir()
    assert found() == ["repo/a.py", "repo/sub/keep.py"]
    assert found("repo/sub") == ["repo/sub/keep.py"], "ignore files above the path count"
    assert found("repo/sub/c.py") == ["repo/sub/c.py"], "named files do not ask"
    assert found(respect_gitignore=False) == everything


def test_nested_ignore_files_info_exclude_and_nested_repositories(make: Make) -> None:
    make("a.py", "sub/a.py", "sub/b.py", "inner/a.py", "local.py")
    make(".git/info/exclude", text="local.py\n")
    make(".gitignore", text="a.py\n")
    make("sub/.gitignore", text="!a.py\nb.py\n")
    make("inner/.git/HEAD")
    assert found() == ["inner/a.py", "sub/a.py"]


def test_settings_change_where_a_configuration_lies(make: Make) -> None:
    make("a/x.py", "a/skip.py", "a/deep/skip.py", "b/skip.py", "a/plain/pyproject.toml")
    make("a/memlint.toml", text='extend-exclude = ["skip.py"]\n')
    targets = discover(["."], Resolver().for_directory).targets
    assert [target.path for target in targets] == ["a/x.py", "b/skip.py"]
    assert [target.inside for target in targets] == ["x.py", "b/skip.py"]
    assert targets[0].settings.root == Path.cwd() / "a"


def test_missing_paths_and_odd_ones_are_errors(make: Make) -> None:
    make("a.py")
    os.mkfifo("pipe.py")
    result = discovery("a.py", "gone.py", "pipe.py", "nul\0.py")
    assert [target.path for target in result.targets] == ["a.py"]
    assert {error.path: error.message for error in result.errors} == {
        "gone.py": "cannot be read: no such file or directory",
        "nul\0.py": "cannot be read: embedded null byte",
        "pipe.py": "not a regular file",
    }


def test_symbolic_links(make: Make, tmp_path: Path) -> None:
    make("real/a.py", "elsewhere/b.py")
    Path("real/loop").symlink_to(tmp_path / "real")
    Path("real/loop.py").symlink_to("loop.py")
    Path("real/broken.py").symlink_to("nowhere.py")
    Path("real/.#lock.py").symlink_to("user@host.1")
    Path("real/same.py").symlink_to("a.py")
    Path("real/other.py").symlink_to(tmp_path / "elsewhere/b.py")
    result = discovery("real")
    assert [target.path for target in result.targets] == ["real/a.py", "real/other.py"]
    assert [error.path for error in result.errors] == ["real/broken.py", "real/loop.py"]
    assert all("broken symbolic link" in error.message for error in result.errors)
    assert found("real/loop") == ["real/loop/a.py", "real/loop/other.py"], "a named link is entered"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that takes any bytes")
def test_names_with_odd_bytes(make: Make) -> None:
    with open(b"odd\xff.py", "wb"):
        pass
    assert [os.fsencode(path) for path in found()] == [b"odd\xff.py"]


def test_a_folder_that_cannot_be_listed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make("a/x.py", "b/y.py")
    scandir = os.scandir

    def refusing(path: str) -> object:
        if "b" in path:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    result = discovery()
    assert [target.path for target in result.targets] == ["a/x.py"]
    assert [(e.path, e.message) for e in result.errors] == [
        ("b", "cannot be read: permission denied")
    ]


def test_a_worktree_marks_a_repository_too(make: Make) -> None:
    make("a.py", "b.py")
    make(".git", text="gitdir: /elsewhere\n")
    make(".gitignore", text="b.py\n")
    assert found() == ["a.py"]


def test_discovery_loads_neither_pathspec_nor_a_toml_parser(make: Make) -> None:
    make("a.py", ".git/HEAD")
    make(".gitignore", text="*.log\nbuild/\n")
    code = (
        "import sys; from memlint.config import Resolver; from memlint.source.discover import *;"
        "print(len(discover(['.'], Resolver().for_directory).targets),"
        "{'pathspec', 'tomllib', 'tomli', 'libcst', 'rich'} & set(sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert ran.stdout == "1 set()\n"


def test_an_empty_path_is_an_error_not_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").touch()
    found = discover([""], lambda _: Settings(tmp_path))
    assert found.targets == []
    assert [error.message for error in found.errors] == ["an empty path names nothing"]


def test_above_a_linked_folder_is_where_it_really_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "real/sub").mkdir(parents=True)
    (tmp_path / "here/link").symlink_to(tmp_path / "real/sub")
    for folder in ("here", "real"):
        (tmp_path / folder / "a.py").touch()
    monkeypatch.chdir(tmp_path / "here")
    found = discover(["link/../a.py"], lambda _: Settings(tmp_path))
    assert [target.path for target in found.targets] == ["../real/a.py"]
