"""Which functions may write with ``torch.save``."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.state import may_save


def saves(statement: str, head: str = "import torch") -> bool:
    text = f"def f(self, x):\n    {statement}\n"
    return may_save(ast.parse(text).body[0], text, f"{head}\n{text}")


@pytest.mark.parametrize(
    ("statement", "head"),
    [
        ("torch.save(x, 'a')", "import torch"),
        ("t.save(x, 'a')", "import torch as t"),
        ("dump(x, 'a')", "from torch import save as dump"),
        ("write(x, 'a')", "import torch\nwrite = torch.save"),
        ("self.write = torch.save", "import torch"),
        ("T.save(x, 'a')", "import torch\nT = torch"),
        ("torch.serialization.save(x, 'a')", "import torch"),
        ("save(x, 'a')", "from torch import *"),
    ],
)
def test_any_name_of_the_function_counts(statement: str, head: str) -> None:
    assert saves(statement, head)


@pytest.mark.parametrize("statement", ["self.save(x)", "np.save('a', x)", "save(x)", "x.saved"])
def test_what_else_saves_does_not(statement: str) -> None:
    assert not saves(statement)
