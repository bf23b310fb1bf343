"""The pytest plugin: tests that fail over what they do to memory.

``pytest --memlint`` heeds the marker ``memlint(no_layout_copies=True, max_copy_bytes=...,
no_sync=True)``, and lets the fixture ``memlint_trace`` trace.  Without the option, or without
torch, neither does anything, and nothing of the tracer is imported.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Generator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from memlint.findings import Finding
    from memlint.tracer.limits import Limits
    from memlint.tracer.trace import Trace

_MARKER = (
    "memlint(no_layout_copies=False, max_copy_bytes=None, no_sync=False): with --memlint, trace "
    "the test, or what runs in its fixture memlint_trace, and fail where it breaks these limits"
)
_FIXTURE = "memlint_trace"
_ACTIVE = pytest.StashKey[bool]()
_TRACE: pytest.StashKey[Trace] = pytest.StashKey()


class Untraced:
    """What the fixture gives where nothing is traced: it can be used as a trace is."""

    findings: Sequence[Finding] = ()
    sites: Sequence[Any] = ()

    def __enter__(self) -> Untraced:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing was traced."""

    def step(self) -> None:
        """No step is told."""

    def report(self) -> str:
        """An empty text."""
        return ""

    def assert_clean(self, select: str | Sequence[str] | None = None) -> None:
        """Nothing was seen, so that nothing can be wrong."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--memlint``."""
    group = parser.getgroup("memlint")
    group.addoption(
        "--memlint",
        action="store_true",
        help="trace tests that are marked with memlint, or use the fixture memlint_trace",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Announce the marker."""
    config.addinivalue_line("markers", _MARKER)
    wanted = bool(config.getoption("--memlint"))
    config.stash[_ACTIVE] = wanted and importlib.util.find_spec("torch") is not None


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say so where the option has no effect."""
    if config.getoption("--memlint") and not config.stash[_ACTIVE]:
        return "memlint: torch is not installed, so that nothing is traced"
    return None


@pytest.fixture
def memlint_trace(request: pytest.FixtureRequest) -> Trace | Untraced:
    """A trace for ``with memlint_trace:``; every step is noted, and nothing is printed."""
    if not request.config.stash[_ACTIVE]:
        return Untraced()
    made = _new()
    request.node.stash[_TRACE] = made
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Trace a marked test and hold it to its limits."""
    marker = item.get_closest_marker("memlint")
    if marker is None or not item.config.stash[_ACTIVE]:
        return (yield)
    limits = _limits(marker)
    trace = item.stash.get(_TRACE, None)
    if trace is None:
        trace = _new()
        with trace:
            result = yield
    else:
        result = yield
    _hold(trace, limits)
    return result


def _new() -> Trace:
    from memlint.tracer.trace import Trace

    return Trace(warmup=0, quiet=True, replay=False, profile_step=False)


def _limits(marker: pytest.Mark) -> Limits:
    from memlint.tracer.limits import Limits

    known = {one.name for one in fields(Limits)}
    unknown = ["a value without a name"] if marker.args else sorted(marker.kwargs.keys() - known)
    if unknown:
        pytest.fail(
            f"marker memlint: there is no limit {unknown[0]}: it takes {', '.join(sorted(known))}",
            False,
        )
    return Limits(**marker.kwargs)


def _hold(trace: Trace, limits: Limits) -> None:
    from memlint.tracer.trace import TraceError

    try:
        broken = trace.broken(limits)
    except TraceError as error:
        pytest.fail(f"the test is marked with memlint: {error}", False)
    if broken:
        pytest.fail("\n".join(["memlint: limits broken", *broken, "", trace.report()]), False)
