from __future__ import annotations

import ast
import textwrap

import pytest

from memlint.analysis.uses import Uses, uses_in


def uses(program: str) -> list[str]:
    """The uses of the value of ``make()`` in a program, as "kind:name:line"."""
    tree = ast.parse(textwrap.dedent(program))
    made = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "make"
    )
    found = Uses(tree).of(made)
    return [f"{use.kind}:{use.name}:{use.value.lineno}" for use in found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("v.sum(1)", "receiver:sum"),
        ("F.relu(v)", "argument:F.relu"),
        ("torch.cat([v, w], 1)", "argument:torch.cat"),
        ("f(w, key=v)", "argument:f"),
        ("w + v", "operand:Add"),
        ("w += v", "operand:Add"),
        ("-v", "operand:USub"),
        ("w < v", "operand:Lt"),
        ("v += 1", "updated:"),
        ("v[0] = 1", "written:"),
        ("v[0] += 1", "written:"),
        ("v.data = w", "written:data"),
        ("v.shape", "attribute:shape"),
        ("v[0]", "item:"),
        ("w[v]", "index:"),
        ("w[v:]", "index:"),
        ("w[:, v]", "index:"),
        ("return v", "returned:"),
        ("return w, v", "returned:"),
        ("yield v", "yielded:"),
        ("self.v = v", "stored:"),
        ("w[0] = v", "stored:"),
        ("a, b = v", "stored:"),
        ("w = {'v': v}", "contained:"),
        ("lambda: v", "captured:v"),
        ("for x in v: pass", "iterated:"),
        ("if v: pass", "tested:"),
        ("v or w", "other:"),
        ("print(f'{v}')", "formatted:"),
        ("v()", "other:"),
    ],
)
def test_kinds(line: str, expected: str) -> None:
    program = f"def f(self, w):\n    v = make()\n    {line}\n"
    assert uses(program) == [f"{expected}:3"]


def test_a_value_that_is_used_at_once() -> None:
    assert uses("def f(w):\n    return w @ make()\n") == ["operand:MatMult:2"]


def test_names_are_followed_through_names_and_choices() -> None:
    assert uses(
        """
        def f(w, c):
            a = make() if c else w
            b = a
            x, y = b, 1
            return x + 1
        """
    ) == ["operand:Add:6"]


def test_another_definition_ends_it_and_its_own_right_side_is_a_use() -> None:
    assert uses(
        """
        def f(w):
            v = make()
            v = v.t()
            return v
        """
    ) == ["receiver:t:4"]


def test_branches_are_joined() -> None:
    assert uses(
        """
        def f(w, c):
            v = make()
            if c:
                v = v * 2
            else:
                return w
            return v
        """
    ) == ["operand:Mult:5"]
    assert uses(
        """
        def f(w, c):
            v = make()
            if c:
                v = w
            return v
        """
    ) == ["returned::6"]


def test_a_loop_carries_it_to_the_next_iteration_and_out_by_break() -> None:
    assert uses(
        """
        def f(w):
            for x in w:
                print(v)
                v = make()
                if x:
                    break
                v = 0
            return v
        """
    ) == ["argument:print:4", "returned::9"]


def test_handlers_see_what_was_bound_before_the_exception() -> None:
    assert uses(
        """
        def f(w):
            try:
                v = make()
                v = w.t()
            except ValueError:
                return v
            return v
        """
    ) == ["returned::7"]


def test_a_global_name_is_stored() -> None:
    assert uses("def f():\n    global v\n    v = make()\n") == ["stored:v:3"]


def test_a_name_of_the_module_is_captured_by_functions_that_read_it() -> None:
    assert uses("v = make()\ndef f():\n    return v\n") == ["captured:v:3"]


def test_variables_of_comprehensions_are_others() -> None:
    assert (
        uses("def f(w):\n    v = make()\n    [v for v in w]\n    return v\n")[-1] == "returned::4"
    )


def test_scopes() -> None:
    tree = ast.parse("class C:\n    def m(self, d=x):\n        return lambda: y\n")
    found = uses_in(tree)
    names = {node.id: node for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert isinstance(found.scope_of(names["x"]), ast.ClassDef)
    assert isinstance(found.scope_of(names["y"]), ast.Lambda)
    assert found.class_of(names["y"]) is tree.body[0]
    assert uses_in(tree) is found


def test_parameters() -> None:
    tree = ast.parse("def f(v, *, w):\n    print(v)\n    v = w\n    return v\n")
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    found = Uses(tree)
    assert [use.kind for use in found.of_parameter(function, "v")] == ["argument"]
    assert [use.kind for use in found.of_parameter(function, "w")] == ["returned"]
    assert found.of_parameter(function, "x") == ()


def test_values_that_change_places_in_a_loop() -> None:
    program = """
        def f(n):
            x = make()
            y = other()
            for _ in range(n):
                step(x, y)
                x, y = y, x
            return x
    """
    assert set(uses(program)) == {"argument:step:6", "returned::8"}
