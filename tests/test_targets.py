"""Which versions a project supports: by its settings, or by what it requires."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlint.config import Settings
from memlint.targets import Targets, forget_requirements, targets_of


@pytest.fixture(autouse=True)
def forget() -> None:
    forget_requirements()


@pytest.mark.parametrize(
    ("specifier", "oldest"),
    [
        (">=2.1", (2, 1)),
        ("==2.0.1", (2, 0, 1)),
        ("~=2.4", (2, 4)),
        (">=1.8,<3", (1, 8)),
        ("[extra]>=2.2", (2, 2)),
        (">=2.6 ; python_version < '3.13'", (2, 6)),
        (" (>=2.3)", (2, 3)),
        ("<2.0", (0,)),
        ("", None),
        ("!=2.5", None),
        (" @ https://example.org/torch-2.1.whl", None),
    ],
)
def test_requirements(tmp_path: Path, specifier: str, oldest: tuple[int, ...] | None) -> None:
    (tmp_path / "requirements.txt").write_text(f"# torch==0.1\n-r other.txt\ntorch{specifier}\n")
    assert targets_of(Settings(tmp_path)).torch == oldest


def test_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nrequires-python = ">=3.10"\ndependencies = ["numpy>=1.26"]\n'
        '[project.optional-dependencies]\ngpu = ["torch>=2.4,<3"]\n'
    )
    assert targets_of(Settings(tmp_path)) == Targets((2, 4), (1, 26), (3, 10))


def test_poetry(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.poetry.dependencies]\npython = "^3.9"\nnumpy = "1.24.*"\n'
        'torch = {version = "^2.1", optional = true}\n'
    )
    assert targets_of(Settings(tmp_path)) == Targets((2, 1), (1, 24), (3, 9))


def test_the_oldest_of_several(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.4\n")
    (tmp_path / "requirements-old.txt").write_text("torch==1.13.1\n")
    assert targets_of(Settings(tmp_path)).torch == (1, 13, 1)


def test_settings_win(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.4\n")
    assert targets_of(Settings(tmp_path, target_torch="1.9")).torch == (1, 9)


@pytest.mark.parametrize("text", ["[project", "project = 3\n", '[project]\ndependencies = "x"\n'])
def test_odd_files_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert targets_of(Settings(tmp_path)) == Targets()


def test_unknown_means_newest_and_is_said() -> None:
    unknown, known = Targets(), Targets(torch=(2, 0, 1))
    assert unknown.has("torch", (2, 9))
    assert unknown.proviso("torch", (2, 1)) == " (torch >= 2.1)"
    assert known.has("torch", (2, 0))
    assert not known.has("torch", (2, 1))
    assert known.proviso("torch", (2, 0)) == ""
