"""What names of GPU work say: kernels that only convert layouts, and kinds of copies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

# Of cuDNN (``cudnn::ops``, ``cudnn::engines_precompiled``), and of MIOpen around its convolutions.
CONVERSIONS = {
    "nchwToNhwcKernel": "NCHW to NHWC",
    "nhwcToNchwKernel": "NHWC to NCHW",
    "nchwToFoldedNhwcKernel": "NCHW to NHWC",
    "batched_transpose_": "NCHW to NHWC or back",
}
"""Parts of the names of kernels that bring arrays from one format into another, and which."""


@lru_cache(maxsize=4096)
def converter(kernel: str) -> str | None:
    """The part of a kernel's name that says that it converts; ``None`` for one that computes."""
    return next((part for part in CONVERSIONS if part in kernel), None)


def conversion(kernel: str) -> str | None:
    """The formats that a kernel converts between; ``None`` for one that computes."""
    part = converter(kernel)
    return None if part is None else CONVERSIONS[part]


@dataclass(frozen=True, slots=True)
class CopyKind:
    """What a copy's name says: ``source`` and ``target`` are ``"host"``, ``"device"`` or
    ``"other"``; ``pinned`` tells of the host's side, ``None`` where the name does not."""

    source: str
    target: str
    pinned: bool | None

    @property
    def to_device(self) -> bool:
        """Whether it goes from host memory to a device's."""
        return (self.source, self.target) == ("host", "device")

    @property
    def to_host(self) -> bool:
        """Whether it goes from a device's memory to the host's."""
        return (self.source, self.target) == ("device", "host")


_SIDES = {"HtoD": ("host", "device"), "DtoH": ("device", "host"), "DtoD": ("device", "device")}
_PINNING = {"Pinned": True, "Pageable": False}


@lru_cache(maxsize=256)
def copy_kind(name: str) -> CopyKind:
    """The kind of a copy named as ``Memcpy HtoD (Pageable -> Device)``."""
    words = name.replace("(", " ").replace(")", " ").split()
    way = next((one for one in words if one in _SIDES), "")
    source, target = _SIDES.get(way, ("other", "other"))
    told = [_PINNING[one] for one in words if one in _PINNING]
    return CopyKind(source, target, told[0] if len(told) == 1 else None)
