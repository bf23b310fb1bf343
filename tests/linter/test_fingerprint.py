from __future__ import annotations

import pytest

from memlint.linter.run import check
from tests.linter.conftest import Write


def fingerprints(write: Write, text: str, path: str = "a.py") -> list[str]:
    file = write(path, text)
    report = check([path], overrides={"select": ("TST",)}, use_cache=False)
    file.unlink()
    return [finding.fingerprint for finding in report.findings]


BASE = "def f():\n    x = flag_me(1, 'a b')\n"


@pytest.mark.parametrize(
    "text",
    [
        "import os\n\n\ndef g(): pass\n" + BASE,
        "def f():\n    if os:\n        x = flag_me( 1,\n           'a b',  # c\n        )\n",
        BASE.replace("\n", "\r\n"),
        "def f():\n    flag_me(2)\n    x = flag_me(1, 'a b')\n",
    ],
)
def test_stable_when_lines_and_layout_change(write: Write, text: str) -> None:
    assert fingerprints(write, BASE)[0] in fingerprints(write, text)


@pytest.mark.parametrize(
    "text",
    [
        BASE.replace("def f", "def g"),
        BASE.replace("'a b'", "'a  b'"),
        BASE.replace("x =", "y ="),
        "class C:\n    def f(self):\n        x = flag_me(1, 'a b')\n",
        "x = flag_me(1, 'a b')\n",
    ],
)
def test_another_one_for_other_code(write: Write, text: str) -> None:
    assert fingerprints(write, BASE) != fingerprints(write, text)


def test_another_one_in_another_file_and_for_each_of_equal_findings(write: Write) -> None:
    assert fingerprints(write, BASE) != fingerprints(write, BASE, "b.py")
    twice = fingerprints(write, "flag_me()\nflag_me()\nflag_me(), flag_me()\n")
    assert len(set(twice)) == 4
