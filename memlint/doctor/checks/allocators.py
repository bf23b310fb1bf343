"""Allocators of memory on the CPU and on the GPU."""

from __future__ import annotations

import re

from memlint.doctor.lines import Line, attention, bad, good
from memlint.doctor.machine import Machine
from memlint.doctor.unknown import Unknown

_BRACKETS = re.compile(r"\[[^\]]*\]")
_BOOLEANS = (
    "expandable_segments",
    "pinned_use_background_threads",
)
_SWITCHES = {
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "each tensor on the GPU is allocated and freed by the driver",
    "CUDA_LAUNCH_BLOCKING": "each kernel is waited for, so that no copy overlaps with work",
}
"""Switches for looking for errors, and what they cost while they are set."""


def malloc(machine: Machine) -> Line | None:
    """What stands in for malloc.

    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html: jemalloc and
    TCMalloc can be preloaded; they keep memory that is freed, and return it later.
    """
    if not machine.host.is_linux:
        return None
    found = machine.allocators
    if found.preloaded is None:
        return good("malloc", "the one of the C library: no other is preloaded")
    if isinstance(found.loaded, Unknown) or found.preloaded in found.loaded:
        return good("malloc", f"{found.preloaded} is preloaded")
    return attention(
        "malloc",
        f"LD_PRELOAD names {found.preloaded}, which could not be loaded: the malloc of the C "
        "library is used",
        f"export LD_PRELOAD=$(ldconfig -p | awk '/lib{found.preloaded}/ {{print $NF; exit}}')",
    )


def cuda_allocator(machine: Machine) -> Line | None:
    """What PyTorch's allocator of the GPU is told.

    https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf:
    ``expandable_segments`` helps programs whose tensors change in size from step to step.
    PyTorch raises an error at the first allocation where it cannot read the settings.
    """
    topic = "CUDA allocator"
    settings = machine.allocators.settings
    if not settings:
        gpus = machine.devices.gpus
        if not machine.devices.paravirtual and (isinstance(gpus, Unknown) or not gpus):
            return None
        return good(
            topic,
            "as PyTorch sets it; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps where "
            "sizes change from step to step",
        )
    for name, value in settings:
        for option in _options(value):
            if fault := _fault(option):
                return bad(
                    topic,
                    f"{name}={value}: {fault}; PyTorch fails at the first allocation",
                    f"unset {name}",
                )
    if len({value for _, value in settings}) > 1:
        names = " and ".join(name for name, _ in settings)
        return attention(
            topic,
            f"{names} say different things: PyTorch reads both, and the latter wins",
            f"unset {settings[0][0]}",
        )
    name, value = settings[0]
    return good(topic, f"{name}={value}")


def _options(value: str) -> list[str]:
    """Options with their values; the commas within brackets do not part them."""
    flat = _BRACKETS.sub(lambda match: match[0].replace(",", ";"), value.replace(" ", ""))
    return [option for option in flat.split(",") if option]


def _fault(option: str) -> str | None:
    name, colon, value = option.partition(":")
    if not colon or not value:
        return f"`{option}` is not of the form name:value"
    if name in _BOOLEANS and value not in ("True", "False"):
        return f"{name} takes True or False"
    return None


def switches(machine: Machine) -> Line | None:
    """Switches for looking for errors.

    https://docs.pytorch.org/docs/stable/cuda_environment_variables.html; only where one is
    set.
    """
    on = [name for name in _SWITCHES if machine.host.environment.get(name) == "1"]
    if not on:
        return None
    costs = " and ".join(f"{name}=1: {_SWITCHES[name]}" for name in on)
    return bad("CUDA switches", costs, f"unset {' '.join(on)}")
