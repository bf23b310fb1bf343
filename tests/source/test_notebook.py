from __future__ import annotations

import ast
import json
import time
from collections.abc import Sequence

import pytest

from memlint.findings import Location
from memlint.source.model import Source
from memlint.source.notebook import python_lines
from memlint.source.read import SourceError, decode_source


def notebook(*cells: tuple[str, str], **metadata: object) -> bytes:
    content = {
        "nbformat": 4,
        "metadata": metadata,
        "cells": [{"cell_type": kind, "source": text} for kind, text in cells],
    }
    return json.dumps(content).encode()


def read(data: bytes) -> Source:
    return decode_source(data, "n.ipynb")


def test_code_cells_in_order_numbered_over_all_cells() -> None:
    source = read(
        notebook(("markdown", "# t"), ("code", "a = 1\nb = 2"), ("code", "c = a"), ("raw", "?"))
    )
    assert source.text == "a = 1\nb = 2\nc = a\n"
    tree = ast.parse(source.text)
    assert source.place(tree.body[1]) == (2, Location(2, 1, 2, 6))
    assert source.place(tree.body[2]) == (3, Location(1, 1, 1, 6))
    assert source.place_of(3, 2) == (3, Location(1, 2, 1, 3))


def test_sources_as_lists_of_lines_and_format_3() -> None:
    cells = [{"cell_type": "code", "source": ["a = 1\n", "b = 2"]}]
    assert read(json.dumps({"cells": cells}).encode()).text == "a = 1\nb = 2\n"
    old = [{"cell_type": "code", "input": "a = 1", "language": "python"}]
    data = json.dumps({"nbformat": 3, "worksheets": [{"cells": old}, {"cells": old}]}).encode()
    assert [cell.number for cell in read(data).cells] == [1, 2]


def test_notebooks_of_other_languages_hold_no_program() -> None:
    data = notebook(("code", "x <- 1"), kernelspec={"language": "R"}, language_info={"name": "R"})
    assert (read(data).text, read(data).cells) == ("", ())


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"{}", b'{"cells": 1}', b'{"cells": [1]}', b"\xff\xfe\x00", b"x = 1\n",
        b'{"cells": [{"cell_type": "code", "source": 3}]}', b'{"worksheets": [1]}',
        b"[" * 100_000, b'{"cells": [{"cell_type": "code", "source": "\\u0000"}]}',
    ],
)  # fmt: skip
def test_an_invalid_notebook_is_one_error(data: bytes) -> None:
    with pytest.raises(SourceError):
        read(data)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (["%matplotlib inline", "x = 1"], ["pass", "x = 1"]),
        (["!pip install a \\", "   b", "x = 1"], ["pass", "", "x = 1"]),
        (["for i in x:", "    !echo {i}", "    %t f(i)"], ["for i in x:", "    pass", "    pass"]),
        (["?print", "print?", "torch.nn??", "x"], ["pass", "pass", "pass", "x"]),
        (["files = !ls", "a, b = %magic c"], ["files = get_ipython()", "a, b = get_ipython()"]),
        (["x = (a", "% b)", "y = '''", "%not magic", "!nor this", "'''", "%time z"],
         ["x = (a", "% b)", "y = '''", "%not magic", "!nor this", "'''", "pass"]),
        (["x = a \\", "  % b", "%magic"], ["x = a \\", "  % b", "pass"]),
        (["# what?", "s = '('", "# (", "%magic"], ["# what?", "s = '('", "# (", "pass"]),
        (["%%time", "x = 1"], ["", "x = 1"]),
        (["", "%%capture out", "!ls", "x = 1"], ["", "", "pass", "x = 1"]),
        (["%%bash", "ls | wc"], ["", ""]),
        (["%%writefile x.py", "x = 1"], ["", ""]),
        (["x = 5 % 3", "x != 3", "d = {'?': 1}"], ["x = 5 % 3", "x != 3", "d = {'?': 1}"]),
        (["s = 'a\\'(' # (", "%magic"], ["s = 'a\\'(' # (", "pass"]),
    ],
)  # fmt: skip
def test_magics_give_way_and_lines_stay(cell: Sequence[str], expected: Sequence[str]) -> None:
    lines = python_lines("\n".join(cell))
    assert lines == expected
    ast.parse("\n".join(lines))


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "a " * 50_000, "x" + "\"'\\" * 60_000, " " * 90_000]
)
def test_no_line_takes_long(text: str) -> None:
    started = time.monotonic()
    assert len(python_lines(text)) == 1
    assert time.monotonic() - started < 5


def test_a_string_that_goes_on_hides_what_looks_like_code() -> None:
    lines = ["x = 'a # ( \\", "%b'", "%magic", "y, z[0] = !ls", "= %no"]
    assert python_lines("\n".join(lines)) == [
        *lines[:2],
        "pass",
        "y, z[0] = get_ipython()",
        "= %no",
    ]
