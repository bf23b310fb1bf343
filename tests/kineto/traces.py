"""Traces written by hand, modelled on what Kineto writes for GPUs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class Recording:
    """Events of one host thread and one device, times in microseconds."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.header: dict[str, Any] = {"schemaVersion": 1}
        self._correlation = 0

    def event(self, category: str, name: str, begin: float, duration: float, **args: Any) -> None:
        """An event of the host."""
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": begin,
             "dur": duration, "args": args}
        )  # fmt: skip

    def step(self, number: int, begin: float, duration: float) -> None:
        """A step that ``profiler.step()`` has marked."""
        self.event("user_annotation", f"ProfilerStep#{number}", begin, duration)

    def operator(
        self,
        name: str,
        begin: float,
        duration: float,
        shapes: Sequence[Sequence[int]] | None = None,
        *,
        strides: Sequence[Sequence[int]] | None = None,
        types: Sequence[str] = (),
        values: Sequence[str] = (),
        sequence: int | None = None,
    ) -> None:
        """An operator; arguments behind the tensors have neither shape nor type."""
        args: dict[str, Any] = {"External id": len(self.events)}
        if sequence is not None:
            args["Sequence number"] = sequence
        if shapes is not None:
            rest = [[]] * (max(len(values), len(shapes)) - len(shapes))
            kinds = list(types) or ["float"] * len(shapes)
            args["Input Dims"] = [*shapes, *rest]
            args["Input type"] = [*kinds, *["" for _ in rest]]
            if strides is not None:
                args["Input Strides"] = [*strides, *rest]
            if values:
                args["Concrete Inputs"] = list(values)
        self.event("cpu_op", name, begin, duration, **args)

    def launched(
        self, category: str, name: str, begin: float, duration: float, *,
        call: str = "cudaLaunchKernel", host: Mapping[str, Any] | None = None, **args: Any,
    ) -> None:  # fmt: skip
        """Work of the device, launched by the host at ``begin``, and done 50 us later."""
        self._correlation += 1
        number = self._correlation
        self.event("cuda_runtime", call, begin, 1, correlation=number, **(host or {}))
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": begin + 50,
             "dur": duration, "args": {"correlation": number, "device": 0, **args}}
        )  # fmt: skip

    def copied(self, way: str, begin: float, duration: float, nbytes: int) -> None:
        """A copy, of a name like ``HtoD (Pageable -> Device)``."""
        call = "cudaMemcpyAsync"
        self.launched("gpu_memcpy", f"Memcpy {way}", begin, duration, call=call, bytes=nbytes)

    def waited(self, begin: float) -> None:
        """The host waits for the device."""
        self.event("cuda_runtime", "cudaStreamSynchronize", begin, 2, correlation=-1)

    def text(self) -> str:
        """The trace as a file has it."""
        return json.dumps({**self.header, "traceEvents": self.events})

    def save(self, path: Path) -> Path:
        """Write the trace, compressed if it is called so."""
        data = self.text().encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path
