"""What of the program runs apart from the tracer, and what of the tracer apart from it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
)

# The checks of what they have made fail under any mode, also under one that does nothing.
_APART = ("trace", "trace_module")


@contextmanager
def aside() -> Iterator[None]:
    """Run the tracer's own operations so that no mode that the program has open sees or changes
    them: other dispatch modes, default devices, autocast, inference mode."""
    with ExitStack() as stack:
        stack.enter_context(_disable_current_modes())
        stack.enter_context(torch._C.DisableTorchFunction())
        stack.enter_context(torch.inference_mode(False))
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


class Apart:
    """Lets ``torch.jit.trace`` run without a mode, where there is no other one."""

    def __init__(self, mode: TorchDispatchMode) -> None:
        self._mode = mode
        self._before: dict[str, Any] = {}

    def __enter__(self) -> Apart:
        for name in _APART:
            self._before[name] = getattr(torch.jit, name)
            setattr(torch.jit, name, self._wrapped(self._before[name]))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for name, function in self._before.items():
            setattr(torch.jit, name, function)

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def apart(*args: Any, **kwargs: Any) -> Any:
            if _get_current_dispatch_mode_stack() != [self._mode]:
                return function(*args, **kwargs)
            with _disable_current_modes():
                return function(*args, **kwargs)

        return apart
