"""From text to meaning: what a program does to memory, as far as reading it can tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from memlint.config import Settings
from memlint.rule import Draft, PartlyRead, Rule, RuleFailure
from memlint.source.model import Source, with_newlines
from memlint.source.project import NOTHING, Followed, Project


def analyze(
    source: Source,
    tree: ast.Module,
    rules: Sequence[Rule],
    settings: Settings,
    *,
    sieve: bool = True,
    project: Project | None = None,
    followed: Followed = NOTHING,
) -> Iterator[Draft | RuleFailure | PartlyRead]:
    """The findings of ``rules`` in a program, as drafts; a rule that raises is a failure entry.

    ``followed`` is what the program imports of its ``project`` and is worth following.
    Without ``sieve`` every function is read, not only the candidates: slower, same findings.
    """
    from memlint.analysis.dispatch import Dispatcher
    from memlint.analysis.events import ProgramStart
    from memlint.analysis.index import Index
    from memlint.analysis.walking import forget_nodes, keep_tree

    dispatcher = Dispatcher(rules, source)
    yield from dispatcher.send(ProgramStart(tree, source))
    if not dispatcher.wants_meaning:
        return
    needs = (rule.needs for rule in rules)
    keep_tree(with_newlines(source.text), tree)
    index = Index(source, tree, needs, followed.texts) if sieve else None
    forget_nodes()
    if index is not None and not index.wants_any:
        return
    from memlint.analysis.interpreter import Interpreter

    watched = frozenset[str]().union(*(rule.calls for rule in rules))
    interpreter = Interpreter(
        source, tree, settings.target_device, index, watched, project, followed
    )
    for event in interpreter.events_of_program():
        yield from dispatcher.send(event)
    if interpreter.exhausted:
        yield PartlyRead(interpreter.spent)


__all__ = ["analyze"]
