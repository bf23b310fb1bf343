"""The tracer: what a running program does to memory, seen and measured.

``trace`` is the whole public face.  Nothing here imports torch before a trace is entered.
"""

from __future__ import annotations

from memlint.tracer.trace import Trace, TraceError, trace

__all__ = ["Trace", "TraceError", "trace"]
