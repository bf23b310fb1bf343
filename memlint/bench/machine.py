"""The machine that benches are run on: what their results depend on, and a name for it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from memlint import __version__
from memlint.doctor.facts.caches import read_caches
from memlint.doctor.facts.cpus import read_cpus
from memlint.doctor.host import Host
from memlint.doctor.unknown import Unknown

_PACKAGES = ("numpy", "numba", "torch", "triton", "cupy")


@dataclass(frozen=True, slots=True)
class Machine:
    """``caches`` are the bytes of the data and unified caches, by level; ``line`` the bytes of a
    cache line, 0 where unknown; ``packages`` the versions of the libraries that are there."""

    cpu: str
    cpus: int
    caches: Mapping[str, int]
    line: int
    system: str
    python: str
    memlint: str
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The same for the same machine with the same versions."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def this_machine(host: Host) -> Machine:
    """What a host says of itself."""
    cpus = read_cpus(host)
    caches = read_caches(host, cpus)
    known = () if isinstance(caches, Unknown) else caches
    return Machine(
        cpu="unknown CPU" if isinstance(cpus.model, Unknown) else cpus.model,
        cpus=0 if isinstance(cpus.usable, Unknown) else cpus.usable,
        caches={f"L{one.level}": one.size for one in known},
        line=max((one.line or 0 for one in known), default=0),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        memlint=__version__,
        packages=dict(_versions()),
    )


def _versions() -> list[tuple[str, str]]:
    found = []
    for name in _PACKAGES:
        try:
            found.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
