"""A mapping that forgets what was put in long ago."""

from __future__ import annotations

from typing import Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent(Generic[_K, _V]):
    """Keeps at least the last ``most`` entries, and at most twice as many.

    Entries go in bulk: forgetting them one by one would cost more than they do."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._young: dict[_K, _V] = {}
        self._old: dict[_K, _V] = {}

    def put(self, key: _K, value: _V) -> None:
        """Remember a value under a key, in place of what was there."""
        self._young[key] = value
        if len(self._young) > self._most:
            self._old, self._young = self._young, {}

    def get(self, key: _K) -> _V | None:
        """What was put last under a key, if it is still there."""
        value = self._young.get(key)
        return self._old.get(key) if value is None else value

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
