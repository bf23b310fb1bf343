"""What a trace is asked for: checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memlint.findings import Finding

_LEFT_ALONE = ("refuted", "inconclusive")


def at_least(name: str, value: float, least: int) -> None:
    """Raises ``TypeError`` or ``ValueError`` for an option that is no such number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} has to be a number, not {value!r}")
    if not value >= least:
        raise ValueError(f"{name} has to be at least {least}, not {value}")


def listed(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """An option that may be one text, several, or none."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def asserted(findings: Sequence[Finding], select: str | Iterable[str] | None) -> list[Finding]:
    """The findings that count against a block, of the rules that ``select`` names: by code, name,
    family or the beginning of a code.  Raises ``ValueError`` where it names none."""
    from memlint.linter.rules import all_rules
    from memlint.selection import matches, unknown_selector

    rules = all_rules()
    selectors = [one.strip() for text in listed(select) for one in text.split(",")]
    for one in selectors:
        if (complaint := unknown_selector(one, rules)) is not None:
            raise ValueError(complaint)
    chosen = {
        code
        for code, rule in rules.rules.items()
        if not selectors or any(matches(one, rule) for one in selectors)
    }
    return [one for one in findings if one.code in chosen and _counts(one)]


def _counts(finding: Finding) -> bool:
    return (finding.evidence or {}).get("verdict") not in _LEFT_ALONE
