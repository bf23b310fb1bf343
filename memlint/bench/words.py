"""What reports say of a session, in words that all of them share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memlint.bench.claims import CLAIMS
from memlint.bench.plan import Plan
from memlint.bench.quantities import nbytes
from memlint.bench.results import Outcome, Row, Session


def facts(session: Session) -> Iterator[tuple[str, str]]:
    """What is known of the machine and of the run, by name."""
    machine, plan = session.machine, session.plan
    yield "CPU", f"{machine.cpu}, {_counted(machine.cpus, 'CPU')}" if machine.cpus else machine.cpu
    if machine.caches:
        lines = f"; lines of {machine.line} bytes" if machine.line else ""
        sizes = ", ".join(f"{name} {nbytes(size)}" for name, size in machine.caches.items())
        yield "caches", sizes + lines
    yield "system", machine.system
    versions = {"Python": machine.python, **machine.packages, "memlint": machine.memlint}
    yield "versions", ", ".join(f"{name} {version}" for name, version in versions.items())
    device = "" if plan.device == "cpu" else f", on {plan.device}"
    yield "run", f"{session.date}, {_threads(plan)}{device}{_kind(session)}"


def _threads(plan: Plan) -> str:
    text = _counted(plan.threads, "thread")
    return text if plan.parallel == plan.threads else f"{text}, {plan.parallel} in parallel loops"


def _kind(session: Session) -> str:
    plan = session.plan
    if plan.control:
        return "; control: each good form against itself"
    if plan.size is not None:
        return f"; at size {plan.size}"
    return "; all sizes" if plan.full else ""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def forms(row: Row) -> str:
    """What is compared: ``slices: a[:, j].sum() against a[i, :].sum()``."""
    compared = f"{row.as_is_form} against {row.alternative_form}"
    return f"{row.variant}: {compared}" if row.variant else compared


def not_measured(outcomes: Iterable[Outcome]) -> dict[str, list[str]]:
    """Why benches were not run, or not to their end, with the names of those."""
    reasons: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.skipped:
            reasons.setdefault(outcome.skipped, []).append(outcome.name)
        if outcome.failed:
            reasons.setdefault(f"failed: {outcome.failed}", []).append(outcome.name)
    return reasons


def note_of(claim: str) -> str:
    """What is known of a claim from elsewhere."""
    return CLAIMS[claim].note
