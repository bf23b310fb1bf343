"""MEM605 hugepage-unavailable."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.guards import error_is_expected
from memlint.analysis.named_values import written
from memlint.analysis.uses import FUNCTIONS, uses_in
from memlint.analysis.values import Const, Value, alternatives, made_of
from memlint.analysis.walking import walk
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, Needs, Rule

MAP_HUGETLB = 0x40000
JOINS = ("operator.bitwise_or", "operator.ibitwise_or")
DIGITS = r"{0}+(?:_{0}+)*"
NUMBER = late_pattern(
    rf"\b(?:0[xX]{DIGITS.format('[0-9a-fA-F]')}|0[oO]{DIGITS.format('[0-7]')}|"
    rf"0[bB]{DIGITS.format('[01]')}|[1-9]{DIGITS.format('[0-9]')})\b"
)
# So many names and operations at most lead to flags.
FARTHEST = 64
SHIFTED = late_pattern(r"<<\s*18\b|\b2\s*\*\*\s*18\b")


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
    the program got. `memlint bench hugepage-unavailable` asks for both and times what it gets.

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

    def _asks_for_reserved(self, flags: ast.expr) -> bool:
        """Whether flags are written with the one for huge pages, or with a name of such flags."""
        waiting, met = [written(flags, uses_in(self._tree))], set[str]()
        while waiting and len(met) <= FARTHEST:
            one = waiting.pop()
            if isinstance(one, ast.BinOp) and isinstance(one.op, ast.BitAnd):
                continue  # what is left of a mask is not known
            for node in walk(one):
                if _is_flag(node):
                    return True
                name = getattr(node, "id", getattr(node, "attr", ""))
                if name.isupper() and name not in met:
                    met.add(name)
                    waiting.extend(self._given_to(name))
        return False

    def _given_to(self, name: str) -> Iterator[ast.expr]:
        """What the module binds a name to."""
        for one in self._tree.body:
            if isinstance(one, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name for target in one.targets
            ):
                yield one.value

    @bench(
        "a mapping is made and filled",
        as_is="MAP_HUGETLB, small pages where it fails",
        alternative="madvise(MADV_HUGEPAGE)",
        needs=("numpy", "linux"),
        sizes=Sizes("MiB", quick=32, full=(32, 256)),
    )
    def bench_filled(self, size: Size) -> Pair:
        """The first write to each page."""

        def filled(mapped: Any) -> Any:
            mapped.fill(1)
            return mapped[::_PAGE]

        length = size.number << 20
        return Pair(
            lambda: filled(_reserved(length)[0]),
            lambda: filled(_advised(length)),
            tuple,
            _what(size),
        )

    @bench(
        "a mapping is read at random",
        as_is="MAP_HUGETLB, small pages where it fails",
        alternative="madvise(MADV_HUGEPAGE)",
        needs=("numpy", "linux"),
        sizes=Sizes("MiB", quick=64, full=(64, 512)),
    )
    def bench_random(self, size: Size) -> Pair:
        """A page looked up for each element."""
        import numpy as np

        length = size.number << 20

        def operands() -> tuple[Any, ...]:
            pair = (_reserved(length)[0], _advised(length))
            for mapped in pair:
                mapped.fill(1)
            return *pair, np.random.default_rng(0).integers(0, length, _READS)

        return Pair(
            lambda reserved, advised, at: reserved[at],
            lambda reserved, advised, at: advised[at],
            operands,
            _what(size),
            rotate=False,
        )


_PAGE, _READS = 4096, 200_000


def _what(size: Size) -> str:
    has = _reserved(2 << 20)[1]
    return f"{size.number} MiB, the flag {'works' if has else 'fails'} here"


def _reserved(length: int) -> tuple[Any, bool]:
    """The bytes of a mapping of reserved huge pages, and whether there are any."""
    import mmap

    import numpy as np

    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        return np.frombuffer(mmap.mmap(-1, length, flags | MAP_HUGETLB), np.uint8), True
    except OSError:
        return np.frombuffer(mmap.mmap(-1, length, flags), np.uint8), False


def _advised(length: int) -> Any:
    """The bytes of a mapping for which huge pages are asked."""
    import mmap

    import numpy as np

    mapped = mmap.mmap(-1, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapped.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapped, np.uint8)


def _is_flag(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=int(number)) if type(number) is int:
            return _has_flag(number)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.endswith("MAP_HUGETLB")
    return False


def _holds_flag(flags: Value) -> bool:
    """Whether flags that are joined by ``|`` hold the one for huge pages, on every path."""
    return all(map(_one_holds_flag, alternatives(flags)))


def _one_holds_flag(flags: Value) -> bool:
    waiting, met = [flags], set[int]()
    while waiting and len(met) <= FARTHEST:
        one = waiting.pop()
        if isinstance(one, Const):
            if type(one.value) is int and _has_flag(one.value):
                return True
            continue
        made = made_of(one)
        if made is not None and made.name in JOINS and id(made) not in met:
            met.add(id(made))
            waiting.extend(made.inputs)
    return False
