"""What fixes make of files."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlint.config import Resolver
from memlint.findings import Location
from memlint.linter.baseline import write_baseline
from memlint.linter.fixes import Fixing, fix_findings
from memlint.linter.replace_file import FileChangedError, replace_content
from memlint.linter.rewrite import Text, UnfitError, moved, replaced
from memlint.linter.run import check
from tests.linter.conftest import Write
from tests.packs import MEND_PACK

Fix = Callable[..., Fixing]
Text_ = str | bytes


@pytest.fixture(autouse=True)
def mend_pack(flag_pack: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(MEND_PACK))


def fixing(unsafe: bool = False, **settings: object) -> Fixing:
    """What becomes of the files in the working directory."""
    overrides = {"select": ("MND",), **settings}
    report = check(["."], isolated=True, overrides=overrides, use_cache=False)
    settings_for = Resolver(overrides, isolated=True).for_directory
    return fix_findings(report.findings, settings_for, unsafe=unsafe)


@pytest.fixture
def becomes(write: Write) -> Callable[..., bytes]:
    """What a file becomes, which must be stable."""

    def becomes(data: Text_, name: str = "a.py", unsafe: bool = False) -> bytes:
        path = write(name, data)
        before = path.read_bytes()
        done = fixing(unsafe)
        assert not done.errors
        assert path.read_bytes() == before
        if not done.files:
            return before
        (file,) = done.files
        assert (file.path, file.before) == (name, before)
        path.write_bytes(file.after)
        assert fixing(unsafe).files == ()
        return file.after

    return becomes


Becomes = Callable[..., bytes]


def reasons() -> list[str]:
    done = fixing()
    assert done.files == ()
    return [refused.reason for refused in done.refused]


def test_safe_fixes_are_applied_and_unsafe_ones_on_demand(becomes: Becomes) -> None:
    program = "mend('1')\nmend_unsafely('2')\nmend_for_show('3')\n"
    assert becomes(program) == b"1\nmend_unsafely('2')\nmend_for_show('3')\n"
    assert becomes(program, unsafe=True) == b"1\n2\nmend_for_show('3')\n"


def test_what_no_fix_speaks_of_stays(becomes: Becomes) -> None:
    program = "#!/usr/bin/env python\nx   = [ 1,mend('2') ,\n\t3 ]  # why\n\n\n\ny = mend('4')"
    expected = "#!/usr/bin/env python\nx   = [ 1,2 ,\n\t3 ]  # why\n\n\n\ny = 4"
    assert becomes(program) == expected.encode()


def test_line_ends_of_all_kinds_stay(becomes: Becomes) -> None:
    program = b"a = 1\r\nrename_me(\r\n    1,\n    2,\r    3)\rb = 2\r\nmend('(4,\\n 5)')\r\n"
    expected = b"a = 1\r\nrenamed(\r\n    1,\n    2,\r    3)\rb = 2\r\n(4,\r\n 5)\r\n"
    assert becomes(program) == expected


def test_encodings_and_marks_stay(becomes: Becomes) -> None:
    assert becomes(b"\xef\xbb\xbf'\xc3\xa4'; mend('1')\n") == b"\xef\xbb\xbf'\xc3\xa4'; 1\n"
    latin = b"# coding: latin-1\nx = '\xe4\xf6', %s\n"
    assert becomes(latin % b"mend('1')") == latin % b"1"
    wide = "x = '\N{BRAIN}\N{BRAIN}', mend('\"\N{BRAIN}\"'), mend('2')\n"
    assert becomes(wide).decode() == "x = '\N{BRAIN}\N{BRAIN}', \"\N{BRAIN}\", 2\n"


def test_a_fix_that_the_encoding_cannot_hold_is_not_applied(write: Write) -> None:
    write("a.py", b"# coding: latin-1\nmend('\"\\u20ac\"')\n")
    assert reasons() == ["the result cannot be written in the encoding iso-8859-1"]
    write("a.py", b"# coding: utf-7\nx = '+AOQ-'; mend('1')\n")
    assert reasons() == ["text in the encoding utf-7 cannot be written unchanged"]


def test_overlapping_fixes_are_applied_in_passes(write: Write, becomes: Becomes) -> None:
    depth = 5
    program = "rename_me(" * depth + "1" + ")" * depth + "\n"
    assert becomes(program) == program.replace("rename_me", "renamed").encode()
    deep = write("a.py", "rename_me(" * 12 + "1" + ")" * 12 + "\n")
    (file,) = fixing().files
    assert len(file.applied) == 10
    deep.write_bytes(file.after)
    (file,) = fixing().files
    assert file.after.count(b"renamed(") == 12


def test_an_overlapping_fix_is_applied_where_the_first_is_refused(becomes: Becomes) -> None:
    assert becomes("mend('sore()', rename_me())\n") == b"mend('sore()', renamed())\n"


def test_a_fix_is_refused_for_what_comes_of_it(write: Write) -> None:
    def reason(program: str) -> str:
        write("a.py", program)
        (only,) = reasons()
        return only

    unparsed = reason("mend('(')\n")
    assert unparsed.startswith("its result would fail: cannot be parsed as Python 3.")
    assert unparsed.endswith(" '(' was never closed (line 1)")
    assert reason("mend('mend(0)')\n").startswith("its result would fail: rule mend-me failed")
    assert reason("mend('''mend(\"2\")''')\n") == "the finding would still be there"
    assert reason("x = 1\nmend('1, sore()')\n") == (
        "it would bring a new finding: MND104 sore-call at line 2"
    )
    assert reason("mend('mend(\"1\")  # memlint: ignore')\n") == (
        "it would only suppress a finding"
    )
    assert reason("mend('1',  # for this reason\n  2)\n") == "it would take a comment away"


def test_one_bad_fix_costs_no_other(becomes: Becomes, write: Write) -> None:
    calls = [f"mend('{number}')" for number in range(9)]
    calls[3], calls[7] = "mend('(')", "mend('sore()')"
    program = "\n".join(calls) + "\n"
    assert becomes(program).decode().split("\n")[:-1] == [
        call if "(')" in call or "sore" in call else call[6:-2] for call in calls
    ]


def test_what_is_suppressed_is_not_fixed(becomes: Becomes) -> None:
    program = "mend('1')  # memlint: ignore[mend-me]\nmend('2')\nmend('3')  # noqa: MND101\n"
    assert becomes(program) == program.replace("mend('2')", "2").encode()


def test_what_the_baseline_knows_is_not_fixed(write: Write, tmp_path: Path) -> None:
    baseline = tmp_path / "known.json"
    write("a.py", "x = mend('1')\n")
    selected = {"select": ("MND",)}
    write_baseline(baseline, check(["."], isolated=True, overrides=selected, use_cache=False))
    write("a.py", "y = mend('2')\nx = mend('1')\nz = mend('3')\n")
    (file,) = fixing(baseline=baseline).files
    assert file.after == b"y = 2\nx = mend('1')\nz = 3\n"
    write("a.py", "x = mend('1')\n")
    assert fixing(baseline=baseline) == Fixing()


def test_a_fix_that_would_take_a_finding_out_of_the_baseline_is_refused(
    write: Write, tmp_path: Path
) -> None:
    baseline = tmp_path / "known.json"
    write("a.py", "x = [mend('1'), mend('2')]\n")
    report = check(["."], isolated=True, overrides={"select": ("MND",)}, use_cache=False)
    entry = {"fingerprint": report.findings[0].fingerprint}
    baseline.write_text(json.dumps({"version": 1, "findings": [entry]}))
    done = fixing(baseline=baseline)
    assert done.files == ()
    assert [refused.reason for refused in done.refused] == [
        "the baseline would no longer cover MND101 at line 1"
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the pack is not known to spawned workers")
def test_a_fix_that_ends_the_process_costs_its_own_file_only(write: Write) -> None:
    write("a.py", "mend('die_now()')\n")
    write("b.py", "mend('1')\n")
    done = fixing()
    assert [file.path for file in done.files] == ["b.py"]
    assert [error.path for error in done.errors] == ["a.py"]
    assert "died" in done.errors[0].message


def notebook(*cells: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {"x": 1.0}, "nbformat": 4, **more}


def code(source: str | list[str]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "metadata": {},
        "outputs": [{"text": "mend('9')"}],
        "source": source,
    }


NOTEBOOK = notebook(
    {"cell_type": "markdown", "source": ["mend('0')\n"]},
    code(["%matplotlib inline\n", "a = 'ä'; mend('1')\n", "rename_me(2)"]),
    code("x = 1\nmend('(3,\\n 4)')\n"),
    code([]),
    code(["mend('5')"]),
)


@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize(
    "layout", [{"indent": 1}, {"indent": "\t"}, {"separators": (",", ":")}, {}]
)
def test_a_notebook_changes_in_its_cells_only(
    becomes: Becomes, layout: dict[str, Any], escaped: bool
) -> None:
    text = json.dumps(NOTEBOOK, ensure_ascii=escaped, **layout).replace("1.0", "1.00e0")
    fixed = json.loads(json.dumps(NOTEBOOK))
    fixed["cells"][1]["source"][1:] = ["a = 'ä'; 1\n", "renamed(2)"]
    fixed["cells"][2]["source"] = "x = 1\n(3,\n 4)\n"
    fixed["cells"][4]["source"] = ["5"]
    expected = json.dumps(fixed, ensure_ascii=escaped, **layout).replace("1.0", "1.00e0")
    assert becomes(text, "a.ipynb").decode() == expected
    assert becomes(text + "\n\n", "a.ipynb").decode() == expected + "\n\n"


def test_a_cell_gains_and_loses_lines(becomes: Becomes) -> None:
    before = code(["mend('(1,\\n 2)')\n", "rename_me(\n", "    3)\n", "mend('4',\n", " 5)"])
    after = code(["(1,\n", " 2)\n", "renamed(\n", "    3)\n", "4"])
    text = json.dumps(notebook(before, before), indent=2)
    assert becomes(text, "a.ipynb").decode() == json.dumps(notebook(after, after), indent=2)


def test_an_old_notebook(becomes: Becomes) -> None:
    def old(text: str) -> str:
        cell = {"cell_type": "code", "language": "python", "input": [text], "outputs": []}
        return json.dumps({"nbformat": 3, "worksheets": [{"cells": [cell]}, {"cells": [cell]}]})

    assert becomes(old("mend('1')"), "a.ipynb").decode() == old("1")


def test_lines_of_ipython_are_left_alone(write: Write) -> None:
    loop = "for x in mend_loop():\n    %time x\n"
    write("a.ipynb", json.dumps(notebook(code(loop))))
    assert reasons() == ["it covers a line that only IPython understands"]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file, link = tmp_path / "a.py", tmp_path / "link.py"
    file.write_bytes(b"old")
    file.chmod(0o751)
    link.symlink_to(file.name)
    replace_content(str(link), b"old", b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "link.py"]


def test_a_file_that_has_changed_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"newer")
    with pytest.raises(FileChangedError):
        replace_content(str(file), b"old", b"new")
    assert file.read_bytes() == b"newer"
    assert list(tmp_path.iterdir()) == [file]


LINES = st.lists(st.sampled_from(["", "ab", "äöü", "\N{BRAIN} x", "\t"]), max_size=5)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def edited_texts(draw: st.DrawFn) -> tuple[str, Location, str]:
    lines = draw(LINES)
    raw = "".join(line + draw(ENDS) for line in lines) + draw(st.sampled_from(["", "end"]))
    plain = raw.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    places = [(n, c) for n, line in enumerate(plain, 1) for c in range(1, len(line) + 2)]
    first, last = sorted((draw(st.sampled_from(places)), draw(st.sampled_from(places))))
    return raw, Location(*first, *last), draw(st.text("ab\nä", max_size=6))


@given(edited_texts())
def test_an_edit_does_what_it_says_and_no_more(example: tuple[str, Location, str]) -> None:
    raw, location, content = example
    text = Text(raw)
    start, end = text.span(location)
    try:
        change = text.change(location, content)
    except UnfitError:
        # Only where lines end in a lone carriage return here and in a line feed there.
        assert re.search(r"\r(?!\n)", raw)
        assert "\n" in raw
        return
    result = replaced(raw, [change])
    # Piece by piece: a carriage return before new text is not half of a line end.
    assert _plain(result) == _plain(raw[:start]) + content + _plain(raw[end:])
    assert start <= change.start <= change.end <= end
    if _plain(raw[start:end]) == content:
        assert result == raw
    for offset in (*range(start), *range(end, len(raw))):
        assert result[moved(offset, [change])] == raw[offset]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def test_an_edit_must_lie_in_the_text() -> None:
    text = Text("ab\ncd")
    for location in (Location(1, 4, 1, 4), Location(3, 1, 3, 1), Location(2, 1, 1, 1)):
        with pytest.raises(UnfitError):
            text.change(location, "x")
