"""What the programs among the fixtures become by the fixes of their rule.

``python -m tests.rules.fixed_programs [RULE ...]`` writes them beside the programs, as
``bad_*.fixed.py``, to be read and committed; a test compares them.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from memlint.config import Resolver
from memlint.linter.fixes import fix_findings
from memlint.linter.run import check
from memlint.rule import Rule
from tests.rules.linting import FIXTURES, pack_rules

SUFFIX = ".fixed.py"
_MARKS = re.compile(r" *# expect: [\w-]+(?=\n| #)")


def folder(rule: type[Rule]) -> Path:
    """Where the programs of a rule lie."""
    return FIXTURES / rule.family() / rule.name


def fixed_path(program: Path) -> Path:
    """Where what a program becomes is kept."""
    return program.with_name(program.stem + SUFFIX)


def fixed_programs(rule: type[Rule], scratch: Path) -> dict[Path, str]:
    """What each program, without its marks, becomes by the safe and unsafe fixes of its rule,
    where it changes.  ``scratch`` is an empty folder."""
    programs = [path for path in folder(rule).glob("bad_*.py") if not is_fixed(path)]
    for path in programs:
        text = _MARKS.sub("", path.read_text(encoding="utf-8"))
        (scratch / path.name).write_text(text, encoding="utf-8")
    overrides = {"select": (rule.code,)}
    report = check([str(scratch)], isolated=True, overrides=overrides, use_cache=False, jobs=1)
    assert report.errors == ()
    settings_for = Resolver(overrides, isolated=True).for_directory
    fixing = fix_findings(report.findings, settings_for, unsafe=True, jobs=1)
    assert fixing.errors == ()
    return {folder(rule) / Path(file.path).name: file.after.decode() for file in fixing.files}


def is_fixed(path: Path) -> bool:
    """Whether a file is what a program became."""
    return path.name.endswith(SUFFIX)


def main(names: Sequence[str]) -> None:
    """Write what the programs of some rules become, or of all."""
    for rule in pack_rules():
        if names and rule.name not in names:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            become = fixed_programs(rule, Path(scratch))
        written = {fixed_path(path): text for path, text in become.items()}
        for path in folder(rule).glob(f"*{SUFFIX}"):
            if path not in written:
                path.unlink()
        for path, text in written.items():
            path.write_text(text, encoding="utf-8")
        print(f"{rule.name}: {len(written)}")


if __name__ == "__main__":
    main(sys.argv[1:])
