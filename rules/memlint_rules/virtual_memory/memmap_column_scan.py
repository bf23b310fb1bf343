"""MEM603 memmap-column-scan."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.files import is_number, mapping_of, row_bytes
from memlint.analysis.linear import linear
from memlint.analysis.shown import shown
from memlint.analysis.uses import Use, uses_in
from memlint.analysis.values import (
    Absent,
    Const,
    Made,
    Sequence,
    Unknown,
    Value,
    deps_of,
    made_of,
    must_be,
)
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size, Weighed
from memlint.findings import Confidence
from memlint.late_dataclass import dataclass
from memlint.rule import Draft, Needs, Rule

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

PAGE = 4096
TRANSPOSED = frozenset({".T", ".transpose", "numpy.transpose"})
# What a loop may go through to the columns.
WRAPPERS = frozenset({"zip", "enumerate", "tqdm", "list", "map"})


class MemmapColumnScan(Rule):
    """A column is read from a mapped file that lies row by row.

    ## What it does

    Reports `mm[:, j]` and the like, where `mm` is an `np.memmap` or comes from `np.load(...,
    mmap_mode=...)`: all rows are touched for one column of each.

    ## Why it is slow

    A file is read in pages of 4 KiB, and the kernel reads ahead of them. One element of each row
    brings in at least a page for each row of a page or more, so that a column costs as much as
    the whole file. Measured on the disk of a virtual machine under Linux, on 100 000 rows of
    2048 float32 with nothing cached: one column (400 KB) read 781 MiB in 370 ms, 50 rows with as
    many bytes read 16 MiB in 4.2 ms.

    ## When it is silent

    - whole rows or blocks of rows are read: `mm[i]`, `mm[a:b]`, `mm[a:b, 0]`;
    - the file is mapped in Fortran order;
    - the shape stands in the call, and a row is shorter than a page.

    ## Example

    ```python
    import numpy as np


    def spread(path, width):
        table = np.load(path, mmap_mode="r")
        return [table[:, j].std() for j in range(width)]
    ```

    ## Use instead

    ```python
    import numpy as np


    def spread(path, rows=4096):
        table = np.load(path, mmap_mode="r")
        total = squares = 0.0
        for start in range(0, len(table), rows):
            block = table[start : start + rows]
            total = total + block.sum(axis=0)
            squares = squares + (block * block).sum(axis=0)
        mean = total / len(table)
        return (squares / len(table) - mean**2) ** 0.5
    ```

    ## Fix safety

    No fix is offered: the file must be stored by columns, or the work be done by blocks of rows.

    ## How to confirm

    Compare `read_bytes` in `/proc/self/io` before and after the access with the bytes of the
    column, with a cold page cache; or count page faults (`resource.getrusage`). `memlint bench
    memmap-column-scan` tells how much of a file comes in, and times it.

    ## References

    - [numpy.memmap](https://numpy.org/doc/stable/reference/generated/numpy.memmap.html)
    """

    code = "MEM603"
    name = "memmap-column-scan"
    calls = frozenset({"operator.getitem", *TRANSPOSED})
    needs = Needs({"numpy"}, {"memmap", "mmap_mode"}, values=[{"memmap", "mmap_mode"}])

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Keep the program's tree: it tells what a loop goes over."""
        self._tree = program.tree
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """What takes a little of every row."""
        if called.name in TRANSPOSED:
            made = self._walked_by_column(called)
        else:
            made = _column_of(*called.args.positional)
        if made is None or _is_fine(made):
            return
        yield self.finding(
            called.node,
            f"{shown(called.node)} reads columns of a file that is mapped row by row: every row "
            "is touched, so that with rows of a page (4 KiB) or more about the whole file is read",
            "read blocks of rows, `x[a:b]`, and take the column of each; or store the file "
            "transposed",
            confidence=Confidence.HIGH if row_bytes(made) is not None else Confidence.MEDIUM,
        )

    def _walked_by_column(self, called: Called) -> Made | None:
        """The mapping that a loop walks column by column, by way of its transpose."""
        node = called.node
        base = called.receiver
        if base is None and called.args.positional:
            base = called.args.positional[0]
        if base is None or not isinstance(node, ast.expr) or not _turns_around(called):
            return None
        uses = uses_in(self._tree)
        return mapping_of(base) if any(map(_is_iterated, uses.of(node))) else None

    @bench(
        "a column of a file is read, with the file in the page cache",
        as_is="mapped[:, j] of rows of 8 KiB",
        alternative="mapped[j] of the same, stored by columns",
        needs=("numpy",),
        sizes=Sizes("rows", quick=4096, full=(4096, 32_768)),
    )
    def bench_cached(self, size: Size) -> Pair:
        """The time that it takes to find pages that are there."""
        stored = _store(size)
        return _timed(stored, "cached", stored.read_by_rows, stored.read_by_columns)

    @bench(
        "a column of a file is read, which is first driven out of the page cache",
        as_is="mapped[:, j] of rows of 8 KiB",
        alternative="mapped[j] of the same, stored by columns",
        needs=("numpy", "linux"),
        sizes=Sizes("rows", quick=4096, full=(4096, 32_768)),
        quick=False,
    )
    def bench_cold(self, size: Size) -> Pair:
        """The time of the disk, and of driving out what had been read."""
        stored = _store(size)

        def by_rows() -> Any:
            _drive_out(stored.rows)
            return stored.read_by_rows()

        def by_columns() -> Any:
            _drive_out(stored.columns)
            return stored.read_by_columns()

        return _timed(stored, "driven out", by_rows, by_columns)

    @bench(
        "the columns of a file are added up, with the file in the page cache",
        as_is="mapped[:, j].sum() for each j",
        alternative="mapped[a:b].sum(axis=0) for blocks of rows",
        needs=("numpy",),
        sizes=Sizes("rows", quick=512, full=(512, 4096)),
        quick=False,
    )
    def bench_blocks(self, size: Size) -> Pair:
        """All columns, one after the other and at once."""
        import numpy as np

        stored = _store(size)

        def by_columns() -> Any:
            mapped = np.load(stored.rows, mmap_mode="r")
            sums = np.empty(mapped.shape[1], dtype=mapped.dtype)
            for j in range(mapped.shape[1]):
                sums[j] = mapped[:, j].sum()  # memlint: ignore[memmap-column-scan]
            return sums

        def by_blocks() -> Any:
            mapped = np.load(stored.rows, mmap_mode="r")
            return sum(mapped[at : at + _BLOCK].sum(axis=0) for at in range(0, len(mapped), _BLOCK))

        return _timed(stored, "cached", by_columns, by_blocks)

    @bench(
        "a column of a file is read",
        as_is="mapped[:, j] of rows of 8 KiB",
        alternative="mapped[j] of the same, stored by columns",
        needs=("numpy", "linux"),
        sizes=Sizes("rows", quick=4096, full=(4096, 32_768)),
    )
    def bench_pages(self, size: Size) -> Weighed:
        """How much of the file comes in."""
        import numpy as np

        stored = _store(size)

        def of(path: str, column: Callable[[Any], Any]) -> float:
            mapped = np.load(path, mmap_mode="r")
            column(mapped).sum()
            return _resident_of(path)

        return Weighed(
            lambda: of(stored.rows, lambda mapped: mapped[:, _COLUMN]),
            lambda: of(stored.columns, lambda mapped: mapped[_COLUMN]),
            of="of the file in memory",
            what=stored.what,
            close=stored.folder.cleanup,
        )


_COLUMNS, _COLUMN, _BLOCK = 2048, 5, 128


@dataclass(frozen=True, slots=True)
class _Stored:
    """The same array in two files, by rows and by columns."""

    folder: TemporaryDirectory[str]
    rows: str
    columns: str
    what: str

    def read_by_rows(self) -> Any:
        """A column, of which each element lies in another page."""
        import numpy as np

        mapped = np.load(self.rows, mmap_mode="r")
        return np.array(mapped[:, _COLUMN])  # memlint: ignore[memmap-column-scan]

    def read_by_columns(self) -> Any:
        """The same column, all of it in one place."""
        import numpy as np

        return np.array(np.load(self.columns, mmap_mode="r")[_COLUMN])


def _store(size: Size) -> _Stored:
    from tempfile import TemporaryDirectory

    import numpy as np

    folder = TemporaryDirectory(prefix="memlint-bench-")
    rows, columns = (str(Path(folder.name) / f"{name}.npy") for name in ("rows", "columns"))
    array = np.random.default_rng(0).random((size.number, _COLUMNS), dtype=np.float32)
    np.save(rows, array)
    np.save(columns, np.ascontiguousarray(array.T))
    return _Stored(folder, rows, columns, f"{array.nbytes / 2**20:.4g} MiB")


def _timed(
    stored: _Stored, state: str, as_is: Callable[[], Any], alternative: Callable[[], Any]
) -> Pair:
    what = f"{stored.what}, {state}"
    return Pair(as_is, alternative, tuple, what, close=stored.folder.cleanup)


def _drive_out(path: str) -> None:
    """Let the kernel forget what it holds of a file."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def _resident_of(path: str) -> int:
    """The bytes of a mapped file that this process has in memory; on Linux."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text("utf-8").splitlines():
        first, *rest = line.split(maxsplit=5)
        if not first.endswith(":"):
            inside = rest[-1:] == [path]
        elif inside and first == "Rss:":
            found += int(rest[0]) << 10
    return found


def _turns_around(called: Called) -> bool:
    """Whether a transpose is given no order of the axes."""
    given = len(called.args.positional)
    return not called.args.keywords and given == (0 if called.name == ".transpose" else 1)


def _is_iterated(use: Use) -> bool:
    if use.kind == "argument":
        return use.name.rpartition(".")[2] in WRAPPERS
    return use.kind == "iterated"


def _column_of(base: Value, *keys: Value) -> Made | None:
    """The mapping of which a subscript picks a column."""
    made = mapping_of(base)
    if made is not None:
        return made if _picks_column(made, keys) else None
    transposed = made_of(base)
    if transposed is None or transposed.name != ".T" or not transposed.inputs:
        return None
    return mapping_of(transposed.inputs[0]) if keys and _is_position(keys[0]) else None


def _picks_column(made: Made, keys: tuple[Value, ...]) -> bool:
    if len(keys) < 2:
        return False
    if keys[0] == Const("..."):
        flat = made.name.startswith("numpy.memmap") and isinstance(made.get("shape", 4), Absent)
        return not flat and _is_position(keys[-1])
    return _is_every_row(keys[0]) and any(_is_position(key) for key in keys[1:])


def _is_position(key: Value) -> bool:
    """Whether a subscript takes one position, or as many as one: ``j``, ``j : j + 1``."""
    if isinstance(key, Sequence) and key.kind == "slice" and key.items is not None:
        start, stop = (linear(end) for end in key.items[:2])
        return (
            start is not None
            and stop is not None
            and start.terms == stop.terms
            and stop.offset - start.offset == 1
        )
    if is_number(key):
        return True
    return isinstance(key, Unknown) and (
        key.origin in ("parameter", "int") or (not key.origin and _is_of_loop(key))
    )


def _is_of_loop(key: Unknown) -> bool:
    """Whether a value is what a loop goes over, item by item."""
    deps = deps_of(key)
    return made_of(key) is None and bool(deps) and all(one.kind == "loop" for one in deps)


def _is_every_row(key: Value) -> bool:
    """``:``, or rows at a distance."""
    if not isinstance(key, Sequence) or key.kind != "slice" or key.items is None:
        return False
    start, stop, _ = key.items
    return must_be(stop, None) and (must_be(start, None) or isinstance(start, Const))


def _is_fine(made: Made) -> bool:
    order = made.get("order", 5)
    if not isinstance(order, Absent) and not must_be(order, "C"):
        return True
    if made.get("fortran_order") == Const(True):
        return True
    size = row_bytes(made)
    return size is not None and size < PAGE
