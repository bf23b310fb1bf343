"""What PyTorch is built for, and what kind of system this is."""

from __future__ import annotations

from memlint.doctor.counting import counted
from memlint.doctor.facts.torch_build import TorchBuild
from memlint.doctor.lines import Line, attention, bad, good, unknown
from memlint.doctor.machine import Machine
from memlint.doctor.sizes import size_text
from memlint.doctor.unknown import Unknown

_GET_STARTED = "https://pytorch.org/get-started/locally"


def torch_build(machine: Machine) -> Line:
    """What PyTorch is built for, against the GPUs that are here.

    https://pytorch.org/get-started/locally: the package comes in builds for CUDA, ROCm and
    the CPU alone.
    """
    found = machine.torch
    if isinstance(found, Unknown):
        return unknown("PyTorch", found)
    built = f"{found.version}, {_built_for(found)}"
    gpus = machine.devices.gpus
    vendors = set() if isinstance(gpus, Unknown) else {gpu.vendor for gpu in gpus}
    named = machine.devices.by_driver
    if machine.devices.paravirtual or (not isinstance(named, Unknown) and named):
        vendors.add("NVIDIA")
    if "NVIDIA" in vendors and found.cuda is None and found.hip is None:
        return bad(
            "PyTorch",
            f"{built}: the GPU is not used",
            f"pip install torch --index-url=<one of {_GET_STARTED}>",
        )
    if "NVIDIA" in vendors and found.cuda is not None and not found.available:
        return _unavailable(machine, built)
    if found.available:
        return good("PyTorch", f"{built}, sees {counted(found.devices, 'GPU')}")
    if found.mps:
        return good("PyTorch", f"{built}, sees the GPU of this Mac (MPS)")
    here = ", ".join(sorted(vendors))
    return good("PyTorch", f"{built}" + (f"; uses no GPU of {here}" if here else ""))


def _unavailable(machine: Machine, built: str) -> Line:
    hidden = machine.host.environment.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and hidden.strip() in ("", "-1"):
        return attention(
            "PyTorch",
            f"{built}: CUDA_VISIBLE_DEVICES={hidden} hides all GPUs",
            "unset CUDA_VISIBLE_DEVICES",
        )
    return bad("PyTorch", f"{built}, but it can use no GPU here", "nvidia-smi")


def _built_for(found: TorchBuild) -> str:
    if found.cuda is not None:
        return f"built for CUDA {found.cuda}"
    if found.hip is not None:
        return f"built for ROCm {found.hip}"
    return "built without CUDA and ROCm"


def wsl(machine: Machine) -> Line | None:
    """Linux within Windows.

    https://docs.nvidia.com/cuda/wsl-user-guide: pinned memory is limited there.
    https://learn.microsoft.com/windows/wsl/wsl-config: the virtual machine gets the memory
    that .wslconfig grants, half of that of Windows by default.
    """
    if not machine.is_wsl:
        return None
    total = machine.memory.total
    size = "" if isinstance(total, Unknown) else f" ({size_text(total)})"
    return attention(
        "WSL",
        "the memory that CUDA can pin is limited here: loaders with pin_memory=True may fail; "
        f"there is as much memory as .wslconfig grants{size}, read when WSL starts",
        "wsl.exe --shutdown",
    )
