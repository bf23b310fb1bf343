from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memlint.config import forget_files
from memlint.linter.rules import all_rules
from memlint.targets import forget_requirements
from tests.packs import FLAG_PACK

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def flag_pack(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the pack of test rules an installed one."""
    monkeypatch.syspath_prepend(str(FLAG_PACK))
    importlib.invalidate_caches()
    all_rules.cache_clear()
    yield
    all_rules.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "flag_rules"]:
        del sys.modules[name]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file in a fresh working directory."""
    monkeypatch.chdir(tmp_path)
    forget_files()
    forget_requirements()

    def create(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return create
