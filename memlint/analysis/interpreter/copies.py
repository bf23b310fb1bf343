"""Copies from a device to host memory that nothing has waited for yet.

Which of them may still be running is kept among the variables of the function, under names
that are no identifiers, so that it is joined where paths join.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memlint.analysis import knowledge
from memlint.analysis.events import HostCopy
from memlint.analysis.interpreter.lanes import Lanes
from memlint.analysis.interpreter.state import Variables
from memlint.analysis.knowledge import Args
from memlint.analysis.placement import names_host, on_cuda
from memlint.analysis.values import (
    Absent,
    Bound,
    Const,
    Function,
    Mapping,
    Object,
    Sequence,
    Site,
    Tensor,
    Unknown,
    Value,
    alternatives,
    devices_of,
    leaves,
    loaders_of,
    made_of,
    plain,
)
from memlint.late_pattern import late_pattern
from memlint.source.project import source_of

PENDING = "memlint.pending"
CPU = frozenset({"cpu"})
_WAITS = late_pattern(
    r"synchron|barrier|(^|[._])(wait|sync)(_all|_for\w*)?$|(^|_)sync_|^\.(query|join)$"
)
_RECORDS = late_pattern(r"^\.(record|record_event|record_stream|wait_stream|wait_event)$")
_READS_DEVICE = frozenset({".item", ".tolist", ".cpu", ".numpy"})
# What gives (a part of) the memory that it is given, and reads none of it.
_SAME = frozenset(
    {"operator.getitem", ".view", ".view_as", ".reshape", ".flatten", ".squeeze", ".unsqueeze",
     ".transpose", ".t", ".permute", ".expand", ".narrow", ".select", ".detach", ".T", ".mT",
     ".cpu", ".contiguous", ".chunk", ".split", ".unbind", ".float", ".half", ".long", ".double",
     ".bfloat16", ".int", ".bool", ".copy_", ".to", ".get", ".pop", ".items", ".values", ".data",
     ".requires_grad_", ".swapaxes", ".movedim", "builtins.list", "builtins.tuple",
     "builtins.dict", "builtins.zip", "builtins.enumerate", "builtins.next", "builtins.iter"}
)  # fmt: skip
_ASKS = frozenset(
    {".size", ".dim", ".numel", ".stride", ".data_ptr", ".element_size", ".is_pinned",
     ".is_contiguous", ".storage", ".untyped_storage", ".ndimension", ".nelement", ".cuda",
     ".get_device", ".storage_offset", ".type", ".share_memory_", ".copy_"}
)  # fmt: skip
_BUILTIN_READS = frozenset(
    f"builtins.{name}" for name in ("float", "int", "bool", "print", "str", "repr", "format", "sum",
                                    "max", "min", "sorted", "abs", "round")
)  # fmt: skip
_WRITERS = frozenset(
    {"torch.save", "pickle.dump", "pickle.dumps", "numpy.save", "safetensors.torch.save_file",
     "safetensors.torch.save", "joblib.dump"}
)  # fmt: skip
_FUNCTION = late_pattern(r"torch\.[a-z]\w*$")
_ASKING = frozenset(
    f"torch.{name}" for name in ("is_tensor", "numel", "is_floating_point", "is_complex", "compile",
                                 "result_type", "device", "is_storage", "is_nonzero", "typename")
)  # fmt: skip
_GROWS = frozenset({".append", ".extend", ".appendleft", ".add", ".put", ".insert", ".update"})
_NO_READS = frozenset(
    f"operator.{name}" for name in ("is", "isnot", "in", "notin", "not", "setitem")
)
_DEPTH = 12


class Copies(Lanes):
    """Follows copies that the host does not wait for."""

    follows_copies: bool = False
    # By the name of the variable that keeps their state.
    host_copies: dict[str, HostCopy]
    # Functions that wait for what is running, and what others leave running, by their node.
    waiting: set[int]
    leaving: dict[int, Variables]
    # Functions that the program calls itself, so that it is their callers who are asked.
    answered: set[int]
    waits: int = 0

    def operation(
        self,
        name: str,
        node: ast.AST,
        receiver: Value | None,
        args: Args,
        value: Value,
        graphs: frozenset[Site] = frozenset(),
    ) -> Value:
        result = super().operation(name, node, receiver, args, value, graphs)
        if self.follows_copies:
            if self.host_copies:
                self._note_operation(name, node, receiver, args)
            if name in (".to", ".copy_") and receiver is not None:
                self._start(name, node, receiver, args, result)
        return result

    # The state

    def _here(self) -> Variables:
        return self.scope.beyond_comprehensions().vars

    def _running(self) -> dict[str, HostCopy]:
        """The copies of this function that may be running at this point."""
        here = self._here()
        return {
            name: copy
            for name, copy in self.host_copies.items()
            if name in here and any(not isinstance(v, Absent) for v in alternatives(here[name]))
        }

    def _start(self, name: str, node: ast.AST, receiver: Value, args: Args, result: Value) -> None:
        if not _is_switched_on(name, args):
            return
        if name == ".to":
            if names_host(args.get("device", 0)) and not _is_on_host(receiver):
                self._begin(node, result, held=False)
        elif _is_host_buffer(receiver, args.get("src", 0)):
            copy = self._begin(node, receiver, held=_outlives(node))
            copy.kept_in.update({_kept_in(node)} - {""})

    def _begin(self, node: ast.AST, target: Value, *, held: bool) -> HostCopy:
        key = f"<copy {id(node)}>"
        if key not in self.host_copies:
            self.host_copies[key] = HostCopy(node, source_of(node, self.source))
        copy = self.host_copies[key]
        copy.sites.update(id(site) for site in _storages(target) if site.node is not node)
        self._here()[key] = self._pending(node, held=held, recorded=False)
        return copy

    def _pending(self, node: ast.AST, *, held: bool, recorded: bool) -> Value:
        facts = (("held", Const(held)), ("recorded", Const(recorded)))
        return Object(PENDING, self.sites.at(node, "copy"), facts)

    def _wait(self) -> None:
        """The host waits for the device: nothing that was begun is running any more."""
        self.waits += 1
        for scope in (self.scope.beyond_comprehensions(), *self.suspended):
            for key in self.host_copies:
                scope.vars.pop(key, None)

    def _mark(self, keys: Iterator[str] | list[str], *, held: bool, recorded: bool) -> None:
        here = self._here()
        for key in keys:
            old = _facts(here.get(key, Absent()))
            node = self.host_copies[key].node
            here[key] = self._pending(
                node, held=held or old["held"], recorded=recorded or old["recorded"]
            )

    # What happens to them

    def _note_operation(self, name: str, node: ast.AST, receiver: Value | None, args: Args) -> None:
        running = self._running()
        if not running and not self.suspended:
            return
        if _WAITS.search(name):
            self._wait()
            return
        if _RECORDS.search(name):
            self._mark(list(running), held=False, recorded=True)
            return
        given = (*(() if receiver is None else (receiver,)), *args.positional)
        given += tuple(args.keywords.values())
        touched = [
            key
            for key, copy in running.items()
            if any(_holds(v, copy) and not _is_fetched_back(v, copy) for v in given)
        ]
        if not touched:
            if receiver is not None and not _is_on_host(receiver) and _blocks(name, args):
                # A blocking read of another tensor waits for all before it.
                self._wait()
            return
        if _moves_to_device(name, args):
            # It goes back to where it came from, in the order of the stream.
            for key in touched:
                self._here().pop(key, None)
        elif _keeps(name, node, args):
            self._mark(touched, held=True, recorded=False)
            for key in touched:
                self.host_copies[key].kept_in.update({_kept_in(node)} - {""})
        elif _reads(name, node, args):
            for key in touched:
                self.host_copies[key].read = self.host_copies[key].read or node

    # Functions

    def call_function(self, function: Function, args: Args, node: ast.AST) -> Value:
        result = super().call_function(function, args, node)
        if self.follows_copies:
            key = id(function.node)
            if key in self.waiting or _WAITS.search(function.name):
                self._wait()
            self._here().update(self.leaving.get(key, {}))
        return result

    def run(
        self, function: Function, args: Args, node: ast.AST | None = None, *, entry: bool = False
    ) -> Value:
        if not self.follows_copies:
            return super().run(function, args, node, entry=entry)
        before = self.waits
        if node is not None:
            self.answered.add(id(function.node))
        self.leaving.pop(id(function.node), None)
        result = super().run(function, args, node, entry=entry)
        if self.waits > before:
            self.waiting.add(id(function.node))
        return result

    def _return(self, node: ast.Return) -> None:
        super()._return(node)
        if self.follows_copies and self.host_copies:
            self._leave(self.frame.returns[-1])

    def tell_nests(self) -> None:
        super().tell_nests()
        if self.follows_copies and self.host_copies and self.frame.live:
            self._leave(Const(None))

    def _leave(self, returned: Value) -> None:
        """The function ends here: what outlives it, and is still being written?"""
        function = self.frame.function
        if function is None:
            return
        here = self._here()
        for key, copy in self._running().items():
            facts = _facts(here[key])
            if not facts["held"] and not _holds(returned, copy):
                continue
            if self.frame.call is not None:
                self.leaving.setdefault(id(function.node), {})[key] = here[key]
            elif not facts["recorded"]:
                copy.left_by.add(id(function.node))

    def _goes_back(self, copy: HostCopy) -> bool:
        """Whether the program moves to a device again what it keeps: streams order that."""
        return any(
            re.search(rf"\.{attribute}\b.*\.(cuda\(|to\((?!(device=)?[\"']cpu))", copy.source.text)
            for attribute in copy.kept_in
        )

    def tell_copies(self) -> Iterator[HostCopy]:
        """The copies that are read too early, or left to others."""
        for copy in self.host_copies.values():
            copy.outlives = not copy.left_by <= self.answered and not self._goes_back(copy)
            if copy.read is not None or copy.outlives:
                yield copy


def _kept_in(node: ast.AST) -> str:
    """The attribute that is assigned to, whose item is, or that a method is called on."""
    base: ast.AST = node.func.value if _is_method(node) else node  # type: ignore[attr-defined]
    while isinstance(base, ast.Subscript):
        base = base.value
    return base.attr if isinstance(base, ast.Attribute) else ""


def _facts(value: Value) -> dict[str, bool]:
    """What is known of a copy that may be running; on some path is enough for being held, on
    all of them it must be for an event to be recorded."""
    states = [one for one in alternatives(value) if isinstance(one, Object)]
    return {
        "held": any(Const(True) in alternatives(one.fact("held")) for one in states),
        "recorded": bool(states)
        and all(Const(False) not in alternatives(one.fact("recorded")) for one in states),
    }


def _is_switched_on(name: str, args: Args) -> bool:
    given = args.get("non_blocking")
    if not isinstance(given, Absent):
        return Const(True) in alternatives(given)
    return any(one == Const(True) for one in args.positional[1:])


def _blocks(name: str, args: Args) -> bool:
    """Whether a method brings a tensor to the host, and waits for that."""
    if name == ".to":
        return names_host(args.get("device", 0)) and not _is_switched_on(name, args)
    return name in _READS_DEVICE


def _is_on_host(value: Value) -> bool:
    return devices_of(value) == CPU or bool(loaders_of(value))


def _is_host_buffer(target: Value, source: Value) -> bool:
    """Whether ``target.copy_(source)`` goes from a device to memory of the host."""
    if devices_of(target) != CPU or _is_on_host(source):
        return False
    return _is_pinned(target) or on_cuda(source)


def _storages(value: Value) -> Iterator[Site]:
    """The storages that ``value`` may be (a part of)."""
    for _ in range(_DEPTH):
        made = None
        for one in alternatives(value):
            if isinstance(one, Tensor) and one.site is not None:
                yield one.site
            made = made or made_of(one)
        if made is None or made.name not in _SAME or not made.inputs:
            return
        value = made.inputs[0]


def _is_pinned(value: Value) -> bool:
    """Whether (the whole of) ``value`` was made in page-locked memory."""
    for _ in range(_DEPTH):
        if any(isinstance(one, Tensor) and one.pinned for one in alternatives(value)):
            return True
        made = next((m for one in alternatives(value) if (m := made_of(one)) is not None), None)
        if made is None:
            return False
        if Const(True) in alternatives(made.get("pin_memory")):
            return True
        if made.name not in _SAME or not made.inputs:
            return False
        value = made.inputs[0]
    return False


def _outlives(node: ast.AST) -> bool:
    """Whether what a method is called on is (a part of) an attribute."""
    return bool(_kept_in(node))


def _is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def _holds(value: Value, copy: HostCopy) -> bool:
    """Whether ``value`` is or holds (a view of) what is copied to."""
    return any(_is_target(one, copy) for one in _opened(value, 0))


def _is_fetched_back(value: Value, copy: HostCopy, depth: int = 0) -> bool:
    """Whether ``value`` is what is copied on one path only, and was moved to a device again on
    another: what lets a program choose is mostly whether it has a device at all."""
    for one in alternatives(value):
        made = made_of(one)
        if made is None or made.node is copy.node or not made.inputs or depth > _DEPTH:
            continue
        if _moves_to_device(made.name, Args(made.inputs[1:], dict(made.keywords))):
            if _holds(made.inputs[0], copy):
                return True
        elif made.name in _SAME and _is_fetched_back(made.inputs[0], copy, depth + 1):
            return True
    return False


def _moves_to_device(name: str, args: Args) -> bool:
    given = args.get("device", 0)
    if name == ".to" and isinstance(given, Absent):
        return False
    return name in (".to", ".cuda") and not (
        names_host(given) or knowledge.dtype_of(given) is not None
    )


def _opened(value: Value, depth: int) -> Iterator[Value]:
    for leaf in leaves(value):
        if isinstance(leaf, Object) and leaf.cls.startswith("builtins.") and depth < 3:
            for _, fact in leaf.facts:
                yield from _opened(fact, depth + 1)
        else:
            yield leaf


def _is_target(value: Value, copy: HostCopy) -> bool:
    for _ in range(_DEPTH):
        value = plain(value) if isinstance(value, Bound) else value
        if isinstance(value, Tensor) and id(value.site) in copy.sites:
            return True
        made = made_of(value)
        if made is None:
            return False
        if made.node is copy.node:
            return True
        if made.name not in _SAME or not made.inputs:
            return False
        if made.name == ".to" and not _is_on_host(value):
            return False
        value = made.inputs[0]
        if isinstance(value, (Sequence, Mapping)):
            return _holds(value, copy)
    return False


def _keeps(name: str, node: ast.AST, args: Args) -> bool:
    """Whether an operation puts what it is given where it outlives the function."""
    if name == "setattr":
        return True
    if name in _GROWS:
        return _outlives(node)
    if name == "operator.setitem" and isinstance(node, ast.Subscript):
        base = args.positional[1]
        return isinstance(node.value, ast.Attribute) or (
            isinstance(base, Unknown) and base.origin == "parameter"
        )
    return False


def _reads(name: str, node: ast.AST, args: Args) -> bool:
    """Whether an operation reads the memory of what it is given, on the host."""
    if name in _SAME or name in _ASKS or name in _GROWS or name == "setattr":
        return False
    if name == "operator.setitem":
        base = args.positional[1]
        return isinstance(base, Tensor) and base.devices == CPU
    if name.startswith("operator."):
        return name not in _NO_READS
    if name.startswith("numpy.") or name in _WRITERS or name in _BUILTIN_READS:
        return True
    if name.startswith("torch."):
        computes = _FUNCTION.match(name) or name in knowledge.functions()
        return bool(computes) and name not in _ASKING and not _goes_elsewhere(args)
    return name in (".item", ".tolist", ".numpy") or name[1:] in knowledge.methods("torch")


def _goes_elsewhere(args: Args) -> bool:
    given = knowledge.device_types(args.get("device"))
    return bool(given) and given != CPU
