"""memlint beside its peers on programs with marks: who finds what, per kind that a peer claims.

The programs carry ``# expect: rule-name`` marks.  A peer's finding is *right* if a mark of the
kind that it stands for is in the same function, each mark answering one finding; else it is
*wrong*.  A finding outside of all functions may be about the file, and any mark in it answers.
What memlint reports is counted in the same way.  Kinds that no mark names are left out: the
programs do not say where they are.  Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = re.compile(r"# expect: ([\w-]+)")

# Which of the kinds a peer's rule stands for, by what its own text says.
HOTPATH = {
    "KP001": "dataloader-no-workers",
    "KP002": "missing-pin-memory",
    "KP003": "sync-in-loop",
    "KP004": "loop-invariant-transfer",
    "KP005": "create-then-move",
    "KP006": "naive-attention",
    "KP009": "python-element-loop",
    "KP010": "zero-grad-keep",
    "KP011": "empty-cache-in-loop",
    "KP012": "eval-without-no-grad",
    "KP015": "blocking-transfer",
    "KP016": "checkpoint-in-step-loop",
    "KP017": "sync-in-loop",
}
TORCHFIX = {"TOR401": "dataloader-no-workers"}
# Of ruff's rules on performance and NumPy none speaks of memory or of transfers.
RUFF: dict[str, str] = {}

Place = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Count:
    """How one tool did on one kind."""

    right: int
    wrong: int
    missed: int


def marks(folder: Path) -> Iterator[Place]:
    """File, line and kind of every mark."""
    for path in sorted(folder.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for kind in MARK.findall(line):
                yield str(path), number, kind


def by_memlint(folder: Path, kinds: Sequence[str]) -> Iterator[Place]:
    """What memlint reports, of these kinds."""
    memlint = Path(sys.executable).with_name("memlint")
    command = [str(memlint), "check", "--isolated", "--no-cache", "--select", ",".join(kinds)]
    done = _output([*command, "--output-format", "json", str(folder)])
    for finding in json.loads(done)["findings"]:
        yield str(Path(finding["path"]).resolve()), finding["location"]["line"], finding["name"]


def by_hotpath(program: Path, folder: Path) -> Iterator[Place]:
    """What hotpath-ai reports, its heuristics included."""
    command = [str(program), "analyze", "--format", "json", "--include-heuristics", str(folder)]
    for file in json.loads(_output(command))["files"]:
        for finding in file["findings"]:
            yield file["path"], finding["line"], finding["rule_id"]


def by_torchfix(program: Path, folder: Path) -> Iterator[Place]:
    """What TorchFix reports with all of its rules."""
    text = _output([str(program), "--select=ALL", "-j", "1", str(folder)])
    for found in re.finditer(r"^(.+?):(\d+):\d+: (TOR\d+)", text, re.MULTILINE):
        yield str(Path(found[1]).resolve()), int(found[2]), found[3]


def by_ruff(program: Path, folder: Path) -> Iterator[Place]:
    """What ruff reports with its rules on performance and NumPy."""
    command = [str(program), "check", "--isolated", "--no-cache", "--select", "PERF,NPY"]
    for finding in json.loads(_output([*command, "--output-format", "json", str(folder)])):
        yield finding["filename"], finding["location"]["row"], finding["code"]


def _output(command: list[str]) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} ended with status {done.returncode}")
    return done.stdout


class Functions:
    """Which function a line is in, by file."""

    def __init__(self) -> None:
        self._spans: dict[str, list[tuple[int, int]]] = {}

    def around(self, path: str, line: int) -> tuple[str, int]:
        """The file, and the first line of the innermost function around a line (0 for none)."""
        if path not in self._spans:
            tree = ast.parse(Path(path).read_text(encoding="utf-8"))
            self._spans[path] = [
                (node.lineno, node.end_lineno or node.lineno)
                for node in ast.walk(tree)
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            ]
        inside = [start for start, end in self._spans[path] if start <= line <= end]
        return path, max(inside, default=0)


def counted(
    kind: str, findings: Sequence[Place], marked: Sequence[Place], functions: Functions
) -> Count:
    """Findings of one kind against its marks."""
    wanted = Counter(functions.around(path, line) for path, line, name in marked if name == kind)
    total = wanted.total()
    right = wrong = 0
    for path, line, name in findings:
        if name != kind:
            continue
        place = functions.around(path, line)
        if wanted[place] == 0 and place[1] == 0:
            place = next((one for one in wanted if one[0] == path and wanted[one] > 0), place)
        if wanted[place] > 0:
            wanted[place] -= 1
            right += 1
        else:
            wrong += 1
    return Count(right, wrong, total - right)


def rows(folder: Path, peers: Path) -> Iterator[str]:
    """The table."""
    programs: list[tuple[str, Callable[[Path, Path], Iterator[Place]], str, dict[str, str]]] = [
        ("hotpath-ai", by_hotpath, "hotpath", HOTPATH),
        ("TorchFix", by_torchfix, "torchfix", TORCHFIX),
        ("ruff", by_ruff, "ruff", RUFF),
    ]
    marked = list(marks(folder))
    functions = Functions()
    named = {kind for _, _, kind in marked}
    kinds = sorted(named & {kind for *_, codes in programs for kind in codes.values()})
    ours = list(by_memlint(folder, kinds))
    yield "| tool | kind | findings | right | wrong | missed |"
    yield "|---|---|---:|---:|---:|---:|"
    for name, run, program, codes in programs:
        found = list(run(peers / "bin" / program, folder))
        claimed = [(path, line, codes[code]) for path, line, code in found if code in codes]
        for kind in sorted(named & set(codes.values())):
            for tool, findings in ((name, claimed), ("memlint", ours)):
                count = counted(kind, findings, marked, functions)
                shown = count.right + count.wrong
                cells = (tool, kind, shown, count.right, count.wrong, count.missed)
                yield f"| {' | '.join(map(str, cells))} |"
        other = sum(codes.get(code) not in named for _, _, code in found)
        yield f"| {name} | (of other kinds) | {other} | - | - | - |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everybody and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
    add = parser.add_argument
    add("--peers", type=Path, required=True, metavar="VENV", help="where the peers are installed")
    add("folder", type=Path, nargs="?", default=Path("fixtures"), help="programs with marks")
    options = parser.parse_args(arguments)
    print("\n".join(rows(options.folder.resolve(), options.peers.absolute())))


if __name__ == "__main__":
    main()
