"""MEM602 mmap-inert."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.files import (
    ending_of,
    is_stream,
    is_written,
    mapping_of,
    opened_archive,
)
from memlint.analysis.named_values import written
from memlint.analysis.places.mapping import may_map_in_vain
from memlint.analysis.uses import Uses, uses_in
from memlint.analysis.values import Absent, Const, Value, deps_of, may_be, must_be
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Pair, Size
from memlint.findings import Confidence
from memlint.rule import Draft, Needs, Rule

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

COPIES = {
    "numpy.array": "np.array", "numpy.copy": "np.copy", "torch.tensor": "torch.tensor",
    "torch.Tensor": "torch.Tensor", "torch.FloatTensor": "torch.FloatTensor",
    ".astype": "astype", ".copy": "copy", ".tolist": "tolist",
}  # fmt: skip
LOADERS = frozenset({"numpy.load", "torch.load", "torch.serialization.load"})
ONE_BY_ONE = "save the array as `.npy` of its own and map that"

# What paths are put together of.
_OF_PATHS = (
    ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.expr_context,
    ast.JoinedStr, ast.FormattedValue,
)  # fmt: skip


class MmapInert(Rule):
    """A file is to be mapped, or read in part, but is read whole.

    ## What it does

    Reports

    - `np.load("x.npz", mmap_mode="r")`: archives are never mapped, the option is ignored;
    - a member of an archive that is read again in each iteration of a loop or in
      `__getitem__`: `z["x"][i]` reads all of `x` for one row;
    - the whole of a mapping that is copied into memory at once: `np.array(np.load(p,
      mmap_mode="r"))`, `torch.tensor(np.memmap(...))`, `mm.astype("f4")`, `mm.copy()`;
    - `mmap=True` or `mmap_mode` for an open file or bytes, which raises an error.

    ## Why it is slow

    A mapping costs what is touched of it; a copy of the whole reads the whole file, and `astype`
    copies even where the dtype stays the same. An `.npz` member is read and, if compressed,
    unpacked again on each `z["x"]`: for 8 MiB of float32 some 4 to 8 ms an access from the page
    cache, and 52 ms where it is compressed, whatever was taken of it (NumPy 2.4, AMD Zen 4).

    ## When it is silent

    - a part of the mapping is copied: `mm[a:b].copy()`;
    - `np.asarray`, `np.ascontiguousarray`, `torch.from_numpy` and `torch.as_tensor` share the
      mapping;
    - the copy is made under a condition (an option to keep the data in memory), or the mapping
      is one that the program writes;
    - the members of an archive are read once each: `{k: z[k] for k in z.files}`.

    ## Example

    ```python
    import numpy as np


    class Windows:
        def __init__(self, path):
            self.signal = np.array(np.load(path, mmap_mode="r"))

        def __getitem__(self, i):
            return self.signal[i : i + 512]
    ```

    ## Use instead

    ```python
    import numpy as np


    class Windows:
        def __init__(self, path):
            self.signal = np.load(path, mmap_mode="r")

        def __getitem__(self, i):
            return np.array(self.signal[i : i + 512])
    ```

    ## Fix safety

    No fix is offered: whether the copy or the mapping was meant cannot be read from the program.

    ## How to confirm

    `isinstance(x, np.memmap)` tells whether an array is a mapping; `read_bytes` in
    `/proc/self/io` tells what was read. `memlint bench mmap-inert` times both with files of its
    own, which are in the page cache.

    ## References

    - [numpy.load](https://numpy.org/doc/stable/reference/generated/numpy.load.html)
    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
    """

    code = "MEM602"
    name = "mmap-inert"
    calls = frozenset({*COPIES, *LOADERS, "operator.getitem"})
    needs = Needs(
        {"numpy", "torch"},
        {"mmap", "npz", "load("},
        values=[{"mmap", "npz"}],
        places=may_map_in_vain,
    )

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Keep the program's tree: it tells what a name was given."""
        self._tree = program.tree
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """What undoes a mapping, or never makes one."""
        if called.name in LOADERS:
            yield from self._loaded(called)
        elif called.name in COPIES:
            yield from self._copied(called)
        elif called.name == "operator.getitem":
            yield from self._read_again(called)

    def _loaded(self, called: Called) -> Iterator[Draft]:
        path = called.args.get("file" if called.name == "numpy.load" else "f", 0)
        node = (
            called.node.args[0] if isinstance(called.node, ast.Call) and called.node.args else None
        )
        if called.name != "numpy.load":
            if must_be(called.args.get("mmap"), True) and _is_surely_stream(path):
                yield self.finding(
                    called.node,
                    "`mmap=True` needs the path of a file: an open file or bytes raise ValueError",
                    "give `torch.load` the path",
                )
            return
        mode = called.args.get("mmap_mode", 1)
        if isinstance(mode, Absent) or may_be(mode, None):
            return
        if node is not None:
            node = written(node, uses_in(self._tree))
        if ending_of(path, node).endswith(".npz"):
            yield self.finding(
                called.node,
                "`mmap_mode` is ignored for an .npz archive: each member that is accessed is read "
                "whole, and again on each access",
                ONE_BY_ONE,
            )
        elif _is_surely_stream(path):
            yield self.finding(
                called.node,
                "`mmap_mode` needs the path of a file: an open file raises ValueError",
                "give `np.load` the path",
            )

    def _copied(self, called: Called) -> Iterator[Draft]:
        source = called.receiver if called.receiver is not None else called.args.get("object", 0)
        made = None if source is None else mapping_of(source)
        if made is None or is_written(made) or called.context.conditional:
            return
        if _is_chosen(called.node, uses_in(self._tree)):
            return
        if called.name == ".astype" and not isinstance(called.args.get("copy", 4), Absent):
            return
        if called.name == "numpy.array" and not isinstance(called.args.get("copy"), Absent):
            return
        yield self.finding(
            called.node,
            f"`{COPIES[called.name]}` reads the whole mapped file into memory: the mapping saves "
            "nothing",
            "copy the part that is needed, `x[a:b].copy()`; `np.asarray` and `torch.from_numpy` "
            "share the mapping",
        )

    def _read_again(self, called: Called) -> Iterator[Draft]:
        archive, *keys = called.args.positional
        made = opened_archive(archive)
        if made is None or not keys or not _is_text(keys[0]) or called.context.throttled:
            return
        again = _is_repeated(called, archive, keys[0])
        if not again:
            return
        yield self.finding(
            called.node,
            f"{again} reads this member of the archive from its file again, and all of it",
            f"read it once before, or {ONE_BY_ONE}",
            confidence=Confidence.HIGH,
        )

    @bench(
        "512 numbers are taken of a mapped file, which is in the page cache",
        as_is="np.array(np.load(path, mmap_mode='r'))[a:b]",
        alternative="np.array(np.load(path, mmap_mode='r')[a:b])",
        needs=("numpy",),
        sizes=Sizes("MiB of the file", quick=8, full=(1, 8, 64)),
    )
    def bench_copied(self, size: Size) -> Pair:
        """A copy of the whole, against one of a part."""
        import numpy as np

        folder, array = _folder_with(size)
        path = str(Path(folder.name) / "array.npy")
        np.save(path, array)
        part = slice(512, 1024)
        return Pair(
            lambda: np.array(np.load(path, mmap_mode="r"))[0, part],
            lambda: np.array(np.load(path, mmap_mode="r")[0, part]),
            tuple,
            f"{size.number} MiB",
            close=folder.cleanup,
        )

    @bench(
        "a loop takes 4 rows of an array in a file, which is in the page cache",
        as_is="archive['x'][i] of an .npz",
        alternative="mapped[i] of an .npy",
        needs=("numpy",),
        sizes=Sizes("MiB of the file", quick=8, full=(1, 8, 64)),
    )
    def bench_archive(self, size: Size) -> Pair:
        """A member of an archive that is read again for each row."""
        return _rows(size, compressed=False)

    @bench(
        "a loop takes 4 rows of an array in a file, which is in the page cache",
        as_is="archive['x'][i] of a compressed .npz",
        alternative="mapped[i] of an .npy",
        needs=("numpy",),
        sizes=Sizes("MiB of the file", quick=1, full=(1, 8)),
        quick=False,
    )
    def bench_compressed(self, size: Size) -> Pair:
        """The same, unpacked again each time."""
        return _rows(size, compressed=True)


_COLUMNS, _ROWS = 1024, 4


def _folder_with(size: Size) -> tuple[TemporaryDirectory[str], Any]:
    from tempfile import TemporaryDirectory

    import numpy as np

    rows = (size.number << 20) // (4 * _COLUMNS)
    array = np.random.default_rng(0).random((rows, _COLUMNS), dtype=np.float32)
    return TemporaryDirectory(prefix="memlint-bench-"), array


def _rows(size: Size, *, compressed: bool) -> Pair:
    import numpy as np

    folder, array = _folder_with(size)
    plain, packed = (str(Path(folder.name) / name) for name in ("x.npy", "x.npz"))
    np.save(plain, array)
    (np.savez_compressed if compressed else np.savez)(packed, x=array)
    archive = np.load(packed)

    def close() -> None:
        archive.close()
        folder.cleanup()

    return Pair(
        lambda archive, mapped: np.stack([archive["x"][i] for i in range(_ROWS)]),
        lambda archive, mapped: np.stack([mapped[i] for i in range(_ROWS)]),
        lambda: (archive, np.load(plain, mmap_mode="r")),
        f"{size.number} MiB",
        rotate=False,
        close=close,
    )


def _is_chosen(node: ast.AST, uses: Uses) -> bool:
    """Whether an expression decides if this part of it is evaluated."""
    inner = node
    for above in uses.ancestors(node):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, ast.IfExp) and inner is not above.test:
            return True
        if isinstance(above, ast.BoolOp) and inner is not above.values[0]:
            return True
        inner = above
    return False


