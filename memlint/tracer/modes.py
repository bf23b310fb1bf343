"""How a traced block is listened to.

A dispatch mode sees what happened.  Calls that do nothing dispatch nothing: the few methods
that are of interest for it are wrapped.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

from memlint.tracer.signatures import PLAIN, is_stand_in

_BEGINS = torch.ops.profiler._record_function_enter_new.default
_ENDS = (
    torch.ops.profiler._record_function_exit.default,
    torch.ops.profiler._record_function_exit._RecordFunction,
)
_is_inference = torch.is_inference_mode_enabled
_function_modes = torch._C._len_torch_function_stack
_DisableTorchFunction = torch._C.DisableTorchFunction
_IDLE = ("contiguous", "to", "cuda", "cpu", "pin_memory", "float")


class Listener(Protocol):
    """Whom the modes tell."""

    def marker(self, name: str) -> None:
        """A range begins that torch itself marks: a step of an optimizer, a batch."""

    def marker_ends(self, name: str) -> None:
        """Such a range has ended."""

    def asked(self, name: str, tensor: torch.Tensor, *, idle: bool) -> None:
        """A method of a tensor was called that may do nothing; ``idle`` that it did nothing."""


Note = Callable[[Any, Sequence[Any], Mapping[str, Any], Any], None]
"""Is given an operation that has run: the operator, its arguments and its result."""


def _is_left_alone(code: CodeType) -> bool:
    """Have Dynamo compile neither a function nor what it calls; false where torch cannot."""
    try:
        from torch._C._dynamo.eval_frame import (
            _FrameAction,
            _FrameExecStrategy,
            set_code_exec_strategy,
        )
    except ImportError:
        return False
    set_code_exec_strategy(code, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))
    return True


class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tells of every operation of this thread and process.

    ``note`` is given the operations; ``None`` lets them pass.
    """

    supports_higher_order_operators = True

    def __init__(self, listener: Listener) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.note: Note | None = None
        self._listener = listener
        self._is_child = False
        self._open: list[str] = []
        self._composite: dict[int, bool] = {}
        # What runs an operator, by its identity: so that no other takes it, they are held on to.
        self._runs: dict[int, Any] = {}
        self._operators: list[Any] = []
        mine = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _hush(mine()))

    def __exit__(self, *error: Any) -> None:
        """Leave, and leave modes alone that were entered within and are still open; in another
        thread there is nothing to leave."""
        if self not in _get_current_dispatch_mode_stack():
            return
        above = []
        while (mode := _pop_mode()) is not self:
            above.append(mode)
        _push_mode(self)
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for mode in reversed(above):
            _push_mode(mode)

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled code goes on running compiled."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Whether torch has to wrap the handler so that Dynamo leaves it alone, which costs each
        operation two calls more."""
        return not _is_left_alone(cls.__torch_dispatch__.__code__)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if kwargs is None:
            kwargs = {}
        run = self._runs.get(id(func))
        if run is None or (types and not PLAIN.issuperset(types)):
            return self._out_of_line(func, types, args, kwargs)
        if _is_inference() and self._is_composite(func):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        try:
            result = run(*args, **kwargs)
        except RuntimeError:
            if not _takes_a_number_for_a_tensor(func, args):
                raise
            args = (_as_tensor(args[0]), *args[1:])
            result = run(*args, **kwargs)
        note = self.note
        if note is not None:
            if _function_modes():
                with _DisableTorchFunction():
                    note(func, args, kwargs, result)
            else:
                note(func, args, kwargs, result)
        return result

    def _out_of_line(
        self, func: Any, types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """What is not told of, or not as it comes; and each operator when it first does."""
        if self._is_child or not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        if any(map(is_stand_in, types)):
            return func(*args, **kwargs)
        if not PLAIN.issuperset(types):
            # A subclass takes the call apart; its parts come here again.
            return NotImplemented
        if func is _BEGINS or func in _ENDS:
            return self._marked(func, args, kwargs)
        self._operators.append(func)
        # Calling the operator itself would only pass the call on to this.
        self._runs[id(func)] = func._op if type(func) is torch._ops.OpOverload else func
        return self.__torch_dispatch__(func, types, args, kwargs)

    def _is_composite(self, func: Any) -> bool:
        known = self._composite.get(id(func))
        if known is None:
            known = self._composite[id(func)] = bool(func._can_decompose())
        return known

    def _marked(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Ranges that torch marks nest: each end is that of the last one that began."""
        if func is _BEGINS:
            self._open.append(str(args[0]))
            self._listener.marker(self._open[-1])
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        if self._open:
            self._listener.marker_ends(self._open.pop())
        return result

    def hush(self) -> None:
        """Tell nothing any more: this is a forked child."""
        self._is_child, self.note = True, None
        self._runs.clear()


_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


def _takes_a_number_for_a_tensor(func: Any, args: Sequence[Any]) -> bool:
    """Whether torch itself has made a number of the first operand on the way here: it does so
    with constants of ``torch.jit``, and does not take them back."""
    if not args or type(args[0]) not in _NUMBERS:
        return False
    return isinstance(func._schema.arguments[0].type, torch.TensorType)


def _as_tensor(number: Any) -> torch.Tensor:
    return torch.tensor(number, dtype=_NUMBERS[type(number)])


def _hush(mode: Watching | None) -> None:
    if mode is not None:
        mode.hush()


class Asking:
    """Tells of calls that may do nothing, by wrapping the methods while the block runs.

    A ``TorchFunctionMode`` would see them too, but while one is active torch takes other paths:
    its transformer layers leave their fast one, and results differ in the last bits.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._process, self._thread = os.getpid(), threading.get_ident()
        self._before: dict[str, Any] = {}

    def __enter__(self) -> Asking:
        for name in _IDLE:
            if name in vars(torch.Tensor):
                self._before[name] = vars(torch.Tensor)[name]
            setattr(torch.Tensor, name, self._wrapped(name, getattr(torch.Tensor, name)))
        return self

    def __exit__(self, *error: object) -> None:
        for name in _IDLE:
            if name in self._before:
                setattr(torch.Tensor, name, self._before[name])
            else:
                delattr(torch.Tensor, name)

    def _wrapped(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        listener = self._listener

        @functools.wraps(method)
        def asking(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            result = method(tensor, *args, **kwargs)
            if threading.get_ident() == self._thread and os.getpid() == self._process:
                with _DisableTorchFunction():
                    listener.asked(name, tensor, idle=result is tensor)
            return result

        # As what it stands for, by which it is found again where it is pickled.
        asking.__module__, asking.__qualname__ = "torch", f"Tensor.{name}"
        return asking
