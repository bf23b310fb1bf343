"""Tensors that are made of nothing but numbers in host memory, and then moved as they are."""

from __future__ import annotations

import ast

from memlint.analysis.edits import call_with_keyword
from memlint.analysis.events import Called
from memlint.analysis.knowledge import device_types
from memlint.analysis.knowledge.factories import COUNTING, EXACT, FACTORIES, RANDOM
from memlint.analysis.placement import moves_off_host
from memlint.analysis.uses import Uses
from memlint.analysis.values import (
    Absent,
    Const,
    Made,
    Tensor,
    Unknown,
    Value,
    alternatives,
    made_of,
)
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.rule import Replacement
from memlint.source.model import Source

MOVES = frozenset({".to", ".cuda", ".type_as", ".type"})
# What gives the same numbers, wherever it runs.
_EXACT_STEPS = frozenset(
    {".view", ".reshape", ".unsqueeze", ".squeeze", ".expand", ".repeat", ".float", ".long",
     ".int", ".bool", ".double", ".half", ".bfloat16", ".t", ".transpose", ".permute", ".flatten",
     ".contiguous", ".tril", ".triu", "torch.tril", "torch.triu", ".T", ".clone", ".detach",
     ".fill_", ".zero_", ".requires_grad_", ".unsqueeze_", "operator.invert", ".flip", ".roll",
     "torch.autograd.Variable"}
)  # fmt: skip
_DRAWING_STEPS = frozenset(
    {".uniform_", ".normal_", ".random_", ".bernoulli_", ".exponential_", ".bernoulli",
     "torch.bernoulli"}
)  # fmt: skip
_ROUNDING_STEPS = frozenset(
    {"operator.add", "operator.subtract", "operator.multiply", "operator.true_divide",
     "operator.negative", "operator.pow", ".mul_", ".add_", ".sub_", ".div_", ".mul", ".add",
     ".sub", ".div", ".clamp", ".exp", ".log", ".sin", ".cos", ".sqrt", "torch.exp", "torch.log",
     "operator.gt", "operator.lt", "operator.ge", "operator.le", "operator.eq", "operator.ne",
     "operator.bitwise_not"}
)  # fmt: skip
_STEPS = _EXACT_STEPS | _DRAWING_STEPS | _ROUNDING_STEPS
# The same as a text shows them: methods (``x.float()``), and functions of what they are given.
METHOD_STEPS = frozenset(name[1:] for name in _STEPS if name.startswith("."))
FUNCTION_STEPS = frozenset(name.rpartition(".")[2] for name in _STEPS if name.startswith("torch."))
SAID = frozenset({"device", "generator", "out", "pin_memory"})
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Birth:
    """``factory`` made a tensor that ``steps`` led to the move at ``move``.

    ``exact`` tells that the numbers do not depend on where it is made, ``random`` that they
    are drawn.
    """

    factory: Made
    steps: tuple[Made, ...]
    move: Called
    exact: bool
    random: bool


def birth_of(move: Called, uses: Uses) -> Birth | None:
    """What a move moves, where that is made just before of nothing but numbers."""
    if move.receiver is None or not _leaves_host(move):
        return None
    steps: list[Made] = []
    made = _made_alone(move.receiver)
    while made is not None and made.name not in FACTORIES:
        if made.name not in _STEPS or len(steps) > _DEPTH:
            return None
        steps.append(made)
        made = _source_of(made)
    if made is None or not _made_on_host(made):
        return None
    taken: ast.AST = move.node
    for one in (*steps, made):
        if not isinstance(one.node, ast.expr):
            return None
        if not taken_only_by(one.node, taken, uses) and not (
            taken is move.node and _moved_on_one_path(one.node, move.node, uses)
        ):
            return None
        taken = one.node
    if move.name == ".type_as" and made.name in COUNTING:
        return None
    names = {one.name for one in steps}
    random = made.name in RANDOM or bool(names & _DRAWING_STEPS)
    exact = made.name in EXACT and names <= _EXACT_STEPS and not _counts_in_floats(made)
    return Birth(made, tuple(steps), move, exact and not random, random)


def _made_alone(value: Value) -> Made | None:
    """What made a value, where that is the same on all paths."""
    found = [made_of(one) for one in alternatives(value)]
    nodes = {id(made.node) for made in found if made is not None}
    return found[0] if None not in found and len(nodes) == 1 else None


def _source_of(made: Made) -> Made | None:
    """What made the one array that an operation is given."""
    arrays = [
        one
        for one in made.inputs
        if isinstance(one, (Tensor, Unknown)) and made_of(one) and not _is_number(one)
    ]
    others = [one for one in made.inputs if isinstance(one, Tensor) and one not in arrays]
    return _made_alone(arrays[0]) if len(arrays) == 1 and not others else None


def _is_number(value: Value, depth: int = 0) -> bool:
    """Whether a value is computed from numbers alone, by Python (``-math.log(n) / 2``)."""
    found = [made_of(one) for one in alternatives(value)]
    return depth < _DEPTH and all(
        made is None
        or made.name.startswith(("math.", "builtins."))
        or (
            made.name.startswith("operator.")
            and made.name != "operator.getitem"
            and all(_is_number(one, depth + 1) for one in made.inputs)
        )
        for made in found
    )


