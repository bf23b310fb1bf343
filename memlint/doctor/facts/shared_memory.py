"""The file system through which processes share memory."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.doctor.host import FileSystem, Host
from memlint.doctor.unknown import Unknown


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Room in /dev/shm, and whether this runs in a container, whose size was given to it."""

    room: FileSystem | Unknown
    container: bool


def read_shared_memory(host: Host) -> SharedMemory:
    """Ask the file system at /dev/shm; look for what container engines leave behind."""
    container = (
        host.exists("/.dockerenv")
        or host.exists("/run/.containerenv")
        or "KUBERNETES_SERVICE_HOST" in host.environment
    )
    return SharedMemory(host.file_system("/dev/shm"), container)
