"""Functions that evaluate models: the evidence for it, and against it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from memlint.analysis.events import Forward
from memlint.analysis.steps import STEP_HOOKS
from memlint.analysis.uses import Uses
from memlint.analysis.values import Instance, Value, alternatives, made_of
from memlint.analysis.walking import walk
from memlint.late_pattern import late_pattern

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
# What functions are called that measure, or use, a model that is trained.
EVALUATION = late_pattern(
    r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|val|test|predict|prediction|infer|"
    r"inference|extract|embed|encode|score|generate|sample|caption|classify|detect|segment|"
    r"transcribe|translate|probe|posterior)(_|$)"
)
MEASURING = late_pattern(
    r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|val)(_|$)|(^|_)test$"
)
# Words in a function that wants gradients, or compiles or exports the model.
WANTS_GRADIENTS = late_pattern(
    r"backward|autograd|requires_grad|\.grad\b|retain_grad|register_(full_)?(forward_|backward_)?"
    r"(pre_)?hook|jacobian|hessian|\bvjp\b|\bjvp\b|functorch|torch\.func|grad_cam|GradCAM|attack|"
    r"attribut|saliency|captum|zero_grad|optimi[sz]er\.step|\bopt\w*\.step\(|onnx|jit\.(trace|script)|"
    r"export\(|deepcopy|profile"
)
# Frameworks that turn recording off around functions of the program.
ENGINE = late_pattern(r"^\s*(from|import)\s+ignite\b", re.MULTILINE)
LIBRARY = late_pattern(r"torch|lightning|\.eval\(\)|\.train\((mode=)?False")
TESTING = late_pattern(r"^\s*(from|import)\s+(pytest|unittest)\b|\bself\.assert\w+\(", re.MULTILINE)
DUMMY = frozenset(
    f"torch.{name}"
    for name in ("zeros", "ones", "rand", "randn", "empty", "randint", "zeros_like", "ones_like",
                 "randn_like")
)  # fmt: skip
PASSING_ON = frozenset({".to", ".cuda", ".cpu", ".half", ".float", ".unsqueeze", ".contiguous",
                        ".requires_grad_", ".clone", ".long"})  # fmt: skip
# Calls that take a plain number, or plain data, out of a tensor.
MEASURED = frozenset({"item", "tolist", "numpy", "detach", "argmax", "eq", "cpu", "data"})
OFF = late_pattern(
    r"no_grad|inference_mode|set_grad_enabled\(\s*(mode=)?False|inference\(|eval_mode"
)
MODULE_BASE = late_pattern(r"(^|\.)(\w*Module|\w*Model|\w*Net(work)?|\w*Layer|\w*Block|\w*Loss)$")


def evidence(forward: Forward, uses: Uses) -> bool:
    """Whether a call runs a model that is only to be measured or used."""
    context = forward.context
    name = context.name.rpartition(".")[2]
    function = context.function
    if context.grad is not True or not forward.graphs or _is_dummy(forward):
        return False
    if name in STEP_HOOKS or name in ("forward", "__init__") or name.startswith("forward_"):
        return False
    if not _may_be_evaluated(forward.source.text):
        return False
    if forward.evaluating is True:
        return (
            bool(context.loops)
            or bool(EVALUATION.search(name))
            or function is None
            or (_is_measured(forward, uses))
        )
    if forward.evaluating is not None or function is None:
        return False
    if forward.elsewhere is True:
        return not _in_module(forward) and _is_measured(forward, uses)
    in_batches = any(one.role == "batch" for one in context.loops)
    return (
        forward.elsewhere is None
        and not forward.through
        and bool(MEASURING.search(name))
        and in_batches
        and _is_measured(forward, uses)
    )


@lru_cache(maxsize=8)
def _may_be_evaluated(text: str) -> bool:
    """Whether a program uses torch, and is neither a test nor run by a framework."""
    return not (TESTING.search(text) or ENGINE.search(text)) and LIBRARY.search(text) is not None


def wants_gradients(forward: Forward) -> bool:
    """Whether the code around a call may want the graph: its loop over batches where the model
    was put into evaluation mode before that, else the whole function."""
    function = forward.context.function
    around: ast.AST | None = function
    if forward.evaluating is True:
        loops = [one.loop.node for one in forward.context.loops if _holds(one.loop.node, forward)]
        around = loops[-1] if loops else function
    return around is not None and bool(WANTS_GRADIENTS.search(ast.unparse(around)))


def function_wants_gradients(function: ast.AST) -> bool:
    """Whether a function differentiates somewhere."""
    return bool(WANTS_GRADIENTS.search(ast.unparse(function)))


def _holds(loop: ast.AST, forward: Forward) -> bool:
    return isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) and any(
        node is forward.node for node in walk(loop)
    )


def guarded_by_callers(forward: Forward, uses: Uses) -> bool:
    """Whether all places that call the function, by its name, are seen to turn recording off."""
    name = forward.context.name.rpartition(".")[2]
    sites = [call for call in uses.calls() if _called_name(call) == name]
    return bool(sites) and all(_is_guarded(call, uses) for call in sites)


def _called_name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _is_guarded(call: ast.Call, uses: Uses) -> bool:
    for above in uses.ancestors(call):
        guards: list[ast.expr] = []
        if isinstance(above, (ast.With, ast.AsyncWith)):
            guards = [item.context_expr for item in above.items]
        elif isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            guards = above.decorator_list
        if any(OFF.search(ast.unparse(one)) for one in guards):
            return True
    return False


def _in_module(forward: Forward) -> bool:
    """Whether the function is a method of a module: others may differentiate through it."""
    receiver = forward.context.receiver
    if not isinstance(receiver, Instance):
        return False
    return any(MODULE_BASE.search(ast.unparse(base)) for base in receiver.cls.node.bases)


def _is_dummy(forward: Forward) -> bool:
    """Whether a model is only tried with numbers that are made up."""
    node = forward.node
    value = forward.value
    made = made_of(value)
    if forward.through or made is None or made.node is not node or not node.args:
        return False
    given = made.inputs[-len(node.args) :]
    return all(_made_up(one) for one in given)


def _made_up(value: Value) -> bool:
    for one in alternatives(value):
        made = made_of(one)
        while made is not None and made.name in PASSING_ON and made.inputs:
            made = made_of(made.inputs[0])
        if made is None or made.name not in DUMMY:
            return False
    return True


def _is_measured(forward: Forward, uses: Uses) -> bool:
    """Whether nothing of the result leaves the function as a part of the graph: all that takes
    it makes plain numbers of it."""
    found = list(_fates(forward.node, uses, 0, set()))
    return bool(found) and all(found)


def _unpacked(node: ast.AST) -> tuple[str, ...]:
    """The variables of ``a, b = ...``."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=parts)]) if all(
            isinstance(one, ast.Name) for one in parts
        ):
            return tuple(one.id for one in parts if isinstance(one, ast.Name))
    return ()


