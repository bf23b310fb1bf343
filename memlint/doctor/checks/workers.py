"""Worker processes: how they start, and what they share."""

from __future__ import annotations

from memlint.doctor.counting import counted
from memlint.doctor.lines import Line, attention, bad, good, unknown
from memlint.doctor.machine import Machine
from memlint.doctor.sizes import size_text
from memlint.doctor.unknown import NOT_HERE, Unknown

_PREFETCHED = 2
_BATCH = 64 * 3 * 224 * 224 * 4
_DOCKER_DEFAULT = 64 << 20


def start_method(machine: Machine) -> Line:
    """How workers start, and so what they share with the program.

    https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods: fork
    is the default on Linux before Python 3.14, forkserver from then on, spawn elsewhere.
    """
    method = machine.host.start_method
    if method == "fork":
        return good(
            "start method",
            "fork: workers share each page of the data set until one writes to it; to count "
            "references is to write",
        )
    return attention(
        "start method",
        f"{method}: the data set is pickled to each worker; lists and NumPy arrays in it are "
        "copied, tensors are shared",
    )


def shared_memory(machine: Machine) -> Line:
    """Room in /dev/shm, through which workers hand over their batches.

    https://docs.pytorch.org/docs/stable/multiprocessing.html and the README of PyTorch: what
    a container gets by default (64 MiB from Docker) is not enough.  Each worker holds two
    batches (``prefetch_factor``).
    """
    topic = "shared memory"
    room = machine.shared.room
    if not machine.host.is_linux:
        return unknown(topic, NOT_HERE)
    if isinstance(room, Unknown):
        if not room.absent:
            return unknown(topic, room)
        return bad(topic, "there is no /dev/shm: workers cannot hand over tensors", _grow(machine))
    text = f"{size_text(room.free)} of {size_text(room.total)} free in /dev/shm"
    if room.total <= _DOCKER_DEFAULT:
        return bad(
            topic,
            f"{text}: batches of workers go through it, and a worker that finds it full dies "
            "of a bus error",
            _grow(machine),
        )
    usable = machine.cpus.usable
    if isinstance(usable, Unknown):
        return good(topic, text)
    share = room.free // (usable * _PREFETCHED)
    workers = counted(usable, "worker")
    if share < _BATCH:
        return attention(
            topic,
            f"{text}: {workers} with {_PREFETCHED} batches each have {size_text(share)} a batch; "
            f"64 images of 224 x 224 as float32 take {size_text(_BATCH)}",
            _grow(machine),
        )
    return good(topic, f"{text}: {size_text(share)} a batch for {workers}")


def _grow(machine: Machine) -> str:
    if machine.shared.container:
        return "docker run --shm-size=8g ..."
    return "sudo mount -o remount,size=50% /dev/shm"
