"""Entry points are read as the standard library reads them."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from memlint.packs import Pack, installed


@pytest.mark.parametrize("group", ["memlint.rules", "console_scripts", "pytest11", "no.such.group"])
def test_the_same_entry_points_as_the_standard_library(group: str) -> None:
    expected = sorted(
        {(p.name, p.value, p.dist.version) for p in entry_points(group=group) if p.dist}
    )
    assert [(p.name, p.package, p.version) for p in installed(group)] == expected


def test_the_first_of_two_installations_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, version in (("one", "2.0"), ("two", "1.0")):
        info = tmp_path / folder / f"toy_pack-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: toy-pack\nVersion: {version}\n"
        )
        (info / "entry_points.txt").write_text(
            f"[other]\nx = y\n\n[toy.group]\n# a comment\ntoy = toy_{folder}\n"
        )
    monkeypatch.setattr(sys, "path", [str(tmp_path / "one"), str(tmp_path / "two"), *sys.path])
    assert installed("toy.group") == [Pack("toy", "toy_one", "2.0")]
    assert [p.value for p in entry_points(group="toy.group")] == ["toy_one"]
