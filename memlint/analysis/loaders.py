"""What the arguments of a DataLoader say."""

from __future__ import annotations

from memlint.analysis.events import LoaderBuilt
from memlint.analysis.values import WITH_CUDA, Absent, Const, Linear, Unknown, alternatives


def has_workers(loader: LoaderBuilt) -> bool | None:
    """Whether a loader has worker processes; ``None`` where their number is not known."""
    unknown = loader.open
    none = False
    for one in alternatives(loader.argument("num_workers")):
        if isinstance(one, Const) and isinstance(one.value, int):
            if one.value > 0:
                return True
            none = True
        elif isinstance(one, Linear):
            return True
        elif isinstance(one, Absent):
            none = none or not loader.open
        else:
            unknown = True
    return False if none or not unknown else None


def pins(loader: LoaderBuilt) -> bool:
    """Whether a loader is asked to pin its batches, at least where there is CUDA."""
    return any(
        one == Const(True) or (isinstance(one, Unknown) and one.origin == WITH_CUDA)
        for one in alternatives(loader.argument("pin_memory"))
    )


def name_of(loader: LoaderBuilt) -> str:
    """What to call a loader in a message."""
    return f"`{loader.text}`" if loader.text else f"this `{loader.cls.rpartition('.')[2]}`"
