"""``memlint report``: what a trace has found, in the formats of ``memlint check``."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

pytest.importorskip("torch")

from tests.tracer.command import Command
from tests.tracer.programs import HIDDEN_COPY


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    made = Command(tmp_path_factory.mktemp("reported"))
    made.write("program.py", HIDDEN_COPY)
    made.memlint("trace", "-q", "--no-replay", "-o", "out.json", "program.py")
    return made


def test_full(command: Command) -> None:
    text = command.memlint("report", "out.json").stdout
    assert "info[MEM312] hidden-layout-copy: " in text
    assert "8 |     return moved.reshape(-1, 16)" in text
    assert "= trace: observed: 3 times a step; 3.1 MB" in text
    assert "Traced 1 step on cpu." in text
    assert "Not seen: " in text
    assert "Traced" not in command.memlint("report", "-q", "out.json").stdout


def test_machine_formats(command: Command) -> None:
    document = json.loads(command.memlint("report", "out.json", "--output-format", "json").stdout)
    schema = resources.files("memlint").joinpath("schemas/check.schema.json").read_text("utf-8")
    jsonschema.validate(document, json.loads(schema))
    assert document["findings"][0]["evidence"]["verdict"] == "observed"
    sarif = json.loads(command.memlint("report", "out.json", "--output-format", "sarif").stdout)
    results = sarif["runs"][0]["results"]
    assert any(one["properties"]["evidence"]["count"] == 3 for one in results)
    github = command.memlint("report", "out.json", "--output-format", "github").stdout
    assert "%0Aobserved: 3 times a step" in github


def test_from_another_folder(command: Command, tmp_path: Path) -> None:
    elsewhere = Command(tmp_path)
    text = elsewhere.memlint("report", str(command.folder / "out.json")).stdout
    assert "return moved.reshape(-1, 16)" in text


def test_no_line_is_shown_that_is_another_one(command: Command, tmp_path: Path) -> None:
    moved = Command(tmp_path)
    document = command.load("out.json")
    document["meta"]["folder"] = tmp_path.as_posix()
    moved.store("out.json", document)
    moved.write("program.py", "# moved\n" + HIDDEN_COPY)
    assert "9 |     return moved.reshape(-1, 16)" in moved.memlint("report", "out.json").stdout
    moved.write("program.py", "print('something else')\n" * 20)
    assert "something else" not in moved.memlint("report", "out.json").stdout


def test_to_a_file(command: Command) -> None:
    options = ("--output-format", "concise", "-o", "out.txt")
    assert command.memlint("report", "out.json", *options).stdout == ""
    text = (command.folder / "out.txt").read_text("utf-8")
    assert text.startswith("program.py:8:12: info[MEM312]")


def test_what_is_no_evidence(command: Command) -> None:
    command.write("other.json", "[]")
    done = command.memlint("report", "other.json", status=2)
    assert done.stderr == "error: other.json: no evidence of a trace: it is no JSON object\n"
    command.write("other.json", "{}")
    done = command.memlint("report", "other.json", status=2)
    assert done.stderr == "error: other.json: no evidence of a trace: it has no 'version'\n"
    command.write("other.json", '{"traceEvents": []}')
    done = command.memlint("report", "other.json", status=2)
    assert "`memlint analyze` reads such traces" in done.stderr
    assert "missing.json" in command.memlint("report", "missing.json", status=2).stderr


def test_html(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    done = command.memlint("report", "out.json", "--html", "out.html")
    assert (done.stdout, done.stderr) == ("", "")
    page = (command.folder / "out.html").read_text("utf-8")
    assert "<mark>moved.reshape(-1, 16)</mark>" in page
    assert "program.py:8:12" in page
    # Paths are those of the trace, from wherever it is read.
    elsewhere = Command(tmp_path)
    elsewhere.memlint("report", str(command.folder / "out.json"), "--html", "there.html")
    assert (tmp_path / "there.html").read_text("utf-8") == page


def test_html_of_a_file_that_has_changed(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    moved = Command(tmp_path)
    document = command.load("out.json")
    document["meta"]["folder"] = tmp_path.as_posix()
    moved.store("out.json", document)
    moved.write("program.py", "# moved\n" + HIDDEN_COPY)
    moved.memlint("report", "out.json", "--html", "out.html")
    page = (tmp_path / "out.html").read_text("utf-8")
    assert '<th scope="row">9</th>' in page
    assert "return <mark>moved.reshape(-1, 16)</mark>" in page or "<mark>return" in page
    moved.write("program.py", "print('another')\n")
    moved.memlint("report", "out.json", "--html", "out.html")
    page = (tmp_path / "out.html").read_text("utf-8")
    assert "<code>return moved.reshape(-1, 16)</code>" in page
    assert "The line as it ran; the file is not what it was" in page


def test_html_goes_with_no_option_of_the_text(command: Command) -> None:
    for options in (("-q",), ("-o", "x"), ("--output-format", "json"), ("--color", "never")):
        done = command.memlint("report", "out.json", "--html", "x.html", *options, status=2)
        assert "does not go with --html" in done.stderr
    assert not (command.folder / "x.html").exists()


@pytest.mark.parametrize("option", ["-o", "--html", "--trace-event"])
def test_what_is_read_is_not_overwritten(command: Command, option: str) -> None:
    pytest.importorskip("jinja2")
    before = (command.folder / "out.json").read_bytes()
    done = command.memlint("report", "out.json", option, "./out.json", status=2)
    assert "out.json is what is read: it would be overwritten" in done.stderr
    done = command.memlint("merge", "out.json", "-o", "out.json", status=2)
    assert "it would be overwritten" in done.stderr
    assert (command.folder / "out.json").read_bytes() == before


def test_html_that_cannot_be_made(command: Command) -> None:
    done = command.memlint("report", "out.json", "--html", "no/such/out.html", status=2)
    assert done.stderr == "error: no/such/out.html: No such file or directory\n"
    broken = command.load("out.json")
    broken["journeys"] = [{"born": 3}]
    command.store("broken.json", broken)
    done = command.memlint("report", "broken.json", "--html", "out.html", status=2)
    assert done.stderr.startswith("error: broken.json: no evidence of a trace: ")


def test_html_without_jinja2(command: Command, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['jinja2'] = None\n")
    paths = os.pathsep.join((str(tmp_path), command.environment["PYTHONPATH"]))
    for arguments in (("report", "out.json"), ("trace", "program.py")):
        options = (arguments[0], "--html", "never.html", *arguments[1:])
        done = command.memlint(*options, status=2, PYTHONPATH=paths)
        assert done.stderr == "error: --html needs jinja2: pip install 'memlint-ml[trace]'\n"
    assert command.memlint("report", "out.json", PYTHONPATH=paths).stdout
