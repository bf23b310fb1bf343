"""Each row of the tables against the real call, over arrays of many shapes and formats."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from memlint.analysis import knowledge
from memlint.analysis.axes import Layout, dense, dense_any_rank
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
SECOND = ("dense", "alike", "reversed")
UNPROVED = frozenset({"cuda", "pin_memory"})
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


def _second(lib: str, kind: str, real: Any, first: Tensor) -> tuple[Any, Tensor]:
    """Another array of the same shape."""
    shape = tuple(real.shape)
    if kind == "alike":
        made = torch.empty_like(real) if lib == "torch" else np.empty_like(real)
        text = "torch.empty_like(x)" if lib == "torch" else "np.empty_like(x)"
        claim = Evaluator({"x": first}).text(text)
        assert isinstance(claim, Tensor)
        made[...] = 1
        return made, claim
    if kind == "reversed":
        made, claim = _array(lib, shape[::-1]), _abstract(lib, _dense_as(first, True))
        return made.T if lib == "numpy" else made.permute(*range(made.dim())[::-1]), claim
    return _array(lib, shape), _abstract(lib, _dense_as(first, False))


def _dense_as(first: Tensor, turned: bool) -> Layout:
    from memlint.analysis.axes import reverse

    sizes = first.sizes
    if sizes is None:
        layout = dense_any_rank()
        return reverse(layout) if turned else layout
    return reverse(dense(reversed(sizes))) if turned else dense(sizes)


def _run(code: Any, names: dict[str, Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return eval(code, {"torch": torch, "np": np, **_optional()}, names)


@cache
def _optional() -> dict[str, Any]:
    try:
        import einops
    except ImportError:
        return {}
    return {"einops": einops}


def _prove(
    lib: str, name: str, proof: str, text: str, only_shape: tuple[int, ...], view: str, tally: Tally
) -> tuple[int, list[str]]:
    """Run one call on one view of `p`, with all that may be known of it."""
    found: list[str] = []
    ran = 0
    code = compile(text, "<proof>", "eval")
    tree = ast.parse(text, mode="eval").body
    for kind in SECOND if "y" in proof.replace("memory", "").replace("dtype", "") else ("dense",):
        p = _array(lib, only_shape)
        x = _run(compile(view, "<view>", "eval"), {"p": p})
        for known, start in _starts(lib, only_shape):
            first = Evaluator({"p": start}).text(view)
            if not isinstance(first, Tensor):
                continue
            y, second = _second(lib, kind, x, first)
            try:
                real = _run(code, {"x": x, "y": y})
            except REFUSED:
                break
            ran += 1
            claim = Evaluator({"x": first, "y": second}).value(tree)
            if first.layout.loose and name == "t" and x.ndim != 2:
                continue
            where = f"{text} on {view} of {only_shape} ({known}, y {kind})"
            sources = {}
            if isinstance(claim, Tensor) and "x." not in proof and first.site is not None:
                sources = {first.site: x}
            found += contradictions(claim, real, sources, tally, where)
    return ran, found


@pytest.mark.parametrize(("name", "row", "form"), CALLS, ids=[name for name, _, _ in CALLS])
def test_row_is_true(name: str, row: Row, form: str) -> None:
    if name.startswith("einops."):
        pytest.importorskip("einops", reason="the proofs of einops rows run einops")
    lib = _lib(name)
    tally = Tally()
    assert row.proofs, f"{name} has no proof"
    for proof in row.proofs:
        arguments = proof
        if form.startswith("x."):
            arguments = proof.removeprefix("x").removeprefix(",").strip()
            if not proof.startswith("x") or proof.startswith(("x.", "x @", "x >")):
                continue
        text = form.format(arguments)
        ran, found = 0, []
        for shape, view in _views(lib):
            here, wrong = _prove(lib, name.rpartition(".")[2], proof, text, shape, view, tally)
            ran, found = ran + here, found + wrong
        assert ran, f"{text} ran on no array"
        assert not found, f"{len(found)} of {ran}:\n" + "\n".join(found[:8])
