"""MEM605 hugepage-unavailable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.guards import error_is_expected
from memlint.analysis.uses import FUNCTIONS, uses_in
from memlint.analysis.values import Const, Value, alternatives, made_of
from memlint.findings import Severity
from memlint.rule import Draft, Needs, Rule

MAP_HUGETLB = 0x40000
JOINS = ("operator.bitwise_or", "operator.ibitwise_or")
NUMBER = re.compile(r"\b(0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[1-9]\d[\d_]*)\b")
SHIFTED = re.compile(r"<<\s*18\b|\b2\s*\*\*\s*18\b")


def may_ask_for_reserved(text: str) -> bool:
    """Whether a text holds a number with the flag in it, or the flag by name."""
    if "HUGETLB" in text or SHIFTED.search(text):
        return True
    return any(_has_flag(int(found.group(), 0)) for found in NUMBER.finditer(text))


def _has_flag(number: int) -> bool:
    return bool(number & MAP_HUGETLB) and number < 1 << 32


class HugepageUnavailable(Rule):
    """A mapping asks for reserved huge pages, and nothing happens where there are none.

    ## What it does

    Reports `mmap.mmap` with the flag `MAP_HUGETLB` (`0x40000` on Linux) outside of a `try`.

    ## Why it is wrong

    The flag takes pages from a pool that the administrator has to reserve (`nr_hugepages`). The
    default is none, and the call then fails with `ENOMEM`, as measured. The length must be a
    multiple of the huge page, or the mapping cannot be released. The constant is not in Python's
    `mmap` module everywhere, so that its number is written out.

    ## When it is silent

    - the error is caught where the mapping is made, or wherever its function is called;
    - the flags are not known.

    ## Example

    ```python
    import mmap

    LENGTH = 64 << 21
    buffer = mmap.mmap(-1, LENGTH, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
    ```

    ## Use instead

    ```python
    import mmap

    LENGTH = 64 << 21
    buffer = mmap.mmap(-1, LENGTH, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    buffer.madvise(mmap.MADV_HUGEPAGE)
    ```

    ## Fix safety

    No fix is offered. `madvise` (Python 3.8) asks for huge pages and takes small ones where there
    are none.

    ## How to confirm

    `grep Huge /proc/meminfo` shows what is reserved; `AnonHugePages` in `/proc/self/smaps` what
    the program got.

    ## References

    - [HugeTLB pages](https://docs.kernel.org/admin-guide/mm/hugetlbpage.html)
    - [mmap.madvise](https://docs.python.org/3/library/mmap.html#mmap.mmap.madvise)
    """

    code = "MEM605"
    name = "hugepage-unavailable"
    severity = Severity.INFO
    default_on = False
    calls = frozenset({"mmap.mmap", *JOINS})
    needs = Needs({"mmap"}, {may_ask_for_reserved})

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Keep the program's tree: it tells what is tried."""
        self._tree = program.tree
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A mapping with the flag."""
        call = called.node
        if called.name != "mmap.mmap" or not isinstance(call, ast.Call):
            return
        flags = next((k.value for k in call.keywords if k.arg == "flags"), None)
        if flags is None:
            flags = call.args[2] if len(call.args) > 2 else None
        known = _holds_flag(called.args.get("flags", 2))
        if not (known or (flags is not None and self._asks_for_reserved(flags))):
            return
        if self._is_expected(call):
            return
        yield self.finding(
            call,
            "MAP_HUGETLB fails with ENOMEM unless huge pages are reserved (nr_hugepages), and the "
            "length must be a multiple of their size",
            "leave the flag out and call `madvise(mmap.MADV_HUGEPAGE)`, or catch the OSError",
        )

    def _is_expected(self, call: ast.Call) -> bool:
        """Whether the error is caught, at the mapping or at all calls of its function."""
        uses = uses_in(self._tree)
        scope = uses.scope_of(call)
        if error_is_expected(scope, call):
            return True
        if not isinstance(scope, FUNCTIONS) or isinstance(scope, ast.Lambda):
            return False
        calls = uses.calls_of(scope.name)
        return bool(calls) and all(error_is_expected(uses.scope_of(one), one) for one in calls)

    def _asks_for_reserved(self, flags: ast.expr, met: frozenset[str] = frozenset()) -> bool:
        if isinstance(flags, ast.BinOp) and isinstance(flags.op, ast.BitAnd):
            return False  # what is left of a mask is not known
        return any(self._is_flag(node, met) for node in ast.walk(flags))

    def _is_flag(self, node: ast.AST, met: frozenset[str]) -> bool:
        match node:
            case ast.Constant(value=int(number)) if type(number) is int:
                return _has_flag(number)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name.endswith("MAP_HUGETLB") or self._is_named_number(name, met)
        return False

    def _is_named_number(self, name: str, met: frozenset[str]) -> bool:
        """Whether a name of the module is bound to flags with this one."""
        if name in met or not name.isupper():
            return False
        return any(
            isinstance(one, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name for t in one.targets)
            and self._asks_for_reserved(one.value, met | {name})
            for one in self._tree.body
        )


def _holds_flag(flags: Value) -> bool:
    """Whether flags that are joined by ``|`` hold the one for huge pages, on every path."""
    return all(map(_one_holds_flag, alternatives(flags)))


def _one_holds_flag(flags: Value) -> bool:
    if isinstance(flags, Const):
        return type(flags.value) is int and _has_flag(flags.value)
    made = made_of(flags)
    return made is not None and made.name in JOINS and any(map(_holds_flag, made.inputs))
