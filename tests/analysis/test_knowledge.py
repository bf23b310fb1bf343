"""Each row of the tables against the real call, over arrays of many shapes and formats."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from memlint.analysis import knowledge
from memlint.analysis.axes import Layout, dense, dense_any_rank, reverse
from memlint.analysis.knowledge.model import Row
from memlint.analysis.values import Site, Tensor
from tests.analysis.abstract import Evaluator, hidden
from tests.analysis.claims import Tally, contradictions

np = pytest.importorskip("numpy", reason="the proofs of the tables run numpy")
torch = pytest.importorskip("torch", reason="the proofs of the tables run torch")

# Shapes of a dense array `p`, and views of it that all libraries can write in the same way.
SHAPES: dict[tuple[int, ...], tuple[str, ...]] = {
    (6,): ("p", "p[::2]"),
    (6, 4): ("p", "p.T", "p[:, ::2]", "p[:, 1:]", "p[::2]", "p[:, 0]", "p[1:3]", "p[:, :2].T"),
    (3, 3): ("p", "p.T"),
    (1, 4): ("p", "p.T"),
    (4, 1): ("p", "p.T", "p[:, 0]"),
    (2, 3, 4): (
        "p",
        "p.swapaxes(1, 2)",
        "p.swapaxes(0, 1)",
        "p.swapaxes(0, 2)",
        "p[:, :, ::2]",
        "p[:, 1]",
        "p[..., 0]",
        "p[:, :2]",
        "p[:, None]",
        "p[0]",
        "p.swapaxes(1, 2)[:, :, :2]",
    ),
    (2, 1, 4): ("p", "p.swapaxes(0, 1)", "p.swapaxes(1, 2)", "p.swapaxes(0, 2)"),
    (2, 3, 4, 5): (
        "p",
        "p.swapaxes(1, 3)",
        "p.swapaxes(1, 2)",
        "p.swapaxes(1, 3).swapaxes(2, 3)",
        "p.swapaxes(-1, -2)",
        "p[:, :, 1:, ::2]",
        "p.swapaxes(1, 2).reshape(2, 4, -1)",
        "p[:, 0]",
    ),
    (2, 1, 4, 4): ("p", "p.swapaxes(1, 3).swapaxes(2, 3)"),
    (2, 2, 3, 2, 2): ("p", "p.swapaxes(1, 4)"),
}
TORCH_VIEWS = {
    (6, 4): ("p.expand(3, -1, -1)", "p[:, :1].expand(-1, 4)", "p.diagonal()"),
    (2, 3, 4, 5): ("p.contiguous(memory_format=torch.channels_last)", "p.unfold(2, 2, 2)"),
    (2, 1, 4): ("p.expand(-1, 3, -1)",),
}
NUMPY_VIEWS = {
    (6, 4): ("np.asfortranarray(p)", "p[::-1]", "p[:, ::-1]"),
    (2, 3, 4): ("np.asfortranarray(p)", "np.broadcast_to(p, (2, 2, 3, 4))"),
}
TALLY = Tally()
SECOND = ("dense", "alike", "reversed")
UNPROVED = frozenset({"cuda", "pin_memory"})
VIEWS_IN_PLACE = frozenset({"narrow", "split", "array_split", "hsplit", "expand", "expand_as"})
REFUSED = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)


def _calls() -> Iterator[tuple[str, Row, str]]:
    """Name, row and how to write a call of it."""
    for name, row in knowledge.functions().items():
        if row.proofs and not name.startswith("cupy."):
            yield name, row, name.replace("numpy.", "np.", 1) + "({})"
    for lib in ("torch", "numpy"):
        for name, row in knowledge.methods(lib).items():
            if name not in UNPROVED:
                yield f"{lib}: x.{name}", row, "x." + name + "({})"


CALLS = list(_calls())
# A method that is a function as well is run on fewer arrays.
FUNCTION_ROWS = list(knowledge.functions().values())


def _lib(name: str) -> str:
    return "numpy" if name.startswith("numpy") else "torch"


def _array(lib: str, shape: tuple[int, ...]) -> Any:
    count = int(np.prod(shape)) if shape else 1
    made = torch.arange(count, dtype=torch.float32).reshape(shape)
    return made if lib == "torch" else made.numpy().astype("float64")


@cache
def _views(lib: str) -> list[tuple[tuple[int, ...], str]]:
    extra = TORCH_VIEWS if lib == "torch" else NUMPY_VIEWS
    return [
        (shape, view) for shape, views in SHAPES.items() for view in (*views, *extra.get(shape, ()))
    ]


def _abstract(lib: str, layout: Layout) -> Tensor:
    dtype = "float32" if lib == "torch" else "float64"
    return Tensor(lib, layout, dtype, frozenset({"cpu"}), site=Site(ast.Pass(), "p"))


def _starts(lib: str, shape: tuple[int, ...]) -> Iterator[tuple[str, Tensor]]:
    """What may be known of `p`: all of it, not its sizes, not even its rank."""
    yield "sizes known", _abstract(lib, dense(shape))
    yield "rank known", _abstract(lib, hidden(dense(shape)))
    if len(shape) > 1 and 1 not in shape:
        yield "dense", _abstract(lib, dense_any_rank())


@cache
def _operands(
    lib: str, shape: tuple[int, ...], view: str, kind: str
) -> list[tuple[str, Tensor, Tensor]]:
    """What may be known of the view `x` and of a second array `y` of the same shape."""
    made = []
    for known, start in _starts(lib, shape):
        first = Evaluator({"p": start}).text(view)
        if isinstance(first, Tensor):
            made.append((known, first, _second(lib, kind, first)))
    return made


def _second(lib: str, kind: str, first: Tensor) -> Tensor:
    if kind == "alike":
        text = "torch.empty_like(x)" if lib == "torch" else "np.empty_like(x)"
        claim = Evaluator({"x": first}).text(text)
        assert isinstance(claim, Tensor)
        return claim
    sizes = first.sizes
    if sizes is None:
        layout = dense_any_rank()
    else:
        layout = dense(reversed(sizes) if kind == "reversed" else sizes)
    return _abstract(lib, reverse(layout) if kind == "reversed" else layout)


def _real_second(lib: str, kind: str, real: Any) -> Any:
    shape = tuple(real.shape)
    if kind == "alike":
        made = torch.empty_like(real) if lib == "torch" else np.empty_like(real)
        made[...] = 1
        return made
    if kind == "reversed":
        made = _array(lib, shape[::-1])
        return made.T if lib == "numpy" else made.permute(*range(made.dim())[::-1])
    return _array(lib, shape)


@cache
def _code(text: str) -> Any:
    return compile(text, "<proof>", "eval")


@cache
def _tree(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@cache
def _modules() -> dict[str, Any]:
    modules = {"torch": torch, "np": np}
    if find_spec("einops") is not None:
        modules["einops"] = import_module("einops")
    return modules


def _run(text: str, names: dict[str, Any]) -> Any:
    return eval(_code(text), _modules(), names)


def _prove(
    lib: str, name: str, text: str, shape: tuple[int, ...], view: str
) -> tuple[int, list[str]]:
    """Run one call on one view of `p`, with all that may be known of it."""
    found: list[str] = []
    ran = 0
    for kind in SECOND if re.search(r"\by\b", text) else SECOND[:1]:
        x = _run(view, {"p": _array(lib, shape)})
        y = _real_second(lib, kind, x)
        try:
            real = _run(text, {"x": x, "y": y})
        except REFUSED:
            continue
        for known, first, second in _operands(lib, shape, view, kind):
            if first.layout.loose and name == "t" and x.ndim != 2:
                continue
            ran += 1
            claim = Evaluator({"x": first, "y": second}).value(_tree(text))
            sources = {} if first.site is None else {first.site: x}
            idle = tuple(x.shape) if name in VIEWS_IN_PLACE else None
            where = f"{text} on {view} of {shape} ({known}, y {kind})"
            found += contradictions(claim, real, sources, TALLY, where, idle)
    return ran, found


def _text(proof: str, form: str) -> str | None:
    """The call as it is written; ``None`` where the proof starts with no receiver."""
    if not form.startswith("x."):
        return form.format(proof)
    first, _, rest = proof.partition(",")
    if not first.startswith("x"):
        return None
    return form.replace("x.", f"({first}).", 1).format(rest.strip())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "row", "form"), CALLS, ids=[name for name, _, _ in CALLS])
def test_row_is_true(name: str, row: Row, form: str) -> None:
    if name.startswith("einops."):
        pytest.importorskip("einops", reason="the proofs of einops rows run einops")
    lib = _lib(name)
    repeated = form.startswith("x.") and any(row is one for one in FUNCTION_ROWS)
    texts = [text for proof in row.proofs if (text := _text(proof, form)) is not None]
    assert texts, f"{name} has no proof"
    for text in texts:
        ran, found = 0, []
        with np.errstate(all="ignore"):
            for number, (shape, view) in enumerate(_views(lib)):
                if repeated and ran and number % 4:
                    continue
                here, wrong = _prove(lib, name.rpartition(".")[2], text, shape, view)
                ran, found = ran + here, found + wrong
        assert ran, f"{text} ran on no array"
        assert not found, f"{len(found)} of {ran}:\n" + "\n".join(found[:8])


def test_most_layouts_are_settled(record_property: Any) -> None:
    """Counted over the proofs that ran in this process."""
    if TALLY.settled + TALLY.open < 100_000:
        pytest.skip("too few proofs ran before this test")
    record_property("settled", TALLY.settled)
    record_property("open", TALLY.open)
    print(f"layouts settled: {TALLY.settled}, left open: {TALLY.open}")
    assert TALLY.settled > 4 * TALLY.open
