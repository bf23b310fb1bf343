"""MEM509 save-view-storage."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.parts import Part, parts_of
from memlint.analysis.places.saved_part import may_save_part
from memlint.analysis.uses import uses_in
from memlint.analysis.values import Instance, Object, Unknown, Value, alternatives
from memlint.bench.declare import Sizes, bench
from memlint.bench.pair import Size, Weighed
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern, name_pattern
from memlint.rule import Draft, DraftFix, Needs, Replacement, Rule

WRITERS = {
    "torch.save": "file", "pickle.dump": "file", "pickle.dumps": "pickle",
    "cloudpickle.dump": "file", "cloudpickle.dumps": "pickle", "dill.dump": "file",
    "dill.dumps": "pickle",
}  # fmt: skip
SENDERS = frozenset({".put", ".put_nowait", ".send"})
QUEUE = late_pattern(r"multiprocessing\.(\w+\.)*(Queue|JoinableQueue|SimpleQueue|Pipe|Connection)$")
QUEUE_NAME = late_pattern(r"(queue|^q|_q|conn|pipe|outbox|inbox)$", re.IGNORECASE)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp)
THREADS = late_pattern(r"^\s*(import queue|from queue import)", re.MULTILINE)


class SaveViewStorage(Rule):
    """A part of a tensor is saved or sent, and the whole storage goes with it.

    ## What it does

    Reports `torch.save`, `pickle.dump` and `put` into a queue of another process of a slice, a
    row or a chunk of a tensor: `torch.save(big[:10], path)`.

    ## Why it is slow

    A view shares the storage of its tensor, and what is written is the storage. Saving ten rows
    of a tensor of 40 MB wrote 40 001 343 bytes; a clone of them wrote 1407. The same holds for
    rows, chunks, and pickles; each of several chunks writes the whole again. Through a queue of
    `torch.multiprocessing` the whole storage moves to shared memory.

    `.contiguous()`, `.detach()`, and `.cpu()` of what is in host memory already do not copy.

    ## When it is silent

    - what is saved is a copy: `.clone()`, a mask or a list of indices, another dtype, a move
      from the GPU;
    - NumPy arrays: NumPy writes the part alone;
    - the tensor itself, or another part of it, is saved in the same object: then they share the
      storage in the file too;
    - only the ends are cut off (`x[1:]`, `x[:-1]`), or the tensor is known to be small;
    - it is not known to be a tensor, or the queue may be one of threads.

    ## Example

    ```python
    import torch


    def export(path):
        table = torch.randn(1_000_000, 64)
        torch.save(table[:10], path)
    ```

    ## Use instead

    ```python
    import torch


    def export(path):
        table = torch.randn(1_000_000, 64)
        torch.save(table[:10].clone(), path)
    ```

    ## Fix safety

    Safe: `.clone()` has the same values; the file shares nothing with other tensors either way,
    since nothing else of the storage is in it. It is offered where the part itself is the
    argument or an item of a dictionary or list there.

    ## How to confirm

    Compare `x.untyped_storage().nbytes()` with `x.nbytes`, or look at the size of the file.
    `memlint bench save-view-storage` measures it on your machine.

    ## References

    - [Serialization semantics: saving and loading tensors preserves views](https://docs.pytorch.org/docs/stable/notes/serialization.html#saving-and-loading-tensors-preserves-views)
    """

    code = "MEM509"
    name = "save-view-storage"
    severity = Severity.WARNING
    applicability = Applicability.SAFE
    calls = frozenset({*WRITERS, *SENDERS})
    needs = Needs(
        {"torch"},
        units=[
            {
                name_pattern(r"\b(save|dumps?)\b"),
                late_pattern(r"\.(put|put_nowait|send)\s*\("),
            },
            {"[", "for ", "chunk", "split", "narrow", "unbind", "select"},
        ],
        places=may_save_part,
    )

    def check_start(self, program: ProgramStart) -> Iterator[Draft]:
        """Keep the program's tree; note whether its queues are those of threads."""
        text = program.source.text
        self._tree = program.tree
        self._processes = "multiprocessing" in text and THREADS.search(text) is None
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """A part of a tensor that is written with all of its storage."""
        if called.name in SENDERS and not self._goes_to_process(called):
            return
        payload = called.args.get("obj", 0)
        node = _payload_node(called)
        parts = list(parts_of(payload))
        for part in parts:
            if part.base_kept or sum(part.shares_with(other) for other in parts) > 1:
                continue
            if self._is_gathered(part.node, called):
                continue
            where = "sent with" if called.name in SENDERS else "written with"
            place = _place(part, node)
            yield self.finding(
                called.node,
                f"{_shown(place, called)} is {where} the whole storage of the tensor that it is a "
                "part of: the cost is that of the whole tensor, however small the part",
                "save a copy: `.clone()`",
                confidence=Confidence.HIGH if part.certain else Confidence.MEDIUM,
                fix=_fix(place, called),
            )
            return

    def _is_gathered(self, part: ast.AST, called: Called) -> bool:
        """Whether a loop that is over by then takes the parts: together they may be all."""
        uses = uses_in(self._tree)
        running = set(map(id, uses.ancestors(called.node)))
        running |= {id(one.loop.node) for one in called.context.loops}
        return any(
            isinstance(one, LOOPS) and id(one) not in running for one in uses.ancestors(part)
        )

    def _goes_to_process(self, called: Called) -> bool:
        receiver = called.receiver
        if receiver is None:
            return False
        for one in alternatives(receiver):
            if isinstance(one, Object):
                return QUEUE.search(one.cls) is not None
            if isinstance(one, Instance):
                return False
        return self._processes and all(
            _looks_like_queue(one, called) for one in alternatives(receiver)
        )

    @bench(
        "saves ten rows of a table with 64 columns of float32",
        as_is="torch.save(table[:10], file)",
        alternative="torch.save(table[:10].clone(), file)",
        needs=("torch",),
        sizes=Sizes("rows of the table", quick=10_000, full=(10, 100, 10_000, 160_000)),
    )
    def bench(self, size: Size) -> Weighed:
        """The sizes of the files."""
        import io

        import torch

        from memlint.bench.tensors import normal

        table = normal(size, size.number, 64)

        def written(rows: Any) -> float:
            file = io.BytesIO()
            torch.save(rows, file)
            return float(file.getbuffer().nbytes)

        return Weighed(
            lambda: written(table[:10]),
            lambda: written(table[:10].clone()),
            "bytes of the file",
            f"10 of {size.number} rows",
        )


def _looks_like_queue(value: Value, called: Called) -> bool:
    func = called.node.func if isinstance(called.node, ast.Call) else None
    name = ""
    if isinstance(func, ast.Attribute):
        name = getattr(func.value, "attr", getattr(func.value, "id", ""))
    return isinstance(value, Unknown) and QUEUE_NAME.search(name) is not None


def _payload_node(called: Called) -> ast.expr | None:
    call = called.node
    if not isinstance(call, ast.Call):
        return None
    return (
        call.args[0]
        if call.args
        else next((k.value for k in call.keywords if k.arg == "obj"), None)
    )


def _place(part: Part, node: ast.expr | None) -> ast.expr | None:
    """The expression of the part, where it stands in the argument."""
    if node is None:
        return None
    for one in _items(node):
        if one is part.node:
            return one
    return None


def _items(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Dict(values=values):
            for value in values:
                yield from _items(value)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _items(part)
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            for keyword in keywords:
                yield from _items(keyword.value)
        case _:
            yield node


def _shown(place: ast.expr | None, called: Called) -> str:
    if place is not None:
        return f"`{ast.unparse(place)}`"
    node = _payload_node(called)
    return f"`{ast.unparse(node)}`" if isinstance(node, ast.Name) else "what is saved"


def _fix(place: ast.expr | None, called: Called) -> DraftFix | None:
    if place is None or not isinstance(place, (ast.Subscript, ast.Call)):
        return None
    text = called.source.segment(place)
    return DraftFix(
        "save a copy of the part: `.clone()`",
        (Replacement(place, f"{text}.clone()"),),
        Applicability.SAFE,
    )
