"""MEM210 pin-memory-inert."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.edits import call_without_keyword
from memlint.analysis.events import Called, LoaderBuilt
from memlint.analysis.knowledge.array_makers import is_array
from memlint.analysis.loaders import name_of, pins
from memlint.analysis.places.loader import UNPINNED, may_pin_in_vain
from memlint.analysis.values import (
    Absent,
    Const,
    Object,
    Tensor,
    Unknown,
    Value,
    alternatives,
    leaves,
    made_of,
)
from memlint.findings import Applicability, Confidence, Severity
from memlint.rule import Draft, DraftFix, Needs, Replacement, Rule

DEVICE = "pin_memory_device"
OPTIONS = frozenset(
    {'"pin_memory": True', "'pin_memory': True", '"pin_memory_device"', "'pin_memory_device'"}
)


class PinMemoryInert(Rule):
    """Pinned memory is asked for in a way that pins nothing.

    ## What it does

    Reports a `DataLoader` that is given `pin_memory_device` without `pin_memory=True`; that is
    given `pin_memory=True` but yields objects of a class without a `pin_memory` method, or
    NumPy arrays that its collate function makes; and the `device` argument of
    `pin_memory_device=...` and `tensor.pin_memory(device)`, which PyTorch no longer reads.

    ## Why it is wrong

    `pin_memory_device` only chose for which device `pin_memory=True` pins; alone it pins
    nothing, in any version, and says nothing. Since PyTorch 2.9 it is ignored and deprecated: the
    current accelerator is used. The pinning thread handles tensors, mappings and sequences of
    them, and objects that have a `pin_memory` method; all else is handed on as it is, so that
    batches stay in pageable memory and every copy to the GPU waits for a copy by the driver.

    ## When it is silent

    - batches that are tensors, or tuples, lists, dictionaries and named tuples of them;
    - batch classes with a `pin_memory` method, and those that inherit from anything that is not
      in the program;
    - batches nobody can see into;
    - `pin_memory=False`, and loaders that are given neither option.

    ## Example

    ```python
    from torch.utils.data import DataLoader


    def feed(dataset):
        return DataLoader(dataset, batch_size=64, num_workers=4, pin_memory_device="cuda:0")
    ```

    ## Use instead

    ```python
    from torch.utils.data import DataLoader


    def feed(dataset):
        return DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
    ```

    ## Fix safety

    Safe: beside `pin_memory=True` the argument `pin_memory_device` is dropped, and so is the
    argument of `tensor.pin_memory("cuda")`. Where pinning would begin, or a class needs a
    method, there is only the message.

    ## How to confirm

    Look at `is_pinned()` of the tensors of a batch right after the loader yields it.

    ## References

    - [Memory pinning in torch.utils.data](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
    - [torch.Tensor.pin_memory](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.pin_memory.html)
    """

    code = "MEM210"
    name = "pin-memory-inert"
    severity = Severity.WARNING
    applicability = Applicability.SAFE
    calls = frozenset({".pin_memory"})
    supersedes = ("missing-pin-memory",)
    needs = Needs(
        {"pin_memory"},
        {"torch"},
        {UNPINNED},
        units=[{"pin_memory"}],
        nearest=True,
        places=may_pin_in_vain,
        callers=may_pin_in_vain,
        # Options that the module holds, for a function to spread in its call.
        whole=OPTIONS,
    )

    def check_loader(self, loader: LoaderBuilt) -> Iterator[Draft]:
        """A loader whose request for pinned batches has no effect."""
        device = loader.argument(DEVICE)
        asked = pins(loader)
        if _is_given(device):
            yield from self._device(loader, asked=asked)
        elif asked and loader.in_workers.unpinned:
            cls = loader.in_workers.unpinned
            yield self.finding(
                loader.node,
                f"{name_of(loader)} yields `{cls}` objects, which have no `pin_memory` method: "
                "`pin_memory=True` leaves their tensors in pageable memory",
                f"give `{cls}` a method `pin_memory(self)` that pins its tensors and returns "
                "`self`, or collate into a dictionary or a named tuple",
            )
        elif asked and _only_arrays(loader.batch):
            yield self.finding(
                loader.node,
                f"the collate function of {name_of(loader)} gives NumPy arrays: `pin_memory=True` "
                "pins tensors only and leaves them as they are",
                "let the collate function give tensors: `torch.from_numpy(...)`",
            )

    def _device(self, loader: LoaderBuilt, *, asked: bool) -> Iterator[Draft]:
        pin = loader.argument("pin_memory")
        if not asked and not loader.open and _off(pin):
            yield self.finding(
                loader.node,
                f"{DEVICE} alone pins nothing: the batches of {name_of(loader)} stay in pageable "
                "memory",
                f"pass `pin_memory=True` instead of `{DEVICE}`",
            )
        elif not _off(pin):
            edit = call_without_keyword(loader.source, loader.node, DEVICE)
            fix = None
            if edit is not None:
                fix = DraftFix(f"drop `{DEVICE}`", (edit,), Applicability.SAFE)
            yield self.finding(
                loader.node,
                f"{DEVICE} has no effect since PyTorch 2.9: {name_of(loader)} pins for the "
                "current accelerator",
                f"drop `{DEVICE}`; choose the device by `torch.cuda.set_device(...)`",
                severity=Severity.INFO,
                fix=fix,
            )

    def check_method(self, call: Called) -> Iterator[Draft]:
        """``tensor.pin_memory("cuda")``."""
        given = call.args.get("device", 0)
        node = call.node
        if not _is_cuda(given) or not isinstance(node, ast.Call) or call.args.open:
            return
        if not isinstance(call.receiver, (Tensor, Unknown)):
            return
        text = f"{call.source.segment(node.func)}()"
        fix = DraftFix("drop the argument", (Replacement(node, text),), Applicability.SAFE)
        yield self.finding(
            node,
            "the device given to `pin_memory` has no effect: PyTorch pins for the current "
            "accelerator and the argument is deprecated",
            "call `pin_memory()` without an argument",
            severity=Severity.INFO,
            confidence=Confidence.HIGH if isinstance(call.receiver, Tensor) else Confidence.MEDIUM,
            fix=fix,
        )


def _is_given(value: Value) -> bool:
    return not any(
        isinstance(one, Absent)
        or (isinstance(one, Unknown) and not _is_text(one))
        or one in (Const(None), Const(""))
        for one in alternatives(value)
    )


def _is_text(value: Unknown) -> bool:
    """``"cuda:%d" % rank``."""
    made = made_of(value)
    if made is None or made.name not in ("operator.remainder", "operator.add", ".format"):
        return False
    return any(
        isinstance(one, Const) and isinstance(one.value, str) and one.value for one in made.inputs
    )


def _off(pin: Value) -> bool:
    return all(isinstance(one, Absent) or one == Const(False) for one in alternatives(pin))


def _only_arrays(batch: Value) -> bool:
    found = list(leaves(batch))
    return bool(found) and all(
        (isinstance(one, Tensor) and one.lib == "numpy") or is_array(one) for one in found
    )


def _is_cuda(value: Value) -> bool:
    one = value.fact("0") if isinstance(value, Object) and value.cls == "torch.device" else value
    return isinstance(one, Const) and isinstance(one.value, str) and one.value.startswith("cuda")
