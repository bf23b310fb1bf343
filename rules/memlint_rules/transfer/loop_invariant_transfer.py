"""MEM212 loop-invariant-transfer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from memlint.analysis import knowledge
from memlint.analysis.changes import called_name
from memlint.analysis.destinations import Destination, destination_of, lies_there
from memlint.analysis.events import Called, ProgramStart
from memlint.analysis.hoisting import hoisted
from memlint.analysis.invariance import Invariance, Repeated, given_each_time
from memlint.analysis.loop_candidates import repeats, repeats_what_is_given
from memlint.analysis.looped_text import in_loops
from memlint.analysis.paths import bases_of
from memlint.analysis.shown import short_text
from memlint.analysis.values import Instance, Object, Tensor, Value, alternatives
from memlint.analysis.walking import walk
from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Related, Rule

# Functions that copy their first argument to another memory.
UPLOADS = frozenset(
    {"cupy.asarray", "cupy.array", "numba.cuda.to_device", "jax.device_put", "jax.numpy.asarray",
     "jax.numpy.array", "torch.tensor", "torch.as_tensor"}
)  # fmt: skip
DOWNLOADS = frozenset({"cupy.asnumpy", "jax.device_get"})
METHODS = frozenset({".to", ".cuda", ".cpu", ".copy_to_host"})
MODULE = late_pattern(
    r"(^|_)(models?|nets?|network|module|encoder|decoder|criterion|loss_fn|vae|unet|generator|"
    r"discriminator|backbone|ema|teacher|student|pipe|pipeline|net[dg]|actor|critic|policy|metric|"
    r"metrics)(_?\d+)?$",
    re.IGNORECASE,
)
NAMES = frozenset(name.rpartition(".")[2] for name in (*UPLOADS, *DOWNLOADS, *METHODS, "astype"))
_MOVES = (
    ".to(", ".cuda(", ".cpu(", ".copy_to_host(", ".astype(", "to_device(", "device_put(",
    "asnumpy(", "device_get(", "tensor(",
)  # fmt: skip
_ARRAYS = ("asarray(", "array(")


def _moves_in_loops(text: str) -> bool:
    return in_loops(text, _MOVES) or (("cupy" in text or "jax" in text) and in_loops(text, _ARRAYS))


def _may_move(call: ast.Call) -> bool:
    """Whether something that has a name is moved, or cast."""
    name = called_name(call)
    shown = _shown_in(call, by_method=f".{name}" in METHODS or name == "astype")
    if shown is None or not any(bases_of(shown)):
        return False
    if name in ("tensor", "as_tensor"):
        return any(one.arg == "device" for one in call.keywords)
    return name != "to" or bool(call.args or call.keywords)


class LoopInvariantTransfer(Rule):
    """A loop moves the same array to the same device, or casts it, in every iteration.

    ## What it does

    Reports copies between host and device (`.to(device)`, `.cuda()`, `.cpu()`,
    `torch.as_tensor(x, device=...)`, `cupy.asarray`, `jax.device_put`, Numba's `to_device` and
    `copy_to_host`) and `ndarray.astype(...)` inside a loop that neither rebinds nor writes into
    anything that the expression is made of. Each iteration pays for the same copy again. A
    function that such a loop calls counts where its arguments stay the same.

    A model that is moved to its device in every iteration is only *info*: from the second time
    on nothing is copied, but all its parameters are visited.

    ## Why it is slow

    A blocking copy from pageable host memory makes the host wait until the device has taken
    it, which also ends the overlap of Python and kernels; a copy to the host waits for all
    kernels before it. How much that is depends on the size: some ten microseconds for a few
    class weights, and the time of the bus (10 to 50 GB/s) for tables and embeddings. Hoisted, it
    is paid once, at the cost of device memory that stays in use until the loop ends.

    ## When it is silent

    - what is moved is known to lie there already (made on the device, moved before the loop):
      `.to` is a no-op then;
    - anything in the expression may change in the loop: it is the loop's variable, assigned,
      written into by an in-place method, a subscript, `out=`, a collective or a function of the
      program that does so, or it may be a parameter and an optimizer steps;
    - the result is written into, collected, returned, yielded or stored in an object;
    - new tensors (`torch.zeros(n).to(device)`): those are create-then-move's;
    - it happens on some iterations only (`if step % 100 == 0`, a cache that is filled once), or
      the loop is left right after it;
    - models that are moved to and fro in the loop (offloading);
    - the loop has at most eight iterations, or each of its iterations is a long one: epochs,
      folds, seeds;
    - benchmarks, by their names.

    ## Example

    ```python
    import torch.nn.functional as F


    def train(net, loader, optimizer, class_weights, device):
        for images, labels in loader:
            logits = net(images.to(device, non_blocking=True))
            loss = F.cross_entropy(
                logits, labels.to(device, non_blocking=True), weight=class_weights.to(device)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead

    ```python
    import torch.nn.functional as F


    def train(net, loader, optimizer, class_weights, device):
        class_weights = class_weights.to(device)
        for images, labels in loader:
            logits = net(images.to(device, non_blocking=True))
            loss = F.cross_entropy(
                logits, labels.to(device, non_blocking=True), weight=class_weights
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety

    Unsafe: the fix moves the whole assignment in front of the loop. It is offered where the
    copy is a statement of its own directly in the loop's body and its variable is bound nowhere
    else in the loop. The copy then stays alive until the loop ends, and is made even if the loop
    has no iteration.

    ## How to confirm

    Look for `Memcpy HtoD`/`DtoH` with this line in their stack in a profile: the same number of
    bytes once per iteration, from a tensor whose `data_ptr()` and `_version` stay the same. No
    copy at all refutes the finding.

    ## References

    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    - [A guide on good usage of non_blocking and pin_memory()](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    - [Numba: data transfer](https://numba.readthedocs.io/en/stable/cuda/memory.html)
    """

    code = "MEM212"
    name = "loop-invariant-transfer"
    severity = Severity.WARNING
    applicability = Applicability.UNSAFE
    needs = Needs(
        {"for ", "while "},
        {"torch", "cupy", "jax", "numba", "numpy"},
        {_moves_in_loops},
        units=[{*_MOVES, *_ARRAYS}, {"for ", "while "}],
        nearest=True,
        places=repeats(NAMES, _may_move),
        callers=repeats_what_is_given(NAMES, _may_move),
    )
    calls: ClassVar[frozenset[str]] = UPLOADS | DOWNLOADS | METHODS | {".astype"}
    needs_device = "cuda"
    # What is made before the loop and moved in it is told of once.
    supersedes_here = ("create-then-move",)

    _invariance: Invariance
    _told: list[ast.AST]

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Take the program's tree: what a loop changes is asked of the whole program."""
        self._invariance = Invariance(start.tree)
        self._told = []
        yield from ()

    def check(self, called: Called) -> Iterator[Draft]:
        """The same copy in each iteration."""
        node = called.node
        if not called.context.loops or not isinstance(node, ast.Call) or not called.operands:
            return
        what = called.operands[0]
        shown = _shown(called, node)
        if shown is None or isinstance(shown, ast.Constant):
            return
        cost = _cost(called, what, node) if any(bases_of(shown)) else None
        if cost is None or self._belongs_to_told(node):
            return
        repeated = self._invariance.repeated(called)
        if repeated is None:
            return
        module = _is_module(called, what, shown)
        if module and self._invariance.moves(shown, repeated) > 1:
            return
        self._told.append(node)
        text = short_text(ast.unparse(given_each_time(repeated) or shown))
        if module:
            yield self.finding(
                node,
                f"`{text}` is moved in every iteration, though nothing moves it back: all its "
                "parameters are visited each time",
                "move the model once, before the loop",
                severity=Severity.INFO,
                confidence=Confidence.MEDIUM,
                related=[Related(repeated.head, "nothing in this loop moves it elsewhere")],
            )
            return
        yield self.finding(
            node,
            f"`{text}` does not change in the loop, but {cost} in every iteration",
            "do it once, before the loop",
            confidence=_confidence(called, what),
            related=[Related(repeated.head, "nothing in this loop changes it")],
            fix=_fix(called, self._invariance, repeated),
        )

    def _belongs_to_told(self, node: ast.AST) -> bool:
        """``x.cpu().numpy().astype(...)`` is told once, for its first step."""
        if not self._told:
            return False
        inner = {id(one) for one in walk(node)}
        return any(id(one) in inner for one in self._told)


def _shown(called: Called, node: ast.Call) -> ast.expr | None:
    """The expression that is moved."""
    return _shown_in(node, by_method=called.receiver is not None)


def _shown_in(node: ast.Call, *, by_method: bool) -> ast.expr | None:
    if not by_method:
        return node.args[0] if node.args else None
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _cost(called: Called, what: Value, node: ast.Call) -> str | None:
    """What is paid each time; ``None`` where it may well be nothing."""
    name = called.name
    if name == ".astype":
        known = all(isinstance(one, Tensor) and one.lib == "numpy" for one in alternatives(what))
        return "is cast, into a new array," if known and not _keeps(called) else None
    if name in UPLOADS and not name.startswith("torch."):
        return None if _is_of(what, name.partition(".")[0]) else "is copied to the device"
    if name in DOWNLOADS or name == ".copy_to_host":
        return "is copied back to the host"
    to = destination_of(called)
    if to is None:
        return _cast(called, what)
    if isinstance(what, (Instance, Object)):
        return "is moved"
    if name.startswith("torch."):
        known = isinstance(what, Tensor) and what.lib == "numpy"
        return "is copied to the device" if known and not to.host else None
    if lies_there(what, to):
        return None
    return "is copied to the host" if to.host else "is copied to the device"


def _keeps(called: Called) -> bool:
    """``astype(dtype, copy=False)`` may give back what it is called on."""
    return "copy" in called.args.keywords or len(called.args.positional) > 4


def _cast(called: Called, what: Value) -> str | None:
    """``x.to(torch.float16)`` of what is known to be of another dtype."""
    wanted = knowledge.dtype_of(called.args.get("dtype", 0))
    if called.name != ".to" or wanted is None or not isinstance(what, Tensor):
        return None
    return "is cast" if what.dtype is not None and what.dtype != wanted else None


def _is_of(value: Value, lib: str) -> bool:
    return any(isinstance(one, Tensor) and one.lib == lib for one in alternatives(value))


def _is_module(called: Called, what: Value, shown: ast.expr) -> bool:
    if called.name not in (".to", ".cuda", ".cpu"):
        return False
    if any(isinstance(one, (Instance, Object)) for one in alternatives(what)):
        return True
    name = shown.attr if isinstance(shown, ast.Attribute) else getattr(shown, "id", "")
    dropped = isinstance(called.statement, ast.Expr) and called.statement.value is called.node
    return dropped or bool(MODULE.search(name))


def _confidence(called: Called, what: Value) -> Confidence:
    to: Destination | None = destination_of(called)
    known = isinstance(what, Tensor) and what.devices and to is not None and to.devices
    return Confidence.HIGH if known or called.name == ".astype" else Confidence.MEDIUM


def _fix(called: Called, invariance: Invariance, repeated: Repeated) -> DraftFix | None:
    edit = hoisted(called.source, repeated, invariance)
    if edit is None:
        return None
    return DraftFix("do it before the loop", (edit,), Applicability.UNSAFE)
