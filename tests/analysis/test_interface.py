"""How the tables are asked: names, dtypes, devices, attributes, subscripts, births."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis import knowledge
from memlint.analysis.axes import OPAQUE, contiguous, dense, dense_any_rank
from memlint.analysis.knowledge import Args
from memlint.analysis.knowledge.names import STARRED
from memlint.analysis.linear import symbol_value
from memlint.analysis.values import (
    Alternatives,
    Const,
    Linear,
    Object,
    Ref,
    Sequence,
    Site,
    Symbol,
    Tensor,
    Unknown,
    Value,
)
from tests.analysis.abstract import Evaluator
from tests.analysis.claims import Tally, contradictions

NODE = ast.Pass()
SITE = Site(NODE, "here")
PARAMETER = Tensor("", dense_any_rank(), assumed=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.nn.modules.conv.Conv2d", "torch.nn.Conv2d"),
        ("torch.nn.modules.sparse.Embedding", "torch.nn.Embedding"),
        ("torch.amp.autocast_mode.autocast", "torch.autocast"),
        ("torch.cuda.amp.autocast", "torch.cuda.amp.autocast"),
        ("torch.optim.adamw.AdamW", "torch.optim.AdamW"),
        ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel"),
        ("pytorch_lightning.Trainer", "lightning.pytorch.Trainer"),
        ("lightning.Trainer", "lightning.pytorch.Trainer"),
        ("numba.core.decorators.njit", "numba.njit"),
        ("numba.np.ufunc.parallel._get_thread_id", "numba.get_thread_id"),
        ("numba.np.ufunc.decorators.guvectorize", "numba.guvectorize"),
        ("numpy.core.numeric.asfortranarray", "numpy.asfortranarray"),
        ("numpy.true_divide", "numpy.divide"),
        ("my.own.name", "my.own.name"),
    ],
)
def test_canonical_names(name: str, expected: str) -> None:
    assert knowledge.canonical(name) == expected
    assert knowledge.canonical(expected) == expected


def test_starred_names_are_exported() -> None:
    for module, names in STARRED.items():
        library = pytest.importorskip(module, reason="the names are looked up in the library")
        assert set(names) <= set(library.__all__)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Ref("torch.half"), "float16"),
        (Ref("torch.float16"), "float16"),
        (Ref("torch.int"), "int32"),
        (Ref("numpy.float32"), "float32"),
        (Ref("builtins.float"), "float64"),
        (Ref("torch.cuda.HalfTensor"), "float16"),
        (Const("float32"), "float32"),
        (Const("<f8"), "float64"),
        (Const("torch.bfloat16"), "bfloat16"),
        (Ref("torch.nn.Linear"), None),
        (Const("cuda"), None),
        (Unknown(), None),
    ],
)
def test_dtypes(value: Value, expected: str | None) -> None:
    assert knowledge.dtype_of(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Const("cuda"), {"cuda"}),
        (Const("cuda:1"), {"cuda"}),
        (Const("cpu"), {"cpu"}),
        (Const("cudaish"), set()),
        (Const(0), {"cuda"}),
        (Const(True), set()),
        (Object("torch.device", SITE, (("0", Const("cuda:0")),)), {"cuda"}),
        (Object("torch.device", SITE, (("type", Const("cpu")),)), {"cpu"}),
        (Alternatives((Const("cuda"), Const("cpu"))), {"cuda", "cpu"}),
        (Unknown(), set()),
    ],
)
def test_device_types(value: Value, expected: set[str]) -> None:
    assert knowledge.device_types(value) == expected


def test_distinctive_methods() -> None:
    for name in ("transpose", "permute", "contiguous", "movedim", "reshape", "t"):
        assert knowledge.view_method(name, "")
    for name in ("split", "get", "copy", "append", "sum", "no_such_method"):
        assert not knowledge.view_method(name, "")
    assert not knowledge.view_method("permute", "numpy")


def test_birth_is_where_the_layout_ceased_to_be_dense() -> None:
    turned = Evaluator({"x": PARAMETER}).text("x.transpose(1, 2)")
    assert isinstance(turned, Tensor)
    assert isinstance(turned.born, ast.Call)
    assert turned.assumed
    later = Evaluator({"x": turned}).text("x + 1")
    assert isinstance(later, Tensor)
    assert later.born is turned.born
    assert later.assumed
    back = Evaluator({"x": turned}).text("x.transpose(1, 2)")
    assert isinstance(back, Tensor)
    assert back.born is None
    packed = Evaluator({"x": turned}).text("x.contiguous()")
    assert isinstance(packed, Tensor)
    assert packed.born is None
    assert not packed.assumed


def test_unknown_libraries_are_read_either_way() -> None:
    read = Evaluator({"x": PARAMETER})
    for text in ("x.transpose(0, 2, 1)", "x.transpose(1, 2)", "x.T", "x.mT", "x.permute(1, 0)"):
        value = read.text(text)
        assert isinstance(value, Tensor)
        assert contiguous(value.layout) is False, text


def test_arguments_that_are_not_seen() -> None:
    x = Tensor("torch", dense((2, 3)), "float32", frozenset({"cpu"}), site=SITE)
    spread = Args((), {}, open=True)
    moved = knowledge.call_method(x, "to", spread, NODE, SITE)
    assert isinstance(moved, Tensor)
    assert (moved.layout, moved.dtype, moved.devices, moved.site) == (
        OPAQUE,
        None,
        frozenset(),
        None,
    )
    made = knowledge.call_function("torch.zeros", Args((Unknown(),), {}, True), NODE, SITE)
    assert isinstance(made, Tensor)
    assert (contiguous(made.layout), made.dtype) == (True, None)
    empty = knowledge.call_function("torch.empty", Args((Const(2),), {}, True), NODE, SITE)
    assert isinstance(empty, Tensor)
    assert contiguous(empty.layout) is None
    given = Args((Const(2),), {"out": x}, False)
    assert knowledge.call_function("torch.zeros", given, NODE, SITE) is None
    assert knowledge.call_function("torch.no_such", Args(), NODE, SITE) is None


def test_alternatives_are_followed_one_by_one() -> None:
    x = Alternatives((Tensor("torch", dense((2, 3))), Tensor("torch", dense((4, 5, 6)))))
    turned = knowledge.call_function("torch.relu", Args((x,)), NODE, SITE)
    assert isinstance(turned, Alternatives)
    pair = Sequence("list", (x, x))
    stacked = knowledge.call_function("torch.stack", Args((pair,)), NODE, SITE)
    assert isinstance(stacked, Alternatives)
    many = Sequence("list", (x,) * 6)
    assert knowledge.call_function("torch.stack", Args((many,)), NODE, SITE) is None


def test_attributes() -> None:
    n = Symbol("name", "n", SITE)
    x = Tensor("torch", dense((2, n)), "float16", frozenset({"cuda"}))
    read = Evaluator({"x": x})
    assert read.text("x.shape") == Sequence("tuple", (Const(2), symbol_value(n)))
    assert read.text("x.size(-1)") == symbol_value(n)
    assert knowledge.attribute(x, "ndim", NODE) == Const(2)
    assert knowledge.attribute(x, "dtype", NODE) == Ref("torch.float16")
    assert knowledge.attribute(x, "is_cuda", NODE) == Const(True)
    assert knowledge.attribute(x, "device", NODE) == Const("cuda")
    assert knowledge.attribute(PARAMETER, "shape", NODE) is None
    assert knowledge.attribute(x, "no_such", NODE) is None


def test_slices_of_known_length() -> None:
    i = Symbol("loop", "i", SITE)
    start, stop = Linear(((i, 8),), 0), Linear(((i, 8),), 8)
    x = Tensor("torch", dense((None, None)))
    block = knowledge.subscript(x, (knowledge.SliceValue(start, stop, Const(None)),), NODE)
    assert isinstance(block, Tensor)
    assert block.sizes == (8, None)
    assert contiguous(block.layout) is True


@pytest.mark.parametrize("text", ["x[[0, 1]]", "x[x > 0]", "x[[1], :2]", "x[..., None, 0]"])
@pytest.mark.parametrize("view", ["p", "p.mT", "p[:, 1:]"])
def test_subscripts_by_arrays(text: str, view: str) -> None:
    torch = pytest.importorskip("torch", reason="compares with torch")
    p = torch.arange(24.0).reshape(2, 3, 4)
    x = eval(view, {"p": p})
    real = eval(text, {"x": x})
    start = Tensor("torch", dense((2, 3, 4)), "float32", frozenset({"cpu"}), site=SITE)
    first = Evaluator({"p": start}).text(view)
    claim = Evaluator({"x": first}).text(text)
    assert isinstance(claim, Tensor)
    assert not contradictions(claim, real, {SITE: x}, Tally(), f"{text} of {view}")
