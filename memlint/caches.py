"""How large the last cache is, and how many sets of buffers outlast it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

MOST_BYTES = 512 << 20
"""Of buffers that are made for one comparison."""

_MOST_SETS = 128
_USUAL_CACHE, _LARGEST_CACHE = 32 << 20, 64 << 20
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def count_of_sets(nbytes: int) -> int:
    """So many sets of ``nbytes`` each that going through them outlasts the caches, or as many as
    can be afforded."""
    once = max(nbytes, 1)
    outlasting = -(-2 * last_cache() // once)
    return max(1, min(_MOST_SETS, outlasting, MOST_BYTES // (2 * once)))


@lru_cache
def last_cache() -> int:
    """Bytes of the largest cache, as far as the system tells, within bounds."""
    sizes = [
        int(text[:-1]) << 10
        for file in _CACHES.glob("index*/size")
        if (text := file.read_text("ascii").strip()).endswith("K")
    ]
    return min(max(sizes, default=_USUAL_CACHE), _LARGEST_CACHE)
