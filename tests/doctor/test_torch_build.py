"""PyTorch is asked in a process of its own, and whatever becomes of that is an answer."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from memlint.doctor.checks.allocators import _fault, _options
from memlint.doctor.facts.torch_build import (
    NOT_INSTALLED,
    TorchBuild,
    ask_torch,
    read_answer,
)
from memlint.doctor.unknown import Unknown

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module torch.py that goes before the installed one."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    return tmp_path / "torch.py"


@needs_torch
def test_the_installed_one_answers() -> None:
    found = ask_torch(300)()

    assert isinstance(found, TorchBuild)
    assert found.version.split("+")[0] == importlib.metadata.version("torch").split("+")[0]
    assert found.threads >= 1
    assert found.available == (found.devices > 0)


def test_one_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert ask_torch()() is NOT_INSTALLED


def test_one_whose_import_fails(fake: Path) -> None:
    fake.write_text("raise ImportError('libcudart.so.12')")

    assert ask_torch(300)() == Unknown("importing PyTorch failed with exit status 1")


def test_one_that_ends_the_process(fake: Path) -> None:
    fake.write_text("import os; os.abort()")

    assert ask_torch(300)() == Unknown("importing PyTorch failed with exit status -6")


def test_one_that_takes_too_long(fake: Path) -> None:
    fake.write_text("import time; time.sleep(3600)")

    assert ask_torch(0.5)() == Unknown("importing PyTorch took more than 0.5 seconds")


def test_one_that_lacks_what_is_asked(fake: Path) -> None:
    fake.write_text("__version__ = '0.1'")

    assert ask_torch(300)() == Unknown("importing PyTorch failed with exit status 1")


def test_a_file_in_the_working_directory_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("open('imported', 'w').close()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())

    ask_torch(300)()

    assert not (tmp_path / "imported").exists()


ANSWER = {
    "version": "2.9.0",
    "cuda": None,
    "hip": None,
    "threads": 2,
    "available": False,
    "devices": 0,
    "mps": False,
}


def test_what_plugins_print_is_left_out() -> None:
    output = b"a plugin says hello\n" + json.dumps(ANSWER).encode() + b"\n"

    assert read_answer(output) == TorchBuild("2.9.0", None, None, 2, False, 0, False)


@pytest.mark.parametrize("output", [b"", b"\n", b"{}\n", b"[1]\n", b"\xff\n", b"{\n"])
def test_other_output_is_no_answer(output: bytes) -> None:
    assert isinstance(read_answer(output), Unknown)


SETTINGS = (
    "expandable_segments:True",
    "expandable_segments=True",
    "expandable_segments:true",
    "max_split_size_mb:512",
    "max_split_size_mb",
    "backend:native, garbage_collection_threshold:0.8",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    "roundup_power2_divisions:[256:1,>:8],max_split_size_mb:64",
    "pinned_use_background_threads:yes",
)


@needs_torch
def test_settings_are_refused_where_pytorch_refuses_them() -> None:
    code = (
        "import json, sys, torch\n"
        "answers = []\n"
        "for settings in sys.argv[1:]:\n"
        "    try:\n"
        "        torch._C._accelerator_setAllocatorSettings(settings)\n"
        "        answers.append(False)\n"
        "    except (RuntimeError, ValueError):\n"
        "        answers.append(True)\n"
        "print(json.dumps(answers))\n"
    )
    command = [sys.executable, "-c", code, *SETTINGS]
    done = subprocess.run(command, capture_output=True, check=False)
    if b"_accelerator_setAllocatorSettings" in done.stderr:
        pytest.skip("this PyTorch lets nobody try settings on the CPU")

    assert [any(map(_fault, _options(settings))) for settings in SETTINGS] == json.loads(
        done.stdout
    )


def huge_bytes(code: str, **environment: str) -> int:
    """Bytes in huge pages that a program holds at its end."""
    ending = (
        "\nfor line in open('/proc/self/smaps_rollup'):\n"
        "    if line.startswith('AnonHugePages'):\n"
        "        print(int(line.split()[1]) * 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + ending],
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        check=True,
    )
    return int(done.stdout)


@needs_torch
@pytest.mark.skipif(sys.platform != "linux", reason="huge pages of Linux")
def test_what_is_said_of_pytorch_and_numpy_holds_where_programs_must_ask() -> None:
    mode = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    if "[madvise]" not in mode:
        pytest.skip("programs need not ask here, or in vain")
    tensor = "import torch; kept = torch.ones(1 << 26)"
    array = "import numpy; kept = numpy.ones(1 << 25)"
    size = 1 << 28

    assert huge_bytes(tensor) < size / 2 < huge_bytes(tensor, THP_MEM_ALLOC_ENABLE="1")
    assert huge_bytes(tensor, THP_MEM_ALLOC_ENABLE="yes") < size / 2
    assert huge_bytes(array, NUMPY_MADVISE_HUGEPAGE="0") < size / 2 < huge_bytes(array)
    with pytest.raises(subprocess.CalledProcessError):
        huge_bytes(array, NUMPY_MADVISE_HUGEPAGE="yes")
