"""Scripts that depend on how they are run, under ``memlint trace`` and without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.tracer.command import Command


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def run(command: Command, *call: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *call],
        cwd=command.folder,
        env=command.environment,
        capture_output=True,
        input=given,
        text=True,
        timeout=120,
    )


TRACE = ("-m", "memlint", "trace", "--no-replay", "-q", "-o", "out.json")

PROGRAMS = {
    "has ordinary habits": (
        "import os, pickle, signal, sys, typing, warnings, torch\n"
        "from dataclasses import dataclass\n\n"
        "@dataclass\nclass Thing:\n    x: 'int' = 1\n\n"
        "print(pickle.loads(pickle.dumps(Thing())), typing.get_type_hints(Thing))\n"
        "print(input('? '), sys.stdin.read().upper())\n"
        "warnings.warn('careful')\n"
        "def deep():\n    deep()\n"
        "try:\n    deep()\nexcept RecursionError:\n    print('deep')\n"
        "signal.signal(signal.SIGINT, lambda *_: print('told', torch.ones(2).sum().item()))\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "os.mkdir('deep')\nos.chdir('deep')\nopen('made', 'w').write('x')\nprint(os.getcwd())\n"
        "sys.argv[:] = ['other']\nprint(sys.argv)\n"
        "sys.exit(300)\n"
    ),
    "does something at exit": (
        "import atexit, threading, time, torch\n"
        "def late():\n    time.sleep(0.5)\n    print(torch.ones(2).t().contiguous().sum().item())\n"
        "atexit.register(lambda: print('last', __name__, torch.ones(2).exp().sum().item() > 5))\n"
        "threading.Thread(target=late).start()\nprint('main ended')\n"
    ),
    "spawns children that import it": (
        "import torch\nimport torch.multiprocessing as mp\n\n"
        "def work(n):\n    return (torch.ones(3) * n).sum().item()\n\n"
        "def fill(x):\n    x.fill_(3)\n\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(work, range(3)))\n"
        "    with mp.get_context('fork').Pool(1) as pool:\n"
        "        print(pool.map(work, range(3)))\n"
        "    x = torch.zeros(4).share_memory_()\n"
        "    child = mp.get_context('spawn').Process(target=fill, args=(x,))\n"
        "    child.start()\n    child.join()\n    print(x, child.exitcode)\n"
    ),
    "raises one error from another": "raise ValueError('a') from KeyError('b')\n",
    "closes its streams": "import sys\nsys.stdout.write('x')\nsys.stdout.close()\n",
    "puts something else in their place": (
        "import sys\nclass Twice:\n    def write(self, text):\n"
        "        sys.__stdout__.write(text * 2)\n"
        "    def flush(self):\n        sys.__stdout__.flush()\nsys.stdout = Twice()\nprint('x')\n"
    ),
    "starts itself": (
        "import subprocess, sys\n"
        "if len(sys.argv) == 1:\n    done = subprocess.run([sys.executable, __file__, 'again'])\n"
        "    print('back', done.returncode, flush=True)\nelse:\n    sys.exit(4)\n"
    ),
    "has a shebang and an encoding": "#!/usr/bin/env python\n# coding: latin-1\nprint('\xe4')\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_does_without(command: Command, name: str) -> None:
    encoding = "latin-1" if "latin-1" in PROGRAMS[name] else "utf-8"
    for folder in ("plain", "traced"):
        (command.folder / folder).mkdir()
        (command.folder / folder / "program.py").write_text(PROGRAMS[name], encoding)
    results = []
    for folder, call in (("plain", ()), ("traced", TRACE)):
        place = Command(command.folder / folder)
        done = run(place, *call, "program.py", given="one\ntwo\n")
        told = [text.replace(str(place.folder), "FOLDER") for text in (done.stdout, done.stderr)]
        results.append((done.returncode, *told))
    assert results[1] == results[0]
    assert (command.folder / "traced" / "out.json").exists()


def test_what_ends_at_once_leaves_no_evidence(command: Command) -> None:
    command.write("program.py", "import os\nprint('x', flush=True)\nos._exit(5)\n")
    done = run(command, *TRACE, "program.py")
    assert (done.returncode, done.stdout, done.stderr) == (5, "x\n", "")
    assert not (command.folder / "out.json").exists()


def test_a_module_imports_its_neighbours(command: Command) -> None:
    command.write("package/__init__.py", "where = 'package'\n")
    command.write("package/layers.py", "import torch\n\ndef work(x):\n    return x.exp()\n")
    command.write(
        "package/train.py",
        "import torch\nfrom . import where\nfrom .layers import work\n"
        "print(where, __package__, __spec__.name, work(torch.zeros(1)).item())\n",
    )
    plain = run(command, "-m", "package.train", "x")
    traced = run(command, *TRACE, "-m", "package.train", "x")
    assert (traced.returncode, traced.stdout, traced.stderr) == (0, plain.stdout, plain.stderr)
    assert plain.stdout == "package package package.train 1.0\n"
    assert "package/layers.py" in {one["path"] for one in command.load("out.json")["sites"]}


def test_a_program_that_traces_itself_is_told_that_traces_do_not_nest(command: Command) -> None:
    command.write("program.py", "import memlint\nwith memlint.trace():\n    pass\n")
    done = run(command, *TRACE, "program.py")
    assert done.returncode == 1
    assert "TraceError: a trace is open already: traces do not nest" in done.stderr


def test_evidence_that_cannot_be_written_is_said(command: Command) -> None:
    command.write("program.py", "import os\nprint('ran')\nos.rmdir('gone')\n")
    (command.folder / "gone").mkdir()
    call = (*TRACE[:-1], "gone/out.json")
    done = run(command, *call, "program.py")
    assert done.stdout == "ran\n"
    assert "Traceback" not in done.stderr
    assert "gone/out.json" in done.stderr
    assert done.returncode == 2
