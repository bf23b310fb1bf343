"""What autograd keeps for backward passes, in bytes.

Torch is imported when it is asked for."""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager
from typing import Any


class SavedTensors:
    """The tensors that operations save while :meth:`watching`, as long as their graph lives."""

    def __init__(self) -> None:
        self._saved: weakref.WeakSet[_Saved] = weakref.WeakSet()

    def watching(self) -> AbstractContextManager[Any]:
        """A context in which what is saved is noted."""
        import torch

        return torch.autograd.graph.saved_tensors_hooks(self._pack, _unpacked)

    def nbytes(self, held: Any = (), besides: Any = ()) -> int:
        """Bytes of the memory behind what is saved now and behind the tensors ``held``, each
        counted once; that behind the tensors ``besides``, which is there in any case, is not."""
        known = {_place(tensor) for tensor in besides}
        places = {_place(tensor) for tensor in (*(one.tensor for one in self._saved), *held)}
        return sum(nbytes for _, nbytes in places - known)

    def _pack(self, tensor: Any) -> _Saved:
        saved = _Saved(tensor)
        self._saved.add(saved)
        return saved


class _Saved:
    """Stands for a saved tensor in the graph: it dies with it."""

    def __init__(self, tensor: Any) -> None:
        # Detached: a saved result that knew its graph would keep it alive in a cycle.
        self.tensor = tensor.detach()


def _unpacked(saved: _Saved) -> Any:
    return saved.tensor


def _place(tensor: Any) -> tuple[int, int]:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()
