"""What a finding is recognised by when lines move."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b


class Fingerprints:
    """The fingerprints of one file's findings, to be asked for in the order of their places.

    A fingerprint hashes the path (relative to the project's root), the qualified name of
    the function or class around the statement, the statement's text without its layout, and
    the rule's code.  Findings equal in all of these are numbered in order.
    """

    __slots__ = ("_path", "_seen")

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: Counter[bytes] = Counter()

    def of(self, qualname: str, statement: str, code: str) -> str:
        """The fingerprint of the next finding with these traits."""
        traits = "\0".join((self._path, qualname, statement, code))
        hashed = blake2b(traits.encode("utf-8", "surrogatepass"), digest_size=16)
        number = self._seen[hashed.digest()]
        self._seen[hashed.digest()] += 1
        if number:
            hashed.update(f"\0{number}".encode())
        return hashed.hexdigest()
