"""The two modes that a traced block runs under.

The dispatch mode sees what happened, the function mode what was asked for: calls that do
nothing dispatch nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

_ENTER, _EXIT = "profiler::_record_function_enter_new", "profiler::_record_function_exit"
_IDLE = {
    torch.Tensor.contiguous: "contiguous",
    torch.Tensor.to: "to",
    torch.Tensor.cuda: "cuda",
    torch.Tensor.cpu: "cpu",
    torch.Tensor.pin_memory: "pin_memory",
    torch.Tensor.float: "float",
}


class Listener(Protocol):
    """Whom the modes tell."""

    def operation(
        self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """An operation has run."""

    def marker(self, name: str) -> None:
        """A range begins that torch itself marks: a step of an optimizer, a batch."""

    def marker_ends(self, name: str) -> None:
        """Such a range has ended."""

    def asked(self, name: str, tensor: torch.Tensor, *, idle: bool) -> None:
        """A method of a tensor was called that may do nothing; ``idle`` that it did nothing."""


class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tells of every operation of this thread and process."""

    supports_higher_order_operators = True

    def __init__(self, listener: Listener) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._listener = listener
        self._process = os.getpid()
        self._open: list[str] = []

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled code goes on running compiled."""
        return True

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if os.getpid() != self._process or not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        if any(one not in _PLAIN for one in types):
            # A subclass takes the call apart; its parts come here again.
            return NotImplemented if _is_distributed(types) else func(*args, **kwargs)
        if func.namespace == "profiler":
            return self._marked(func, args, kwargs)
        if torch.is_inference_mode_enabled() and _is_composite(func):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            self._listener.operation(func, args, kwargs, result)
        return result

    def _marked(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Ranges that torch marks nest: each end is that of the last one that began."""
        if func._schema.name == _ENTER:
            self._open.append(str(args[0]))
            self._listener.marker(self._open[-1])
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        if func._schema.name == _EXIT and self._open:
            self._listener.marker_ends(self._open.pop())
        return result


class Asking(TorchFunctionMode):
    """Tells of calls that may do nothing."""

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self._listener = listener
        self._process = os.getpid()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = _IDLE.get(func)
        if name is not None and os.getpid() == self._process:
            with torch._C.DisableTorchFunction():
                self._listener.asked(name, args[0], idle=result is args[0])
        return result


_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, torch.nn.Buffer})


def _is_composite(func: Any) -> bool:
    return bool(func._can_decompose())


def _is_distributed(types: Sequence[type]) -> bool:
    return any(one.__name__ == "DTensor" for one in types)
