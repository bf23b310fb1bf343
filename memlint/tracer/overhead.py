"""What tracing costs, measured on the machine that it was done on."""

from __future__ import annotations

import time
from statistics import median

import torch

from memlint.tracer.session import Session

_ROUNDS, _CALLS = 15, 100


def cost_of_an_operation() -> float:
    """What a noted operation takes longer than one that is not traced, in seconds.

    The operation is one that has been noted before, as most are; it takes some milliseconds to
    find out."""
    vector = torch.zeros(8)
    with torch.no_grad():
        _time_of_calls(vector)
        pairs = [(_time_of_calls(vector), _time_of_traced_calls(vector)) for _ in range(_ROUNDS)]
    return max(median(traced - plain for plain, traced in pairs), 0.0) / _CALLS


def _time_of_traced_calls(vector: torch.Tensor) -> float:
    with Session(warmup=0):
        return _time_of_calls(vector)


def _time_of_calls(vector: torch.Tensor) -> float:
    torch.neg(vector)  # the first one is noted anew
    began = time.perf_counter()
    for _ in range(_CALLS):
        torch.neg(vector)
    return time.perf_counter() - began