def _fates_of_name(statement: ast.AST, name: str, uses: Uses, seen: set[str]) -> Iterator[bool]:
    """Of each place that takes a variable whether plain numbers are all that comes of it."""
    if name in seen:
        return
    seen.add(name)
    for node in walk(uses.scope_of(statement)):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield from _fates(node, uses, 0, seen)


def _fates(node: ast.expr, uses: Uses, depth: int, seen: set[str]) -> Iterator[bool]:
    """Of each use of a value whether it ends in plain numbers."""
    for use in uses.of(node):
        match use.kind:
            case "receiver" if use.name in MEASURED:
                yield True
            case "attribute" if use.name in ("data", "shape", "dtype", "device"):
                yield True
            case "argument" if use.name.rpartition(".")[2] in ("float", "int", "print", "len"):
                yield True
            case "operand" | "receiver" | "item" | "argument" | "attribute" | "index" if depth < 6:
                if isinstance(use.node, ast.Compare):
                    yield True
                elif isinstance(use.node, ast.AugAssign) and isinstance(use.node.target, ast.Name):
                    yield all(_fates_of_name(use.node, use.node.target.id, uses, seen))
                elif isinstance(use.node, ast.expr):
                    further = list(_fates(use.node, uses, depth + 1, seen))
                    yield all(further)
                else:
                    yield use.kind == "argument"
            case "formatted" | "tested" | "updated":
                yield True
            case "stored" if names := _unpacked(use.node):
                yield all(
                    one for name in names for one in _fates_of_name(use.node, name, uses, seen)
                )
            case _:
                yield False
