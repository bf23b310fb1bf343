"""Sizes in binary units, read and written."""

from __future__ import annotations

import re

from memlint.doctor.unknown import Unknown

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_CACHE_SIZE = re.compile(r"([0-9]{1,12})([KMG]?)")


def size_text(size: int) -> str:
    """A number of bytes, in three digits or a few more: ``1.25 MiB``, ``36.8 MiB``."""
    value, unit = float(size), 0
    # Rounded first, so that no size is shown as 1024 of a unit.
    while round(value, 1) >= 1024 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    number = f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number} {_UNITS[unit]}"


def parse_size(text: str, path: str) -> int | Unknown:
    """Bytes from a size with a suffix, as the kernel writes it for caches: ``32768K``."""
    match = _CACHE_SIZE.fullmatch(text)
    if match is None:
        return Unknown(f"{path}: not a size")
    return int(match[1]) * _SUFFIXES[match[2]]
