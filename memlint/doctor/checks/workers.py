"""Threads and worker processes: how many, how they start, what they share."""

from __future__ import annotations

from memlint.doctor.checks.limits import asked_threads
from memlint.doctor.counting import counted
from memlint.doctor.lines import Line, attention, bad, good, unknown
from memlint.doctor.machine import Machine
from memlint.doctor.sizes import size_text
from memlint.doctor.unknown import NOT_HERE, Unknown

_PREFETCHED = 2
_BATCH = 64 * 3 * 224 * 224 * 4
_DOCKER_DEFAULT = 64 << 20


def threads(machine: Machine) -> Line:
    """The threads that an operation takes, against the CPUs that it may use.

    https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html: too
    many threads take turns at a CPU; and torchrun sets OMP_NUM_THREADS to 1 for each of
    several processes (https://docs.pytorch.org/docs/stable/elastic/run.html).
    """
    usable = machine.cpus.usable
    if isinstance(usable, Unknown):
        return unknown("threads", usable)
    value = machine.host.environment.get("OMP_NUM_THREADS")
    asked = None if value is None else asked_threads(value)
    torch = machine.torch
    if not isinstance(torch, Unknown) and torch.threads > usable:
        return bad(
            "threads",
            f"PyTorch takes {torch.threads} threads on {counted(usable, 'CPU')}: they take turns, "
            "and each operation waits for the last of them",
            f"export OMP_NUM_THREADS={usable}",
        )
    if value is not None and asked is None:
        return attention(
            "threads",
            f"OMP_NUM_THREADS={value} is not a number of threads: OpenMP ignores it",
            f"export OMP_NUM_THREADS={usable}",
        )
    if asked is not None and asked > usable:
        return attention(
            "threads",
            f"OMP_NUM_THREADS={asked} on {counted(usable, 'CPU')}: where a library heeds it, "
            f"threads take turns{_of_torch(torch)}",
            f"export OMP_NUM_THREADS={usable}",
        )
    if asked == 1 and usable > 1:
        return attention(
            "threads",
            f"OMP_NUM_THREADS=1: operations on the CPU use one of {usable} CPUs (torchrun sets "
            "this by itself for several processes)",
            f"export OMP_NUM_THREADS={usable}  # divided by the processes of this machine",
        )
    if not isinstance(torch, Unknown):
        return good("threads", f"PyTorch takes {torch.threads} on {counted(usable, 'CPU')}")
    if asked is not None:
        return good("threads", f"OMP_NUM_THREADS={asked} on {counted(usable, 'CPU')}")
    return good("threads", f"as many as CPUs ({usable}): OMP_NUM_THREADS is not set")


def _of_torch(torch: object) -> str:
    threads = getattr(torch, "threads", None)
    return "" if threads is None else f" (PyTorch takes {threads})"


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
