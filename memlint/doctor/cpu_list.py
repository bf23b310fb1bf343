"""Lists of CPUs and nodes as the kernel writes them: ``0-3,8,10-11``."""

from __future__ import annotations

from collections.abc import Collection

from memlint.doctor.unknown import Unknown

_MOST = 1 << 16
"""A list that names higher numbers is damaged: kernels are built for fewer CPUs."""


def parse_list(text: str, path: str) -> frozenset[int] | Unknown:
    """The numbers in a list; an empty list is a list."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, dash, last = part.strip().partition("-")
        ends = (first, last) if dash else (first, first)
        if not all(end.isascii() and end.isdigit() and len(end) <= 5 for end in ends):
            return Unknown(f"{path}: not a list of numbers")
        low, high = map(int, ends)
        if low > high or high >= _MOST:
            return Unknown(f"{path}: not a list of numbers")
        found.update(range(low, high + 1))
    return frozenset(found)


def list_text(numbers: Collection[int]) -> str:
    """Numbers in the notation of the kernel."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in runs)
