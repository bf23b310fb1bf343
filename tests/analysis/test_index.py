"""Which functions are read for rules that want the nearest ones only."""

from __future__ import annotations

import ast

from memlint.analysis.chains import MATMUL, PRODUCT
from memlint.analysis.index import Index
from memlint.analysis.places.repetition import may_be_needless, repeats_parameters
from memlint.rule import Needs, UnitTest
from memlint.source.model import Source

PROGRAM = """import torch


def product(a, b):
    return a @ b


def main():
    return Layer().outer(product(1, 2))


class Layer:
    def __init__(self):
        self.inner = Inner()

    def outer(self, x):
        return self.helper(x)

    def helper(self, x):
        return x @ x

    def calls_a_function(self, x):
        return product(x, x)

    def forward(self, x):
        return self.inner(x)


class Inner:
    def forward(self, x):
        return x @ x
"""


def read(text: str, needs: Needs) -> set[str]:
    tree = ast.parse(text)
    index = Index(Source("program.py", text), tree, [needs])
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {f"{one.name}:{one.lineno}" for one in functions if index.wants(one)}


def nearest(*, places: UnitTest | None = None, callers: UnitTest | None = None) -> Needs:
    return Needs({"torch"}, units=[{" @ "}], nearest=True, places=places, callers=callers)


def test_all_that_lead_to_a_word_are_read_without() -> None:
    names = {one.partition(":")[0] for one in read(PROGRAM, Needs({"torch"}, units=[{" @ "}]))}
    assert names >= {"product", "main", "outer", "helper", "calls_a_function", "forward"}


def test_holders_and_plain_functions_are_read() -> None:
    found = read(PROGRAM, nearest())
    assert found == {"product:4", "main:8", "helper:19", "calls_a_function:22", "forward:30"}


def test_callers_are_read_where_they_matter() -> None:
    found = read(PROGRAM, nearest(callers=lambda function, around, source: True))
    assert found >= {"outer:16", "forward:25"}
    assert "__init__:13" not in found


def test_functions_without_a_place_are_not_read() -> None:
    assert read(PROGRAM, nearest(places=lambda function, around, source: False)) == set()


def test_what_brings_holders_together_is_read() -> None:
    text = """import torch

class Split:
    def scores(self, q, k):
        return q @ k

    def output(self, w, v):
        return w @ v

    def both(self, q, k, v):
        return self.output(self.scores(q, k), v)

    def one(self, q, k):
        return self.scores(q, k)
"""
    assert read(text, nearest()) == {"scores:4", "output:7", "both:10"}


def needless(body: str, source: str = "") -> bool:
    function = ast.parse(f"def f(x, n, **rest):\n    {body}\n").body[0]
    return may_be_needless(function, source, source)


def test_places_of_repetitions() -> None:
    assert needless("return x.repeat(n, 1) + 1")
    assert needless("y = x.repeat(*n); return y * 2")
    assert needless("return np.repeat(x, n, axis=0) - 1")
    assert needless("return x.expand(n, -1).clone() + 1")
    assert needless("return wide(x, n) + 1", "from numpy import tile as wide")
    assert needless("net(x.repeat(n, 1)).mean()", "net = Net().to(device)")
    assert needless("self.e(x.repeat(n, 1)).mean()", "self.e = nn.Embedding(3, 4)")


def test_what_is_no_place_of_repetitions() -> None:
    assert not needless("return x.repeat(n, 1)")
    assert not needless("y = x.repeat(n, 1); y[0] = 1; return y + 1")
    assert not needless("return x.repeat(n, 1).view(-1) + 1")
    assert not needless("return x.repeat(2) + 1")
    assert not needless("return np.repeat(x, n) + 1")
    assert not needless("return net(x.repeat(n, 1))", "net = Net()")
    assert not needless("return x.copy() + 1")


def test_what_depends_on_callers() -> None:
    def depends(body: str) -> bool:
        return repeats_parameters(ast.parse(f"def f(x, n):\n    {body}\n").body[0], "", "")

    assert depends("return x.float().repeat(n, 1) + 1")
    assert not depends("return x[None].repeat(n, 1) + 1")
    assert not depends("return self.x.repeat(n, 1) + 1")


def test_words_of_products() -> None:
    for text in ("a @ b", "a@b", "x[0]@(y)", "a @= b", "    @ b", "a @\n", "f(x) @y", "'x' @ y"):
        assert MATMUL.search(text), text
    for text in ("@property", "\n    @property\n", "\t@a.b(c)\n", "x = 1\n@jit\n"):
        assert not MATMUL.search(text), text
    for text in ("mm(a, b)", "torch.bmm(a, b)", "x.dot(y)", "matmul", "\nmm", "np.dot"):
        assert PRODUCT.search(text), text
    for text in ("comm", "addmm(", "dotted", "robot", "hmm", "bmm_", "_dot"):
        assert not PRODUCT.search(text), text


KEPT = """OPTIONS = {"device": "cuda"}


class Trainer:
    def __init__(self, data):
        self.batches = Loader(data)

    def run(self):
        return [x.cuda() for x in self.batches]

    def report(self):
        return 1
"""


def test_methods_with_words_that_the_module_has_too_are_read() -> None:
    needs = Needs({"Loader"}, units=[{"Loader("}, {"cuda"}], classwide=True)
    assert read(KEPT, needs) == {"__init__:5", "run:8"}
