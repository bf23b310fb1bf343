"""MEM605 hugepage-unavailable."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.guards import error_is_expected
from memlint.analysis.uses import uses_in
from memlint.findings import Severity
from memlint.rule import Draft, Needs, Rule

MAP_HUGETLB = 0x40000


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

    - the error is caught where the mapping is made;
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
    calls = frozenset({"mmap.mmap"})
    needs = Needs({"mmap"}, {"HUGETLB", "0x40000", "0x4_0000", "262144"})

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Keep the program's tree: it tells what is tried."""
        self._tree = program.tree
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A mapping with the flag."""
        call = called.node
        if not isinstance(call, ast.Call):
            return
        flags = next((k.value for k in call.keywords if k.arg == "flags"), None)
        if flags is None:
            flags = call.args[2] if len(call.args) > 2 else None
        if flags is None or not self._asks_for_reserved(flags):
            return
        if error_is_expected(uses_in(self._tree).scope_of(call), call):
            return
        yield self.finding(
            call,
            "MAP_HUGETLB fails with ENOMEM unless huge pages are reserved (nr_hugepages), and the "
            "length must be a multiple of their size",
            "leave the flag out and call `madvise(mmap.MADV_HUGEPAGE)`, or catch the OSError",
        )

    def _asks_for_reserved(self, flags: ast.expr) -> bool:
        return any(map(self._is_flag, ast.walk(flags)))

    def _is_flag(self, node: ast.AST) -> bool:
        match node:
            case ast.Constant(value=int(number)) if type(number) is int:
                return bool(number & MAP_HUGETLB) and number < 1 << 32
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name.endswith("MAP_HUGETLB") or self._is_named_number(name)
        return False

    def _is_named_number(self, name: str) -> bool:
        """Whether a name of the module is bound to flags with this one."""
        return any(
            isinstance(one, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name for t in one.targets)
            and name.isupper()
            and self._asks_for_reserved(one.value)
            for one in self._tree.body
        )
