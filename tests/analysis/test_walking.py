"""Walks, and what is kept of them."""

from __future__ import annotations

import ast

from memlint.analysis.walking import blocks_in, definitions_in, forget_nodes, keep_tree, tree_of

SOURCE = "def f():\n    for x in y:\n        class A: z = lambda: 1\n"


def test_a_tree_is_kept_until_it_is_forgotten() -> None:
    tree = ast.parse(SOURCE)
    keep_tree(SOURCE, tree)
    assert tree_of(SOURCE) is tree
    forget_nodes()
    assert tree_of(SOURCE) is not tree
    assert ast.dump(tree_of(SOURCE)) == ast.dump(tree)


def test_blocks_are_statements_of_statements() -> None:
    tree = ast.parse(SOURCE)
    kinds = [type(one).__name__ for one in blocks_in(tree)]
    assert kinds == ["Module", "FunctionDef", "For", "ClassDef", "Assign"]
    assert [one.name for one in definitions_in(tree)] == ["f", "A"]  # type: ignore[attr-defined]
