"""``memlint trace``: a program runs as it would without, and what was seen is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.conftest import heed_interrupts
from tests.tracer.command import Command
from tests.tracer.programs import HIDDEN_COPY

MIRROR = """\
import json, sys
print(json.dumps([
    sys.argv, __name__, sys.path[0], __file__, __package__,
    sys.modules["__main__"].__dict__ is globals(), __spec__ and __spec__.name,
]))
"""


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def trace(command: Command, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    return command.memlint("trace", "--no-replay", *arguments, status=status)


def test_a_script_sees_what_it_sees_without(command: Command) -> None:
    command.write("jobs/mirror.py", MIRROR)
    arguments = ("jobs/mirror.py", "-m", "--steps", "3", "-h", "--", "x")
    assert trace(command, *arguments).stdout == command.python(*arguments).stdout


def test_a_module_sees_what_it_sees_without(command: Command) -> None:
    command.write("package/__init__.py", "")
    command.write("package/module.py", MIRROR)
    command.write("package/__main__.py", MIRROR)
    for name in ("package.module", "package"):
        arguments = ("-m", name, "-q", "x")
        assert trace(command, *arguments).stdout == command.python(*arguments).stdout


def test_a_folder_sees_what_it_sees_without(command: Command) -> None:
    command.write("app/__main__.py", MIRROR)
    traced = json.loads(trace(command, "app", "x").stdout)
    plain = json.loads(command.python("app", "x").stdout)
    # How runpy spells the folder in ``sys.argv`` is left to it.
    assert traced[0][1:] == plain[0][1:]
    assert traced[1:4] == plain[1:4]


def test_what_a_script_imports_is_found_beside_it(command: Command) -> None:
    command.write("jobs/helper.py", "VALUE = 7\n")
    command.write("jobs/program.py", "import helper\nprint(helper.VALUE)\n")
    assert trace(command, "jobs/program.py").stdout == "7\n"


@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [
        ("", 0, ""),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('too bad')", 1, "too bad\n"),
        ("raise ValueError('worse')", 1, "ValueError: worse\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt\n"),
    ],
)
def test_the_evidence_is_written_however_it_ends(
    command: Command, ending: str, status: int, said: str
) -> None:
    command.write("program.py", f"{HIDDEN_COPY}\n{ending}\n")
    done = trace(command, "-o", "out.json", "program.py", status=status)
    assert said in done.stderr
    assert "MEM312" in done.stderr
    assert any(one["code"] == "MEM312" for one in command.load("out.json")["findings"])


def test_a_failure_is_reported_as_python_reports_it(command: Command) -> None:
    command.write("program.py", "def work():\n    return 1 / 0\n\n\nwork()\n")
    traced = trace(command, "-q", "program.py", status=1)
    assert traced.stderr == command.python("program.py").stderr
    command.write("broken.py", "def work(:\n")
    traced = trace(command, "-q", "broken.py", status=1)
    assert traced.stderr == command.python("broken.py").stderr


def test_a_hook_of_the_program_sees_the_failure(command: Command) -> None:
    hook = "import sys\nsys.excepthook = lambda kind, *_: print('hook', kind.__name__)\n"
    command.write("program.py", f"{hook}1 / 0\n")
    assert trace(command, "-q", "program.py", status=1).stdout == "hook ZeroDivisionError\n"


def test_an_interrupted_program_leaves_its_evidence(command: Command) -> None:
    command.write(
        "program.py",
        HIDDEN_COPY + "import pathlib, time\npathlib.Path('ready').touch()\ntime.sleep(60)\n",
    )
    call = ("-m", "memlint", "trace", "--no-replay", "-q", "-o", "out.json", "program.py")
    process = subprocess.Popen(
        [sys.executable, *call],
        cwd=command.folder,
        env=command.environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    deadline = time.monotonic() + 60
    while not (command.folder / "ready").exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.endswith("KeyboardInterrupt\n")
    assert command.load("out.json")["findings"]


def test_a_forked_child_tells_nothing(command: Command) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    fork = "import os, sys\nif os.fork() == 0:\n    sys.exit(3)\nprint(os.wait()[1] >> 8)\n"
    command.write("program.py", HIDDEN_COPY + fork)
    done = trace(command, "program.py")
    assert done.stdout == "3\n"
    assert done.stderr.count("memlint trace:") == 1


def test_the_page_is_written_however_it_ends(command: Command) -> None:
    pytest.importorskip("jinja2")
    program = HIDDEN_COPY + "import os\nos.mkdir('sub')\nos.chdir('sub')\nraise ValueError\n"
    command.write("program.py", program)
    done = trace(command, "-q", "--html", "out.html", "program.py", status=1)
    assert done.stderr.endswith("ValueError\n")
    page = (command.folder / "out.html").read_text("utf-8")
    assert "<mark>moved.reshape(-1, 16)</mark>" in page
    assert "no such folder: missing" in (
        trace(command, "--html", "missing/out.html", "program.py", status=2).stderr
    )


def test_a_forked_child_writes_no_page(command: Command) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    fork = (
        "import os, sys\nif os.fork() == 0:\n    sys.exit(3)\n"
        "print(os.wait()[1] >> 8, os.path.exists('out.html'))\n"
    )
    command.write("program.py", HIDDEN_COPY + fork)
    assert trace(command, "--html", "out.html", "program.py").stdout == "3 False\n"
    assert (command.folder / "out.html").exists()


def test_output_that_cannot_be_encoded_fails_as_it_does_without(command: Command) -> None:
    command.write("program.py", "print('\\u2026')\n")
    command.environment["PYTHONIOENCODING"] = "ascii:strict"
    traced = trace(command, "-q", "program.py", status=1)
    assert traced.stderr == command.python("program.py").stderr


def test_options(command: Command) -> None:
    steps = "import torch\nx = torch.ones(8)\n"
    optimizer = (
        "p = torch.nn.Parameter(x)\no = torch.optim.SGD([p])\n"
        "for _ in range(6):\n    (p * p).sum().backward()\n    o.step()\n"
    )
    command.write("program.py", steps + optimizer)
    trace(command, "-q", "--steps", "2", "--warmup", "3", "-o", "out.json", "program.py")
    assert command.load("out.json")["meta"]["steps"] == 2
    assert command.load("out.json")["meta"]["complete"] is False
    command.write("other.py", HIDDEN_COPY)
    command.write("program.py", "import other\n")
    trace(command, "-q", "--exclude", "other.py", "-o", "out.json", "program.py")
    assert {one["path"] for one in command.load("out.json")["sites"]} == {"program.py"}
    assert trace(command, "-q", "program.py").stderr == ""


def test_what_cannot_be_run(command: Command) -> None:
    command.write("program.py", "")
    assert "no such program: nothing.py" in trace(command, "nothing.py", status=2).stderr
    assert "No module named nothing" in trace(command, "-m", "nothing", status=1).stderr
    no_folder = ("-o", "missing/out.json", "program.py")
    assert "no such folder: missing" in trace(command, *no_folder, status=2).stderr
    assert "Missing argument" in trace(command, status=2).stderr
    over = trace(command, "-o", "program.py", "program.py", status=2)
    assert "program.py is what is read" in over.stderr
    twice = trace(command, "-o", "out.json", "--trace-event", "out.json", "program.py", status=2)
    assert "--trace-event: out.json is written by --output already" in twice.stderr


def test_without_torch_it_is_said_what_to_install(command: Command) -> None:
    command.write("torch/__init__.py", "raise ModuleNotFoundError('no', name='torch')\n")
    command.write("program.py", "print('ran')\n")
    paths = os.pathsep.join((str(command.folder), command.environment["PYTHONPATH"]))
    done = command.memlint("trace", "program.py", status=2, PYTHONPATH=paths)
    assert "memlint-ml[trace]" in done.stderr
    assert done.stdout == ""
