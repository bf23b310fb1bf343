"""A rule described: its page, its table row, its data."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from memlint.bench.declare import is_benched
from memlint.findings import Applicability
from memlint.rule import Rule

_FIXES = {
    Applicability.SAFE: "safe",
    Applicability.UNSAFE: "unsafe",
    Applicability.DISPLAY: "shown",
    Applicability.NONE: "none",
}


def fix_word(rule: type[Rule]) -> str:
    """Whether the rule's fix may be applied mechanically, in one word."""
    return _FIXES[rule.applicability]


def default_word(rule: type[Rule]) -> str:
    """Whether the rule runs unless told otherwise."""
    return "on" if rule.default_on else "off"


def rule_data(rule: type[Rule]) -> dict[str, Any]:
    """A rule as plain data, without its page."""
    return {
        "code": rule.code,
        "name": rule.name,
        "family": rule.family(),
        "severity": rule.severity.value,
        "default": rule.default_on,
        "fix": fix_word(rule),
        "device": rule.needs_device,
        "bench": is_benched(rule),
        "summary": rule.summary(),
        "options": {
            key: {"default": option.default, "help": option.help}
            for key, option in rule.options.items()
        },
        "url": rule.url(),
    }


def body(rule: type[Rule]) -> str:
    """The rule's own text, in Markdown."""
    return inspect.getdoc(rule) or ""


def page(rule: type[Rule]) -> str:
    """The rule's page, in Markdown: what holds for it, then its own text, then its options."""
    return "\n".join(_rows(rule)).rstrip() + "\n"


def _rows(rule: type[Rule]) -> Iterator[str]:
    yield f"# {rule.name} ({rule.code})"
    yield ""
    facts = [
        f"severity **{rule.severity.value}**",
        f"**{default_word(rule)}** by default",
        f"fix: **{fix_word(rule)}**",
        f"family **{rule.family()}**",
    ]
    if rule.needs_device is not None:
        facts.append(f"speaks of code that runs on **{rule.needs_device}**")
    if is_benched(rule):
        facts.append(f"measured by `memlint bench {rule.name}`")
    yield " · ".join(facts)
    yield ""
    yield body(rule)
    if rule.options:
        yield ""
        yield "## Options"
        yield ""
        for key, option in rule.options.items():
            yield f"- `rules.{rule.name}.{key}` (default `{option.default}`): {option.help}"
