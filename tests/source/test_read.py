from __future__ import annotations

import ast
from pathlib import Path

import pytest

from memlint.findings import Location
from memlint.source.read import SourceError, decode_source, read_source


def complaint(data: bytes, path: str = "x.py") -> SourceError:
    with pytest.raises(SourceError) as caught:
        decode_source(data, path)
    return caught.value


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"x = 1\n", "x = 1\n"),
        ("é = 'ß'\n".encode(), "é = 'ß'\n"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        (b"\xef\xbb\xbf# coding: utf-8\nx = 1\n", "# coding: utf-8\nx = 1\n"),
        (b"# -*- coding: latin-1 -*-\ns = '\xe9'\n", "# -*- coding: latin-1 -*-\ns = 'é'\n"),
        (b"#!/bin/env python\n# vim: set fileencoding=cp1252 :\ns = '\x80'\n", None),
        (b"x = 1\n\n# coding: nonsense\n", "x = 1\n\n# coding: nonsense\n"),
        (b"x = 1\n# coding: nonsense\n", "x = 1\n# coding: nonsense\n"),
        (b"\x0c\n# coding: utf8\nx\r\ny\rz\n", "\x0c\n# coding: utf8\nx\r\ny\rz\n"),
        ("# coding: utf_8\nx = 'é'".encode(), "# coding: utf_8\nx = 'é'"),
    ],
)
def test_what_python_reads_is_read(data: bytes, text: str | None) -> None:
    source = decode_source(data, "x.py")
    assert text is None or source.text == text
    assert ast.dump(ast.parse(source.text)) == ast.dump(ast.parse(data))


@pytest.mark.parametrize(
    ("data", "message", "location"),
    [
        (b"x = 1\ny = '\xff'\n", "is not valid UTF-8 and declares no other", (2, 6, 2, 7)),
        (b"# coding: utf-8\n\xff", "is not valid UTF-8 (byte 0xff)", (2, 1, 2, 2)),
        (b"# coding: klingon\n", "declares the unknown encoding 'klingon'", None),
        (b"# coding: hex\n", "declares 'hex', which is not a text encoding", None),
        (b"\xef\xbb\xbf# coding: latin-1\n", "byte order mark but declares", None),
        (b"# coding: ascii\n\xe9\n", "is not valid ascii", None),
        (b"x\n\n y\0z", "contains NUL bytes", (3, 3, 3, 4)),
        ("x = 1".encode("utf-16"), "is encoded in UTF-16", None),
        ("x = 1".encode("utf-32"), "is encoded in UTF-32", None),
    ],
)
def test_what_cannot_be_decoded_says_why(
    data: bytes, message: str, location: tuple[int, int, int, int] | None
) -> None:
    error = complaint(data)
    assert message in error.message
    assert error.location == (location and Location(*location))
    assert error.entry("p").path == "p"


def test_reading_by_path(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(b"x = 1\r\ny = 2\r")
    source = read_source(tmp_path / "x.py")
    assert source.lines == ["x = 1", "y = 2", ""]
    with pytest.raises(FileNotFoundError):
        read_source(tmp_path / "gone.py")


def test_columns_count_characters() -> None:
    source = decode_source("x = 'é🎉' + name\n".encode(), "x.py")
    name = ast.parse(source.text).body[0].value.right  # type: ignore[attr-defined]
    assert source.place(name) == (None, Location(1, 12, 1, 16))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_those_of_the_parser(end: str) -> None:
    text = f"a = 1{end}\x0cb = 2{end}{end}s = '''x{end}\u2028y'''{end}last = 3{end}"
    source = decode_source(text.encode(), "x.py")
    last = ast.parse(source.text).body[-1]
    assert source.lines[last.lineno - 1] == "last = 3"
