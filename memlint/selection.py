"""Which rules run: selectors, and how select and ignore are weighed against each other.

A selector is ``ALL``, a family (``locality``), a prefix of a code (``MEM1``), a code
(``MEM101``) or a name (``column-order-loop``).  The more exact selector wins; at equal
exactness, ignoring wins over selecting.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from memlint.late_pattern import late_pattern
from memlint.rule import Rule, RuleSet
from memlint.source.gitignore import IgnorePatterns
from memlint.toml_file import ConfigError

if TYPE_CHECKING:
    from memlint.config import Settings

ALL = "ALL"
_EXACT = 1000
_UNSELECTED = -1
_CODE = late_pattern(r"([A-Z]+)(\d*)")


def matches(selector: str, rule: type[Rule]) -> bool:
    """Whether a selector speaks of a rule."""
    return exactness(selector, rule) > _UNSELECTED


def exactness(selector: str, rule: type[Rule]) -> int:
    """How exactly a selector names a rule: -1 not at all, 0 for ``ALL``, more for longer ones."""
    if selector == rule.name or selector.upper() == rule.code:
        return _EXACT
    if selector == rule.family():
        return len(_letters(rule.code)) + 1
    if selector.upper() == ALL:
        return 0
    return len(selector) if _is_prefix(selector.upper(), rule.code) else _UNSELECTED


def _letters(code: str) -> str:
    match = _CODE.match(code)
    return match[1] if match else code


def _is_prefix(selector: str, code: str) -> bool:
    return code.startswith(selector) and len(selector) >= len(_letters(code))


def select_rules(settings: Settings, rules: RuleSet) -> tuple[type[Rule], ...]:
    """The rules that the settings ask for, by code."""
    for selectors in (settings.select, settings.extend_select, settings.ignore):
        for selector in selectors:
            if (complaint := unknown_selector(selector, rules)) is not None:
                raise ConfigError(None, None, complaint)
    return tuple(rule for rule in rules.rules.values() if _is_selected(settings, rule))


def _is_selected(settings: Settings, rule: type[Rule]) -> bool:
    if settings.target_device == "cpu" and rule.needs_device not in (None, "cpu"):
        return False
    by_default = 0 if not settings.select and rule.default_on else _UNSELECTED
    chosen = max(by_default, _best((*settings.select, *settings.extend_select), rule))
    return chosen > _best(settings.ignore, rule)


def _best(selectors: Iterable[str], rule: type[Rule]) -> int:
    return max((exactness(selector, rule) for selector in selectors), default=_UNSELECTED)


def ignored_in(settings: Settings, path: str, rules: Sequence[type[Rule]]) -> frozenset[str]:
    """The codes that ``per-file-ignores`` switches off in a file.

    ``path`` is relative to ``settings.root``, with forward slashes; patterns are written
    as in a .gitignore file.
    """
    if not settings.per_file_ignores:
        return frozenset()
    codes: set[str] = set()
    for pattern, selectors in settings.per_file_ignores.items():
        if _patterns(pattern).cover(path):
            codes.update(r.code for r in rules if any(matches(s, r) for s in selectors))
    return frozenset(codes)


@cache
def _patterns(pattern: str) -> IgnorePatterns:
    return IgnorePatterns([pattern])


def unknown_selector(selector: str, rules: RuleSet) -> str | None:
    """What to tell a user whose selector speaks of no rule; ``None`` if it speaks of one."""
    if selector.upper() == ALL or any(matches(selector, rule) for rule in rules.rules.values()):
        return None
    message = f"unknown rule selector {selector!r}{_suggestion(selector, rules)}"
    if rules.errors:
        broken = ", ".join(error.path for error in rules.errors)
        message += f"; some rules could not be loaded: {broken}"
    return message


def _suggestion(selector: str, rules: RuleSet) -> str:
    known = {ALL}
    for rule in rules.rules.values():
        known.update((rule.code, rule.name, rule.family()))
    return did_you_mean(selector, known)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``" (did you mean 'x'?)"`` for the nearest known word, or an empty string."""
    candidates = {name.casefold(): name for name in sorted(known)}
    near = difflib.get_close_matches(word.casefold(), candidates, n=1, cutoff=0.6)
    return f" (did you mean {candidates[near[0]]!r}?)" if near else ""
