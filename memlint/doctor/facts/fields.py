"""Files of names and values: /proc/meminfo, /proc/self/status, memory.stat and their like."""

from __future__ import annotations

from collections.abc import Mapping

from memlint.doctor.host import Host, whole_number
from memlint.doctor.unknown import Unknown


def fields_of(host: Host, path: str) -> Mapping[str, str] | Unknown:
    """Values by name, of a file of lines ``name: value``; the first of a name counts."""
    text = host.text(path)
    if isinstance(text, Unknown):
        return text
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


def flat_keys(host: Host, path: str) -> Mapping[str, int] | Unknown:
    """Numbers by name, of a file of lines ``name number``; other lines are left out."""
    text = host.text(path)
    if isinstance(text, Unknown):
        return text
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        number = whole_number(value.strip(), path)
        if not isinstance(number, Unknown):
            found[name] = number
    return found


def kilobytes(fields: Mapping[str, str] | Unknown, name: str, path: str) -> int | Unknown:
    """Bytes from a value as ``24684096 kB``."""
    if isinstance(fields, Unknown):
        return fields
    if name not in fields:
        return Unknown(f"{path}: no {name}", absent=True)
    number = whole_number(fields[name].removesuffix("kB").strip(), path)
    return number if isinstance(number, Unknown) else number * 1024
