"""MEM603 memmap-column-scan."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.events import Called
from memlint.analysis.files import is_number, mapping_of, row_bytes
from memlint.analysis.values import Absent, Const, Made, Sequence, Unknown, Value, made_of, must_be
from memlint.findings import Confidence
from memlint.rule import Draft, Needs, Rule

PAGE = 4096


class MemmapColumnScan(Rule):
    """A column is read from a mapped file that lies row by row.

    ## What it does

    Reports `mm[:, j]` and the like, where `mm` is an `np.memmap` or comes from `np.load(...,
    mmap_mode=...)`: all rows are touched for one column of each.

    ## Why it is slow

    A file is read in pages of 4 KiB, and the kernel reads ahead of them. One element of each row
    brings in at least a page for each row of a page or more, so that a column costs as much as
    the whole file. Measured on 100 000 rows of 2048 float32, with nothing cached: one column
    (400 KB) read 781 MiB in 370 ms, 50 rows with as many bytes read 16 MiB in 4.2 ms.

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
    column, with a cold page cache; or count page faults (`resource.getrusage`).

    ## References

    - [numpy.memmap](https://numpy.org/doc/stable/reference/generated/numpy.memmap.html)
    """

    code = "MEM603"
    name = "memmap-column-scan"
    calls = frozenset({"operator.getitem"})
    needs = Needs({"numpy"}, {"memmap", "mmap_mode"}, values=[{"memmap", "mmap_mode"}])

    def check(self, called: Called) -> Iterator[Draft]:
        """A subscript that takes a little of every row."""
        base, *keys = called.args.positional
        made = mapping_of(base)
        picked = _picks_column(keys)
        if made is None:
            transposed = made_of(base)
            if transposed is None or transposed.name != ".T" or not transposed.inputs:
                return
            made = mapping_of(transposed.inputs[0])
            picked = bool(keys) and _is_position(keys[0])
        if made is None or not picked or _is_fine(made):
            return
        yield self.finding(
            called.node,
            "a column of a file that is mapped row by row: every row is touched, so that with "
            "rows of a page (4 KiB) or more about the whole file is read",
            "read blocks of rows, `x[a:b]`, and take the column of each; or store the file "
            "transposed",
            confidence=Confidence.HIGH if row_bytes(made) is not None else Confidence.MEDIUM,
        )


def _picks_column(keys: list[Value]) -> bool:
    if len(keys) < 2 or not _is_every_row(keys[0]):
        return False
    return any(_is_position(key) for key in keys[1:])


def _is_position(key: Value) -> bool:
    return is_number(key) or (isinstance(key, Unknown) and key.origin in ("parameter", "int"))


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
