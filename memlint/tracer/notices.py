"""What torch's profiler prints on standard error when it is started, stopped and surprised."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

_STDERR = 2
_NOTICE = re.compile(
    rb"^USDT:.* profiler_(start|stop)$"
    rb"|CPUAllocator\.cpp:\d+\] Memory block of unknown size was allocated before the profiling"
)


@contextmanager
def withheld() -> Iterator[None]:
    """Keep the profiler's notices from standard error; whatever else is written meanwhile
    follows at the end.  Where nothing can be kept, they pass."""
    with ExitStack() as stack:
        with suppress(OSError):
            before = os.dup(_STDERR)
            stack.callback(os.close, before)
            kept = stack.enter_context(tempfile.TemporaryFile())
            os.dup2(kept.fileno(), _STDERR)
            stack.callback(_give_back, before, kept)
        yield


def _give_back(before: int, kept: IO[bytes]) -> None:
    os.dup2(before, _STDERR)
    kept.seek(0)
    rest = b"".join(line for line in kept if not _NOTICE.search(line.rstrip()))
    while rest:
        rest = rest[os.write(_STDERR, rest) :]
