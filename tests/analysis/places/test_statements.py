"""The statements of a program by its text."""

from __future__ import annotations

import ast

from memlint.analysis.places.statements import ATTRIBUTE, MODULE, Asked, statements_of

SOURCE = '''
import numpy as np
LIMIT = (1,
2)
class A:
    """Text (with a bracket."""
    field: list
    def f(self, x, y=[  # first
            1]):
        self.field = x
        for i in range(3): last = i
        if x:
            return y
        elif y:
            return [x,
                y]
    def g(self): return LIMIT
def f(z):
    global LIMIT
    LIMIT = z
    def inner():
        yield z
    return inner
'''


def texts(asked: Asked) -> list[str]:
    program = statements_of(SOURCE)
    return [program.text(one).split("\n")[0].strip() for one in program.naming(asked)]


def test_a_statement_goes_on_in_brackets() -> None:
    program = statements_of(SOURCE)
    [limit] = [one for one in program.naming(Asked("LIMIT", MODULE)) if one < 2]
    assert ast.unparse(program.parsed(limit) or ast.Pass()) == "LIMIT = (1, 2)"
    method = program.naming(Asked("f", ATTRIBUTE))[0]
    head = program.parsed(method)
    assert isinstance(head, ast.FunctionDef)
    assert [one.arg for one in head.args.args] == ["self", "x", "y"]


def test_names_are_looked_for_where_they_may_be_set() -> None:
    assert texts(Asked("field", ATTRIBUTE)) == ["field: list", "self.field = x"]
    assert "LIMIT = (1," in texts(Asked("LIMIT", MODULE))
    assert "LIMIT = z" in texts(Asked("LIMIT", MODULE))
    assert "def g(self): return LIMIT" not in texts(Asked("LIMIT", MODULE))


def test_what_a_function_gives_back() -> None:
    program = statements_of(SOURCE)
    tree = ast.parse(SOURCE)
    method, one_line = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)][1:3]
    assert (method.name, one_line.name) == ("f", "g")
    given = [ast.unparse(one) for one in program.given_back(program.unit_of(method))]
    assert given == ["y", "[x, y]"]
    given = [ast.unparse(one) for one in program.given_back(program.unit_of(one_line))]
    assert given == ["LIMIT"]


def test_functions_of_one_name_are_told_apart() -> None:
    program = statements_of(SOURCE)
    functions = [one for one in ast.walk(ast.parse(SOURCE)) if isinstance(one, ast.FunctionDef)]
    first, second = (program.unit_of(one) for one in functions if one.name == "f")
    assert program.owner(second) == "A"
    assert program.owner(first) == ""
