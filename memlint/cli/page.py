"""Writing HTML pages, for the commands that can."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlint.cli.shown import ShownTrace
from memlint.cli.status import Failed

if TYPE_CHECKING:
    from memlint.bench.results import Session


def require_html(extra: str = "trace") -> None:
    """Fail where what pages need is not installed, before anything else is done; it comes with an
    ``extra`` of the distribution."""
    if importlib.util.find_spec("jinja2") is None:
        raise Failed(f"--html needs jinja2: pip install 'memlint-ml[{extra}]'")


def write_bench_page(session: Session, output: Path) -> None:
    """Write the page of a run of benches."""
    from memlint.bench.html.page import render_page

    _write(render_page(session), output)


def write_page(document: Mapping[str, Any], output: Path, name: str) -> None:
    """Write the page of an evidence document, which messages call ``name``."""
    from memlint.report.html.cards import Sources
    from memlint.report.html.page import render_page
    from memlint.report.html.recorded import recorded
    from memlint.tracer.evidence_file import evidence_of_document, fault

    try:
        evidence, known = evidence_of_document(document), recorded(document)
    except (KeyError, TypeError, ValueError) as error:
        raise Failed(f"{name}: no evidence of a trace: {fault(document, error)}") from error
    shown = ShownTrace(evidence)
    sources = Sources(shown.traced_source, known.sources())
    _write(render_page(shown.meta, shown.as_traced(), known, sources), output)


def _write(page: str, output: Path) -> None:
    try:
        with output.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
            stream.write(page)
    except OSError as error:
        raise Failed(f"{output}: {error.strerror}") from error
