"""What people see."""

from __future__ import annotations

import dataclasses
import re

import pytest

from memlint.findings import Applicability, Location, Place, Report
from memlint.report import concise, full
from memlint.report.summary import closing_line, fixable_line, statistics
from memlint.report.view import View
from memlint.source.model import Source
from tests.report.conftest import Samples

EXPECTED = """\
error[MEM303] noncontiguous-into-kernel: x is not contiguous
 --> book.ipynb:cell 3:1:1
  |
1 | launch(x)
  | ^^^^^^^^^
  |
 ::: book.ipynb:cell 2:1:1
  |
1 | x = 1
  | ----- born here
  |
  = help: call .contiguous()
  = fix: add .contiguous() (unsafe)
  = confidence: medium

warning[MEM201] missing-pin-memory: 100% of batches go through: pageable, memory
  --> src/train.py:4:14
   |
 4 |     loader = DataLoader(dataset, batch_size=64)
   |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
...
10 |         images = images.to(device)
   |                  ----------------- batches go to CUDA here
   |
   = trace: confirmed
   = help: pass pin_memory=True
   = fix: add pin_memory=True (safe)
   = see: https://example.org/rules/missing-pin-memory/

info[MEM101] column-order-loop: y
  --> src/train.py:11:24
   |
11 |     kernel[grid](x, "漢字", y)
   |                             ^
   |

"""


def rendered(report: Report, view: View) -> str:
    return "".join(full.render(report, view))


def test_the_whole_report(samples: Samples) -> None:
    assert rendered(samples.report(), View(read=samples.read)) == EXPECTED


def test_colour_changes_nothing_but_colour(samples: Samples) -> None:
    coloured = rendered(samples.report(), View(color=True, read=samples.read))
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == EXPECTED


@pytest.mark.parametrize("width", [60, 72, 100, 140])
def test_nothing_is_wider_than_the_terminal(samples: Samples, width: int) -> None:
    long = "some words that go on and on, " * 12
    line = "    result = call(" + ", ".join(f"argument_{n}" for n in range(40)) + ")"
    samples.train = Source("src/train.py", samples.train.text + line + "\n")
    (finding,) = (f for f in samples.report().findings if f.code == "MEM201")
    at = Location(12, 300, 12, 311)
    place = Place(long, "src/train.py", None, Location(12, 14, 12, 18))
    finding = dataclasses.replace(finding, message=long, help=long, location=at, related=(place,))
    text = rendered(Report((finding,)), View(width=width, read=samples.read))
    assert max(map(len, text.splitlines())) <= width
    rows = text.splitlines()
    marked = next(i for i, row in enumerate(rows) if "^" in row)
    under = [c for c, mark in zip(rows[marked - 1], rows[marked], strict=False) if mark == "^"]
    assert "".join(under) == line[299:310]


def test_a_range_of_several_lines(samples: Samples) -> None:
    (finding,) = (f for f in samples.report().findings if f.code == "MEM201")
    inner = Place("size", "src/train.py", None, samples.spot(7, "batch_size", "64"))
    finding = dataclasses.replace(
        finding, location=samples.spot(5, "DataLoader", ")", 8), related=(inner,), help="", url=""
    )
    expected = """\
 --> src/train.py:5:13
  |
5 |       other = DataLoader(
  |  _____________^
6 | |         dataset,
7 | |         batch_size=64,
  | |         ------------- size
8 | |     )
  | |_____^
  |
"""
    assert expected in rendered(Report((finding,)), View(read=samples.read))


def test_a_long_range_shows_its_head_and_its_end(samples: Samples) -> None:
    (finding,) = (f for f in samples.report().findings if f.code == "MEM201")
    finding = dataclasses.replace(
        finding, location=samples.spot(3, "def", "device)", 10), related=()
    )
    expected = """\
   |
 3 | / def main(device):
 4 | |     loader = DataLoader(dataset, batch_size=64)
 5 | |     other = DataLoader(
...  |
10 | |         images = images.to(device)
   | |__________________________________^
   |
"""
    assert expected in rendered(Report((finding,)), View(read=samples.read))


def test_a_source_that_is_gone_costs_the_excerpt_only(samples: Samples) -> None:
    text = rendered(samples.report(), View())
    assert " --> book.ipynb:cell 3:1:1\n" in text
    assert "line 10: batches go to CUDA here" in text
    shorter = Source("src/train.py", "x\n")
    assert "missing-pin-memory" in rendered(samples.report(), View(read=lambda path: shorter))


def test_a_file_cannot_write_to_the_terminal(samples: Samples) -> None:
    (finding,) = (f for f in samples.report().findings if f.code == "MEM201")
    samples.train = Source("src/train.py", "\n\n\nx = '\x1b[31m\u202e' or DataLoader()\n")
    finding = dataclasses.replace(
        finding, path="src/train.py", message="\x1b[2J", related=(), location=Location(4, 1, 4, 2)
    )
    text = rendered(Report((finding,)), View(read=samples.read))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[2J" in text


def test_concise(samples: Samples) -> None:
    lines = "".join(concise.render(samples.report(), View())).splitlines()
    assert lines == [
        "book.ipynb:cell 3:1:1: error[MEM303] noncontiguous-into-kernel: x is not contiguous",
        "src/train.py:4:14: warning[MEM201] missing-pin-memory: "
        "100% of batches go through: pageable, memory (confirmed)",
        "src/train.py:11:24: info[MEM101] column-order-loop: y",
    ]


def test_summary_and_statistics(samples: Samples) -> None:
    report = samples.report()
    expected = "3 findings (1 error, 1 warning, 1 info) in 4 files; 2 suppressed, 2 problems.\n"
    assert closing_line(report, View()) == expected
    assert closing_line(Report(files=1), View()) == "No findings in 1 file.\n"
    doubled = dataclasses.replace(report, findings=(*report.findings, report.findings[1]))
    assert list(statistics(doubled, View())) == [
        "2  MEM201  missing-pin-memory\n",
        "1  MEM101  column-order-loop\n",
        "1  MEM303  noncontiguous-into-kernel\n",
    ]


def test_what_can_be_fixed_is_counted(samples: Samples) -> None:
    report = samples.report()
    safe, fix = next((f, f.fix) for f in report.findings if f.fix is not None)

    def line(*kinds: Applicability) -> str:
        fixes = [dataclasses.replace(fix, applicability=kind) for kind in kinds]
        return fixable_line(Report(tuple(dataclasses.replace(safe, fix=one) for one in fixes)))

    assert fixable_line(report) == "1 fixable with --fix, 1 more with --unsafe-fixes.\n"
    assert line(Applicability.SAFE, Applicability.SAFE) == "2 fixable with --fix.\n"
    assert line(Applicability.UNSAFE) == "1 fixable with --fix --unsafe-fixes.\n"
    assert line(Applicability.DISPLAY, Applicability.NONE) == line() == ""
