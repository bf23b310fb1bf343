"""The linter's own rules (MEM9xx): about the use of memlint itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from memlint.findings import Applicability, Confidence, Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, DraftFix, Needs, Replacement, Rule
from memlint.selection import did_you_mean, matches
from memlint.source.model import Source
from memlint.source.suppress import Directive, Kind, Suppressions

_CODES = late_pattern(r"noqa\s*:([^\n]*)", re.IGNORECASE)


def _holds_a_code(text: str) -> bool:
    """Whether a `noqa` comment names a rule that memlint knows."""
    if "noqa" not in text and "NOQA" not in text:
        return False
    from memlint.linter.rules import all_rules

    known = all_rules().rules
    lists = (found[1].upper() for found in _CODES.finditer(text))
    return any(code in known for codes in lists for code in re.findall(r"[A-Z]+\d+", codes))


class UnusedSuppression(Rule):
    """A comment suppresses nothing.

    ## What it does

    Reports `# memlint: ignore[...]`, `# memlint: ignore-file[...]` and `# noqa: ...`
    comments that suppress no finding of memlint: the finding is gone, the comment stands
    on the wrong line, or it names a rule that does not exist.

    ## Why it is bad

    A comment that suppresses nothing tells readers of a defect that is not there. The next
    finding on that line, which nobody has looked at, will be hidden by it.

    ## When it is silent

    On a bare `# noqa` and on the codes of other linters, which are not memlint's to judge;
    on rules that did not run because they were not selected; on a bare `# memlint: ignore`
    when `select` or `ignore` has switched off rules that run by default.

    ## Example

    ```python
    loader = DataLoader(dataset, pin_memory=True)  # memlint: ignore[missing-pin-memory]
    ```

    ## Use instead

    ```python
    loader = DataLoader(dataset, pin_memory=True)
    ```

    ## Fix safety

    The fix removes the comment. It is offered where no part of it is of use, and changes no
    code.

    ## How to switch it on

    The rule is off by default. Use `--extend-select unused-suppression`, or in the
    configuration `extend-select = ["unused-suppression"]`.
    """

    code = "MEM901"
    name = "unused-suppression"
    severity = Severity.WARNING
    default_on = False
    applicability = Applicability.SAFE
    needs = Needs({"memlint:", _holds_a_code})

    @classmethod
    def family(cls) -> str:
        """The linter's own rules stand in a family of their own."""
        return "engine"

    def report(
        self,
        source: Source,
        suppressions: Suppressions,
        active: Sequence[type[Rule]],
        known: Mapping[str, type[Rule]],
    ) -> Iterator[Draft]:
        """Findings on the suppressions that were of no use; ``active`` are the rules that ran."""
        judge = _Judge(active, known)
        for directive in suppressions.directives:
            if judge.suppresses_this_rule(directive):
                continue
            for message in judge.complaints(directive):
                yield self.finding(
                    _node_at(source, directive),
                    message,
                    "remove the comment, or correct the rule that it names",
                    confidence=Confidence.HIGH,
                    fix=_removal(source, directive) if judge.is_useless(directive) else None,
                )


class _Judge:
    def __init__(self, active: Sequence[type[Rule]], known: Mapping[str, type[Rule]]) -> None:
        self._active = {rule.code for rule in active}
        self._known = known
        self._all_ran = all(
            code in self._active
            for code, rule in known.items()
            if rule.default_on and not rule.trace_only
        )

    def suppresses_this_rule(self, directive: Directive) -> bool:
        own = UnusedSuppression
        return directive.items is not None and directive.names(own.code, own.name) is not None

    def complaints(self, directive: Directive) -> Iterator[str]:
        if directive.kind is Kind.BROKEN:
            yield "the comment cannot be understood"
        elif directive.items is None:
            if directive.kind is not Kind.NOQA and self._all_ran and not directive.used:
                yield "no finding is suppressed here"
        else:
            for item in directive.items:
                if (complaint := self._complaint(directive, item)) is not None:
                    yield complaint

    def is_useless(self, directive: Directive) -> bool:
        """Whether nothing in the comment is of use, so that it may go as a whole."""
        if directive.kind is Kind.BROKEN:
            return False
        if directive.items is None:
            return True
        return all(self._complaint(directive, item) is not None for item in directive.items)

    def _complaint(self, directive: Directive, item: str) -> str | None:
        if item in directive.used:
            return None
        meant = [code for code, rule in self._known.items() if _means(directive, item, rule)]
        if not meant:
            if directive.kind is Kind.NOQA:
                return None
            if any(matches(item, rule) for rule in self._known.values()):
                return f"`{item}` is no single rule: a comment takes codes and names of rules"
            names = [name for code, rule in self._known.items() for name in (code, rule.name)]
            return f"unknown rule: {item}{did_you_mean(item, names)}"
        if not self._active.intersection(meant):
            return None
        return f"no finding of `{item}` is suppressed here"


def _means(directive: Directive, item: str, rule: type[Rule]) -> bool:
    if item == rule.name or item.upper() == rule.code:
        return True
    return directive.kind is Kind.NOQA and rule.code.startswith(item.upper())


def _node_at(source: Source, directive: Directive) -> ast.AST:
    end = directive.column + len(directive.comment)
    return _span(source, directive.line, directive.column, directive.line, end)


def _removal(source: Source, directive: Directive) -> DraftFix | None:
    if directive.comment.count("#") > 1:
        return None
    line = source.lines[directive.line - 1]
    kept = len(line[: directive.column].rstrip())
    node = _span(source, directive.line, kept, directive.line, len(line))
    return DraftFix("remove the comment", (Replacement(node, ""),), Applicability.SAFE)


def _span(source: Source, line: int, column: int, end_line: int, end_column: int) -> ast.AST:
    def offset(number: int, characters: int) -> int:
        return len(source.lines[number - 1][:characters].encode("utf-8"))

    return ast.Pass(
        lineno=line,
        col_offset=offset(line, column),
        end_lineno=end_line,
        end_col_offset=offset(end_line, end_column),
    )


OWN_RULES: tuple[type[Rule], ...] = (UnusedSuppression,)
