"""All rules there are: those of the installed packs, and the linter's own."""

from __future__ import annotations

from functools import cache

from memlint.linter.own_rules import OWN_RULES
from memlint.rule import RuleSet, load_rules


@cache
def all_rules() -> RuleSet:
    """Every rule by code, and what could not be loaded.  Packs are imported once."""
    packs = load_rules()
    own = {rule.code: rule for rule in OWN_RULES}
    return RuleSet(dict(sorted({**packs.rules, **own}.items())), packs.errors, packs.packs)