def _is_surely_stream(value: Value) -> bool:
    return not isinstance(value, Absent) and is_stream(value)


def _is_text(key: Value) -> bool:
    return isinstance(key, Const) and isinstance(key.value, str)


def _is_repeated(called: Called, archive: Value, key: Value) -> str:
    """Who reads the same member again and again, if anybody does."""
    loop = called.context.innermost()
    if loop is not None:
        few = loop.loop.trips is not None and loop.loop.trips <= 4
        depends = loop.loop.symbol in deps_of(archive)
        opened_inside = _path_depends(archive, loop.loop.node)
        return "" if few or depends or opened_inside else "each iteration of the loop"
    if re.search(r"(^|\.)__getitem__$", called.context.name) and _is_kept(called):
        return "each call of `__getitem__`"
    return ""


def _path_depends(archive: Value, loop: ast.AST) -> bool:
    """Whether the archive is another one in each iteration."""
    made = opened_archive(archive)
    if made is None:
        return False
    inside = any(node is made.node for node in ast.walk(loop))
    if not inside or (made.inputs and isinstance(made.inputs[0], Const)):
        return False
    return not _is_same_path(made.node, loop)


def _is_same_path(opening: ast.AST, loop: ast.AST) -> bool:
    """Whether a path is put together of constants and of what the loop does not change."""
    if not isinstance(opening, ast.Call) or not opening.args:
        return False
    parts = list(ast.walk(opening.args[0]))
    changed = {
        getattr(one, "id", getattr(one, "attr", ""))
        for one in ast.walk(loop)
        if isinstance(getattr(one, "ctx", None), ast.Store)
    }
    return all(isinstance(one, _OF_PATHS) for one in parts) and not any(
        getattr(one, "id", getattr(one, "attr", None)) in changed for one in parts
    )


def _is_kept(called: Called) -> bool:
    """Whether the archive is opened elsewhere, or its path is always the same."""
    made = opened_archive(called.args.positional[0])
    function = called.context.function
    if made is None or function is None:
        return False
    inside = any(node is made.node for node in ast.walk(function))
    return not inside or isinstance(made.inputs[0], Const)
