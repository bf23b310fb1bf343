"""Readers give a Python object for each entry of what they read."""

from __future__ import annotations

import csv
import glob
import gzip
import json
import linecache
import os
import pickle
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from memlint.analysis.knowledge.python_objects import (
    ITERATORS,
    NAMES,
    READERS,
    READING_METHODS,
    STRINGS,
    TABLES,
    UNPICKLED,
)

COUNT = 25


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with as many files as each of them has lines."""
    text = "".join(f"{k},name {k}\n" for k in range(COUNT))
    for k in range(COUNT):
        (tmp_path / f"{k}.txt").write_text(text)
    return tmp_path


def as_json(folder: Path) -> str:
    return json.dumps(sorted(os.listdir(folder)))


READS: dict[str, Callable[[Path], Iterable[Any]]] = {
    "json.load": lambda f: _load_json(f),
    "json.loads": lambda f: json.loads(as_json(f)),
    "glob.glob": lambda f: glob.glob(f"{f}/*.txt"),
    "glob.iglob": lambda f: glob.iglob(f"{f}/*.txt"),
    "os.listdir": os.listdir,
    "os.scandir": os.scandir,
    "csv.reader": lambda f: csv.reader((f / "0.txt").read_text().splitlines()),
    "csv.DictReader": lambda f: csv.DictReader(("a,b\n" + (f / "0.txt").read_text()).splitlines()),
    "linecache.getlines": lambda f: linecache.getlines(str(f / "0.txt")),
    "builtins.open": lambda f: (f / "0.txt").open().readlines(),
    "gzip.open": lambda f: _zipped(f).readlines(),
    ".open": lambda f: (f / "0.txt").open().readlines(),
    ".readlines": lambda f: (f / "0.txt").open().readlines(),
    ".splitlines": lambda f: (f / "0.txt").read_text().splitlines(),
    ".glob": lambda f: f.glob("*.txt"),
    ".rglob": lambda f: f.rglob("*.txt"),
    ".iterdir": Path.iterdir,
    ".fetchall": lambda f: _queried(f).fetchall(),
    ".namelist": lambda f: _archived(f).namelist(),
    ".infolist": lambda f: _archived(f).infolist(),
    ".getnames": lambda f: _tarred(f).getnames(),
}


def _load_json(folder: Path) -> Any:
    path = folder.parent / "index.json"
    path.write_text(as_json(folder))
    with path.open() as file:
        return json.load(file)


def _queried(folder: Path) -> sqlite3.Cursor:
    rows = sqlite3.connect(":memory:")
    rows.execute("create table files (name text)")
    rows.executemany("insert into files values (?)", [(name,) for name in os.listdir(folder)])
    return rows.execute("select name from files")


def _archived(folder: Path) -> zipfile.ZipFile:
    path = folder.parent / "files.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for one in folder.iterdir():
            archive.write(one, one.name)
    return zipfile.ZipFile(path)


def _tarred(folder: Path) -> tarfile.TarFile:
    path = folder.parent / "files.tar"
    with tarfile.open(path, "w") as archive:
        for one in folder.iterdir():
            archive.add(one, one.name)
    return tarfile.open(path)


def _zipped(folder: Path) -> Any:
    path = folder.parent / "lines.gz"
    with gzip.open(path, "wt") as file:
        file.write((folder / "0.txt").read_text())
    return gzip.open(path, "rt")


@pytest.mark.parametrize("name", sorted(READS))
def test_readers_give_an_object_for_each_entry(name: str, folder: Path) -> None:
    assert name in READERS | ITERATORS | READING_METHODS
    entries = list(READS[name](folder))
    assert len(entries) == COUNT
    assert len({id(entry) for entry in entries}) == COUNT
    assert not any(hasattr(entry, "__array_interface__") for entry in entries)
    if name in NAMES:
        assert all(isinstance(entry, str) for entry in entries)


def test_a_pickle_gives_what_was_written() -> None:
    entries = [{"path": f"{k}.png"} for k in range(COUNT)]
    assert pickle.loads(pickle.dumps(entries)) == entries
    assert {"pickle.load", "pickle.loads"} <= UNPICKLED


def test_an_array_of_objects_is_loaded_only_where_pickles_are_allowed(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "a.npy", np.array([{"path": "a"}], dtype=object))
    assert "numpy.load" in UNPICKLED
    assert np.load(tmp_path / "a.npy", allow_pickle=True)[0] == {"path": "a"}
    with pytest.raises(ValueError, match="allow_pickle"):
        np.load(tmp_path / "a.npy")


def test_a_walk_gives_a_list_of_names(folder: Path) -> None:
    ((_, _, names),) = os.walk(folder)
    assert len(names) == COUNT


def test_yaml_gives_python_objects() -> None:
    yaml = pytest.importorskip("yaml")
    assert {"yaml.load", "yaml.safe_load", "yaml.full_load"} <= READERS
    assert yaml.safe_load("[a, b]") == yaml.full_load("[a, b]") == ["a", "b"]


def test_columns_of_text_are_columns_of_objects_before_pandas_3() -> None:
    pandas = pytest.importorskip("pandas")
    assert "pandas.DataFrame" in TABLES
    column = pandas.DataFrame({"name": ["a", "b"]})["name"]
    assert int(pandas.__version__.partition(".")[0]) >= 3 or column.dtype == object


@pytest.mark.parametrize("name", sorted(n for n in STRINGS if n.startswith(".")))
def test_methods_are_those_of_strings_bytes_or_paths(name: str) -> None:
    assert any(hasattr(kind, name[1:]) for kind in (str, bytes, Path))
