"""The sieves of what loops repeat must let pass whatever may be repeated, and little else."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.loop_candidates import repeats, repeats_what_is_given
from memlint.analysis.looped_text import called_in_loops, in_loops

NAMES = frozenset({"to", "device_put"})


def anything(call: ast.Call) -> bool:
    return True


def passes(text: str, more: str = "") -> bool:
    function = ast.parse(text).body[0]
    if isinstance(function, ast.ClassDef):
        function = function.body[0]
    return repeats(NAMES, anything)(function, text, f"{text}\n{more}")


def looped(body: str, head: str = "for batch in loader:") -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"def run(self, loader, model, table, device, flag):\n    {head}\n{lines}"


@pytest.mark.parametrize(
    "body",
    [
        "x = table.to(device)\nmodel(batch, x)",
        "model(batch, table.to(device))",
        "model(batch, jax.device_put(table))",
        "if flag:\n    model(batch, table.to(device))",
        "for part in batch:\n    model(part, table.to(device))",
        "model(batch, [part.to(device) for part in table])",
        "model(batch, self.table.T.to(batch.device))",
        "while flag:\n    for step in (1, 2):\n        model(table.to(device))",
    ],
)
def test_what_a_loop_repeats_passes(body: str) -> None:
    assert passes(looped(body))


def test_a_result_for_each_turn_of_a_comprehension_passes() -> None:
    assert passes("def run(a, b, d):\n    return [(x @ b.to(d)).sum() for x in a]\n")


@pytest.mark.parametrize(
    "body",
    [
        "model(batch.to(device))",
        "table = model(batch)\nmodel(table.to(device))",
        "table[0] = 1\nmodel(table.to(device))",
        "kept.append(table.to(device))",
        "self.table = table.to(device)",
        "model(batch)\nif batch:\n    model(table.to(device))",
        "model(table.to(device))\nbreak",
        "model(make(batch).to(device))",
        "model(batch)",
    ],
)
def test_what_changes_is_kept_or_happens_now_and_then_does_not(body: str) -> None:
    assert not passes(looped(body))


def test_loops_of_few_iterations_do_not_pass() -> None:
    assert not passes(looped("model(table.to(device))", head="for step in range(3):"))
    assert not passes(looped("model(table.to(device))", head="for step in (1, 2):"))


HELPER = "def scale(self, x, table, device):\n    return x * table.to(device)\n"
METHOD = "class A:\n    def forward(self, x):\n        return x * self.table.to(x.device)\n"


@pytest.mark.parametrize(
    ("text", "calls"),
    [(HELPER, "for x in xs:\n    scale(x, table, device)"), (METHOD, "[m.forward(x) for x in xs]")],
)
def test_what_a_function_does_counts_where_a_loop_calls_it(text: str, calls: str) -> None:
    assert passes(text, calls)
    assert not passes(text, "scale(x, table, device)\nm.forward(x)")


@pytest.mark.parametrize(
    "body",
    [
        "table = load()\nreturn x * table.to(device)",
        "if flag:\n    return table.to(device)",
        "self.kept = table.to(device)",
    ],
)
def test_what_a_function_changes_or_skips_does_not(body: str) -> None:
    text = looped(body, head="if True:").replace("    if True:\n", "").replace("        ", "    ")
    assert not passes(text, "for x in xs:\n    run(x)")


def test_callers_matter_to_what_they_give() -> None:
    given = repeats_what_is_given(NAMES, anything)

    def depends(text: str) -> bool:
        return given(ast.parse(text).body[0], text, f"{text}\nfor x in y:\n    scale(x)")

    assert depends(looped("model(batch, table.to(device))"))
    assert depends(HELPER)
    assert not depends("def f(self):\n    for x in self.xs:\n        g(x, self.t.to(self.d))\n")


@pytest.mark.parametrize(
    "text",
    [
        "for x in y:\n    z.to(x)\n",
        "def f():\n    while y:\n        if z:\n            z.to(x)\n",
        "for x in y:\n    s = '''\na\n'''\n    z.to(x)\n",
        "a = [\n    z.to(x)\n    for x in y\n]\n",
        "for x in y:\n    f(x)\n\ndef f(x):\n    return z.to(x)\n",
    ],
)
def test_texts_with_a_word_in_a_loop(text: str) -> None:
    assert in_loops(text, [".to("])


@pytest.mark.parametrize(
    "text",
    [
        "for x in y:\n    pass\nz.to(x)\n",
        "def f():\n    for x in y:\n        g(x)\n    return z.to(x)\n",
        "def f(x):\n    return z.to(x)\n\nf(1)\n",
        "z.to(x)\n",
    ],
)
def test_texts_with_none(text: str) -> None:
    assert not in_loops(text, [".to("])


def test_calls_through_super_are_none_of_a_loop() -> None:
    assert called_in_loops("for x in y:\n    m.forward(x)\n", "forward")
    assert not called_in_loops("for x in y:\n    super().forward(x)\n", "forward")
    assert not called_in_loops("for x in y:\n    def forward(self): pass\n", "forward")