def _moved_on_one_path(node: ast.expr, move: ast.AST, uses: Uses) -> bool:
    """``h = torch.zeros(n)`` and then ``if cuda: h = h.cuda()``: what else takes ``h`` comes
    later, and takes what was not moved on the other path only."""
    names = uses.names_of(move) if isinstance(move, ast.expr) else ()
    statement = next((a for a in uses.ancestors(node) if isinstance(a, ast.stmt)), None)
    branch = next((a for a in uses.ancestors(move) if isinstance(a, ast.If)), None)
    if statement is None or branch is None or not set(names) & set(uses.names_of(node)):
        return False
    if uses.parent(branch) is not uses.parent(statement):
        return False
    last = branch.end_lineno or branch.lineno
    others = [use.node for use in uses.of(node) if use.node is not move]
    return all(getattr(other, "lineno", 0) > last for other in others)


def _made_on_host(made: Made) -> bool:
    if not isinstance(made.node, ast.Call) or any(k.arg is None for k in made.node.keywords):
        return False
    if any(_is_array(one) for one in made.inputs):
        return False
    return not any(
        key in SAID and not all(one in (Const(None), Const(False)) for one in alternatives(value))
        for key, value in made.keywords
    )


def _is_array(value: Value) -> bool:
    return any(isinstance(one, Tensor) for one in alternatives(value))


def _counts_in_floats(made: Made) -> bool:
    """``torch.arange(0, 1, 0.1)`` rounds as its device does."""
    return made.name == "torch.arange" and any(
        isinstance(one, Const) and isinstance(one.value, float)
        for value in made.inputs
        for one in alternatives(value)
    )


def taken_only_by(node: ast.expr, taker: ast.AST, uses: Uses) -> bool:
    """Whether nothing but ``taker`` takes the value of ``node``."""
    found = uses.of(node)
    return len(found) == 1 and found[0].node is taker


def _leaves_host(move: Called) -> bool:
    node = move.node
    if not isinstance(node, ast.Call):
        return False
    match move.name:
        case ".cuda":
            return True
        case ".type_as":
            return bool(move.args.positional) and not _on_host(move.args.positional[0])
        case ".type":
            return "cuda" in frozenset().union(
                *(one.devices for one in alternatives(move.value) if isinstance(one, Tensor))
            )
    given, shown = _destination(move, node)
    return not isinstance(given, Absent) and moves_off_host(given, shown)


def _on_host(value: Value) -> bool:
    return all(
        isinstance(one, Tensor) and one.devices == frozenset({"cpu"}) for one in alternatives(value)
    )


def _destination(move: Called, node: ast.Call) -> tuple[Value, ast.expr | None]:
    """The device that ``x.to(...)`` is given, and how it is written."""
    for keyword in node.keywords:
        if keyword.arg == "device":
            return move.args.get("device"), keyword.value
    if node.args and not isinstance(node.args[0], ast.Starred):
        return move.args.get("", 0), node.args[0]
    return Absent(), None


# The fix


def made_there(birth: Birth, source: Source) -> Replacement | None:
    """The move replaced by what it moves, made on the device at once."""
    move = birth.move.node
    assert isinstance(move, ast.Call)
    assert isinstance(move.func, ast.Attribute)
    factory = birth.factory.node
    assert isinstance(factory, ast.Call)
    given = _written(birth.move, move, source)
    if given is None or not _inside(factory, move.func.value):
        return None
    device, dtype = given
    edit = call_with_keyword(source, factory, "device", device)
    if edit is None or edit.node is not factory:
        return None
    before = source.segment(move.func.value)
    old = source.segment(factory)
    new = edit.content
    if dtype:
        if birth.steps or any(k.arg == "dtype" for k in factory.keywords):
            return None
        new = f"{new[:-1].rstrip().rstrip(',')}, dtype={dtype})"
    return Replacement(move, before.replace(old, new)) if before.count(old) == 1 else None


def _written(move: Called, node: ast.Call, source: Source) -> tuple[str, str] | None:
    """How the device, and the dtype if any, are written in a move."""
    keywords = {k.arg: k.value for k in node.keywords}
    keywords.pop("non_blocking", None)
    if move.name == ".type_as" and len(node.args) == 1 and not keywords:
        other = node.args[0]
        if not isinstance(other, (ast.Name, ast.Attribute)):
            return None
        text = source.segment(other)
        return f"{text}.device", f"{text}.dtype"
    device = keywords.pop("device", None)
    if keywords or len(node.args) + (device is not None) > 1:
        return None
    shown = node.args[0] if node.args else device
    if move.name == ".cuda":
        return ('"cuda"' if shown is None else source.segment(shown)), ""
    if move.name != ".to" or shown is None or _is_array(_destination(move, node)[0]):
        return None
    return source.segment(shown), ""


def names_device(move: Called) -> bool:
    """Whether a move says where to, in a way that ``device=`` takes: ``x.cuda(gpu)`` may be given
    ``None``, the current device there and the host here."""
    given = move.args.get("device", 0)
    if move.name != ".cuda" or isinstance(given, Absent):
        return True
    return given != Const(None) and "cuda" in device_types(given)


def _inside(node: ast.AST, outer: ast.AST) -> bool:
    return any(one is node for one in walk(outer))
