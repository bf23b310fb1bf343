"""The project around the code: its face, its hooks, its texts."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import memlint
from tests.cli.conftest import TOYPACK

ROOT = Path(__file__).parents[1]


def test_the_public_face_is_complete_and_lazy() -> None:
    names = [name for name in dir(memlint) if not name.startswith("_")]
    assert {"check", "Finding", "Report", "Rule", "Settings"} <= set(names)
    for name in names:
        assert getattr(memlint, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = memlint.nothing
    program = "import sys, memlint; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert [name for name in modules if name.startswith("memlint")] == ["memlint"]


def sources(folder: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> set[int]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)
    }


def imports(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_the_tool_knows_no_rule_of_the_pack_by_name() -> None:
    for path, tree in sources("memlint"):
        assert "memlint_rules" not in imports(tree), path
        described = docstrings(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = re.search(r"\bMEM[1-8]\d\d\b", node.value)
                assert named is None or id(node) in described, (path, node.value)


def test_nothing_imports_the_libraries_that_it_speaks_of() -> None:
    for folder in ("memlint", "rules"):
        for path, tree in sources(folder):
            top_level = ast.Module(body=list(tree.body), type_ignores=[])
            direct = ast.Module(
                body=[n for n in top_level.body if isinstance(n, ast.Import | ast.ImportFrom)],
                type_ignores=[],
            )
            heavy = {"torch", "numpy", "numba", "triton", "cupy", "libcst", "rich", "memlint_rules"}
            if path.parent.name == "tracer":
                heavy -= {"torch"}  # read only where a trace is entered
            assert not imports(direct) & heavy, path


def test_the_map_of_the_house_is_true() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    house = text.partition("```text\n")[2].partition("```")[0]
    stack: list[str] = []
    for row in house.splitlines():
        indent, name = len(row) - len(row.lstrip()), row.split()[0]
        if "<" in name:
            continue
        stack[indent // 2 :] = [name.rstrip("/")]
        assert ROOT.joinpath(*stack).exists(), "/".join(stack)
    for path in re.findall(r"`(\w+/\w+\.py)`", text):
        assert (ROOT / "memlint" / path).is_file(), path


def test_the_readme_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "$ pip install . && memlint check fixtures/demo/train.py" in text
    assert '$ pip install -e ".[dev]" && pytest' in text
    assert "memlint-ml" in text


def test_the_changelog_knows_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {memlint.__version__}" in text


def test_ci_can_be_run() -> None:
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)


def hooks() -> list[dict[str, Any]]:
    loaded = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert isinstance(loaded, list)
    return loaded


class Repository:
    """A throw-away repository in which the project's hooks are installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        scripts = str(Path(sys.executable).parent)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PRE_COMMIT"))},
            "PATH": os.pathsep.join((scripts, os.environ["PATH"])),
            "PRE_COMMIT_HOME": str(folder.parent / "pre-commit"),
            "PYTHONPATH": str(TOYPACK),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def must(self, *command: str) -> None:
        done = self.run(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)

    def commit(self, **files: str) -> subprocess.CompletedProcess[str]:
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text, encoding="utf-8")
            self.must("git", "add", f"{name}.py")
        return self.run("git", "commit", "-m", "change")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder = tmp_path / "repository"
    folder.mkdir()
    repository = Repository(folder)
    repository.must("git", "init", "--quiet")
    repository.must("git", "config", "user.name", "Somebody")
    repository.must("git", "config", "user.email", "somebody@example.org")
    # As the manifest says, but with the command that is installed: an environment of its own
    # could only be filled from a network.
    local = [{**hook, "language": "system"} for hook in hooks()]
    config = {"repos": [{"repo": "local", "hooks": local}]}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    repository.must("git", "add", ".pre-commit-config.yaml")
    repository.must("pre-commit", "install")
    return repository


def test_the_hook_blocks_a_finding_and_lets_a_clean_file_pass(repository: Repository) -> None:
    blocked = repository.commit(bad="flag_me()\n", other="spare_me()\n")
    assert blocked.returncode == 1
    assert "TOY101" in blocked.stdout + blocked.stderr
    assert repository.run("git", "rev-parse", "HEAD").returncode != 0
    passed = repository.commit(bad="spare_me()\n")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert repository.run("git", "rev-parse", "HEAD").returncode == 0


def test_the_hook_leaves_excluded_files_alone(repository: Repository) -> None:
    (repository.folder / "memlint.toml").write_text('extend-exclude = ["old.py"]\n')
    assert repository.commit(old="flag_me()\n").returncode == 0


def test_memlint_is_sound_by_its_own_rules() -> None:
    memlint_command = str(Path(sys.executable).with_name("memlint"))
    done = subprocess.run(
        [memlint_command, "check", "--no-cache", "--select", "ALL", "--fail-level", "info"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
