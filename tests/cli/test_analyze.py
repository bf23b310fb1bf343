"""``memlint analyze``: what a profiler's trace tells, in the formats of ``memlint check``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib import resources

import jsonschema
import pytest

from tests.conftest import heed_interrupts
from tests.kineto.traces import Recording
from tests.tracer.command import Command
from tests.tracer.programs import schema

PROGRAM = """\
def mixed(x, y):
    z = y.t()
    return x + z
"""
SQUARE = [[512, 512]]


def recording() -> Recording:
    """Two steps of a sum of a dense and a transposed array, in line 3."""
    made = Recording()
    for number in range(2):
        begin = 1000.0 * number
        made.step(number, begin, 1000)
        made.event("python_function", "net.py(1): mixed", begin + 10, 500)
        made.event("python_function", "<built-in method t of Tensor object at 0x7f01>",
                   begin + 20, 50)  # fmt: skip
        made.operator("aten::t", begin + 25, 40, SQUARE, strides=[[512, 1]])
        made.operator("aten::transpose", begin + 30, 30, SQUARE, strides=[[512, 1]])
        made.operator("aten::as_strided", begin + 35, 20, SQUARE, strides=[[512, 1]],
                      values=["", "[512, 512]", "[1, 512]", ""])  # fmt: skip
        made.operator("aten::add", begin + 100, 250, SQUARE * 2, strides=[[512, 1], [1, 512]])
    return made


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    made = Command(tmp_path_factory.mktemp("analyzed"))
    made.write("src/net.py", PROGRAM)
    recording().save(made.folder / "trace.json.gz")
    return made


def analyze(command: Command, *arguments: str, status: int = 0) -> str:
    return command.memlint("analyze", *arguments, status=status).stdout


def failure(command: Command, *arguments: str) -> str:
    done = command.memlint("analyze", *arguments, status=2)
    assert done.stdout == ""
    return done.stderr


def test_full(command: Command) -> None:
    text = analyze(command, "trace.json.gz", "--root", "src")
    assert "warning[MEM310] mixed-layout-operands: `add` meets float32[512, 512]" in text
    assert "3 |     return x + z" in text
    assert "2 |     z = y.t()" in text
    told = "trace: observed: 1 time a step; 1.0 MB a step; 0.25 ms a step, 25.0% of it"
    assert told in " ".join(text.split())
    assert "Traced 2 steps on cpu." in text
    assert "Not seen: which arrays are the same one" in text
    assert "Not seen" not in analyze(command, "-q", "trace.json.gz", "--root", "src")


def test_files_that_are_not_there(command: Command) -> None:
    """The function is told all the same, and what is missing."""
    text = analyze(command, "trace.json.gz")
    assert "--> net.py:1:1" in text
    assert "= trace: observed: `mixed`; 1 time a step" in text
    assert "Not seen: lines in net.py: not there; is `--root` right?" in text


def test_machine_formats(command: Command) -> None:
    options = ("trace.json.gz", "--root", "src", "--output-format")
    document = json.loads(analyze(command, *options, "json"))
    text = resources.files("memlint").joinpath("schemas/check.schema.json").read_text("utf-8")
    jsonschema.validate(document, json.loads(text))
    [finding] = document["findings"]
    assert finding["evidence"]["verdict"] == "observed"
    assert finding["evidence"]["born_at"] == "net.py:2"
    sarif = json.loads(analyze(command, *options, "sarif"))
    assert sarif["runs"][0]["results"][0]["ruleId"] == "MEM310"
    assert analyze(command, *options, "github").startswith("::warning ")


def test_evidence_is_read_by_the_other_commands(command: Command) -> None:
    analyze(command, "-q", "trace.json.gz", "--root", "src", "-o", "out.json")
    document = command.load("out.json")
    jsonschema.validate(document, schema())
    assert document["meta"]["source"].endswith("trace.json.gz")
    done = command.memlint("check", "--no-cache", "--evidence", "out.json", "src", status=1)
    assert "MEM310" in done.stdout
    assert done.stderr == ""
    assert "MEM310" in command.memlint("report", "out.json").stdout
    document["meta"]["rank"] = 1
    command.store("other.json", document)
    command.memlint("merge", "out.json", "other.json", "-o", "both.json")
    assert len(command.load("both.json")["findings"]) == 1


def test_findings_without_lines_are_no_changed_code(command: Command) -> None:
    made = recording()
    made.events = [one for one in made.events if one["cat"] != "python_function"]
    made.save(command.folder / "bare.json")
    text = analyze(command, "bare.json", "-o", "bare-evidence.json")
    assert "--> bare.json:1:1" in text
    assert "= trace: observed: `aten::add`; 1 time a step" in text
    assert "Not seen: lines of source: there are no Python stacks" in text
    options = ("--no-cache", "--select", "ALL", "--evidence", "bare-evidence.json")
    done = command.memlint("check", *options, "src")
    assert done.stderr == ""


def test_a_trace_that_breaks_off(command: Command) -> None:
    text = recording().text()
    command.write("cut.json", text[: len(text) * 9 // 10])
    shown = analyze(command, "cut.json", "--root", "src")
    assert "MEM310" in shown
    assert "Not seen: the end: the file breaks off after " in shown
    data = (command.folder / "trace.json.gz").read_bytes()
    (command.folder / "cut.json.gz").write_bytes(data[:-60])
    assert "the file breaks off after " in analyze(command, "cut.json.gz", "--root", "src")


def test_malformed_events_are_counted(command: Command) -> None:
    made = recording()
    made.events += [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": "soon", "dur": 1},
                    {"ph": "X", "cat": "kernel", "name": "k", "ts": 1}]  # fmt: skip
    made.save(command.folder / "odd.json")
    text = analyze(command, "odd.json", "--root", "src")
    assert "MEM310" in text
    assert "Not seen: 2 events that are malformed" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty, no profiler trace"),
        ("import torch\n", "no JSON, so no profiler trace"),
        ('{"version": 1}', "no profiler trace: it has no `traceEvents`"),
        ('{"traceEvents": []}', "no profiler trace: no operators and no GPU work in it"),
        ('{"traceEvents": [{"ph": "X", "cat": "disk", "name": "read", "ts": 1, "dur": 1}]}',
         "no profiler trace: no operators and no GPU work in it"),
    ],
)  # fmt: skip
def test_what_is_no_trace(command: Command, content: str, message: str) -> None:
    command.write("none.json", content)
    assert failure(command, "none.json") == f"error: none.json: {message}\n"


def test_no_file(command: Command) -> None:
    assert failure(command, "gone.json") == "error: gone.json: No such file or directory\n"
    assert failure(command, "src") == "error: src: a folder, no profiler trace\n"
    assert "No such file or directory" in failure(command, "trace.json.gz", "-o", "none/out.json")
    assert "does not exist" in failure(command, "trace.json.gz", "--root", "none")


def test_help_says_how_to_record(command: Command) -> None:
    text = analyze(command, "--help")
    assert "record_shapes=True, with_stack=True" in text
    assert "memlint analyze trace.json.gz -o evidence.json" in text


def test_needs_no_torch(command: Command) -> None:
    program = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['numpy'] = None\n"
        "from memlint.cli.main import main\n"
        "main(['analyze', '-q', 'trace.json.gz', '--root', 'src'])\n"
    )
    done = command.python("-c", program)
    assert done.returncode == 0, done.stderr
    assert "MEM310" in done.stdout


def test_interruption(command: Command) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes with names here")
    pipe = command.folder / "pipe.json"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "memlint", "analyze", "pipe.json"],
        cwd=command.folder,
        env=command.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    with pipe.open("wb", buffering=0) as stream:  # waits until it is read
        stream.write(recording().text().encode()[:200])
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in output + errors


def test_a_pipe_is_read(command: Command) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memlint", "analyze", "-q", "/dev/stdin", "--root", "src"],
        cwd=command.folder,
        env=command.environment,
        input=(command.folder / "trace.json.gz").read_bytes(),
        capture_output=True,
        timeout=60,
    )
    assert b"MEM310" in done.stdout, done.stderr
