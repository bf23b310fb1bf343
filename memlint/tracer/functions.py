"""Which functions a trace has seen operations of."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memlint.source.statements import MODULE
from memlint.tracer.evidence_file import EvidenceFile

_LOCALS = "<locals>"


class ReachedFunctions:
    """The functions and classes whose code ran, as far as operations tell.

    ``spelled`` turns a path of the trace into one as findings spell it.
    """

    def __init__(self, evidence: EvidenceFile, spelled: Callable[[str], str]) -> None:
        paths = {one.path: spelled(one.path) for one in evidence.sites}
        self._names = {
            (paths[site.path], name) for site in evidence.sites for name in around(site.function)
        }
        # Python 3.10 does not tell what a function is defined in.
        self._bare = str(evidence.meta.get("python", "")).startswith("3.10.")

    def has(self, path: str, function: str) -> bool:
        """Whether an operation of a function was seen, or of one that is defined in it."""
        name = function.rpartition(".")[2] if self._bare else function
        return (path, name) in self._names


def around(function: str) -> Iterator[str]:
    """A function and what it is defined in, to the module.

    Lambdas and comprehensions belong to the function that they are written in."""
    yield MODULE
    parts: list[str] = []
    for part in function.split("."):
        if part.startswith("<") and part != _LOCALS:
            return
        parts.append(part)
        if part != _LOCALS:
            yield ".".join(parts)
