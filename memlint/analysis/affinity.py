"""Which processors a process is bound to, and who runs the code that binds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import Called
from memlint.analysis.uses import Uses, uses_in
from memlint.analysis.values import Absent, Const, Linear, Sequence, Value, made_of
from memlint.analysis.walking import walk
from memlint.late_pattern import late_pattern

SETTERS = frozenset({"sched_setaffinity", "cpu_affinity"})
_OWN_PROCESS = late_pattern(r"^(0|os\.getpid\(\)|getpid\(\)|psutil\.Process\(\)|Process\(\))$")
# Who runs a function, by what it is handed to.
_HANDED_TO = {
    "worker_init_fn": "loader",
    "initializer": "pool",
    "preexec_fn": "child",
    "spawn": "rank",
    "start_processes": "rank",
    "Process": "child",
    "Thread": "child",
    "submit": "child",
    "map": "child",
    "starmap": "child",
    "apply_async": "child",
    "Timer": "child",
}


def cores_of(called: Called) -> Value:
    """The processors that a call binds to; ``Absent`` where it only asks."""
    if called.name == "os.sched_setaffinity":
        return called.args.get("mask", 1)
    return called.args.get("cpus", 0)


def is_single(cores: Value) -> bool:
    """Whether a set of processors is known to hold just one."""
    if isinstance(cores, Sequence) and cores.items is not None:
        return len(cores.items) == 1 and not isinstance(cores.items[0], Absent)
    made = made_of(cores)
    if made is not None and made.name in ("builtins.set", "builtins.frozenset") and made.inputs:
        return is_single(made.inputs[0])
    return False


def is_fixed(cores: Value) -> bool:
    """Whether it is the same one whoever asks."""
    if isinstance(cores, Sequence) and cores.items:
        return isinstance(cores.items[0], Const)
    made = made_of(cores)
    if made is not None and made.inputs:
        return is_fixed(made.inputs[0])
    return isinstance(cores, (Const, Linear))


def binds_itself(called: Called, node: ast.Call) -> bool:
    """Whether the process that is bound is the one that runs the call."""
    if called.name == "os.sched_setaffinity":
        return bool(node.args) and bool(_OWN_PROCESS.match(ast.unparse(node.args[0])))
    shown = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    if isinstance(shown, ast.Call):
        given = [ast.unparse(one) for one in shown.args]
        return not given or bool(_OWN_PROCESS.match(given[0]))
    return True


def runners(called: Called, tree: ast.Module) -> frozenset[str]:
    """Who runs the code of a call: "loader" (a worker of a DataLoader), "pool", "rank" (a
    process that is spawned with its rank), "child" (one other process or thread)."""
    uses = uses_in(tree)
    found: set[str] = set()
    for node in (called.node, *called.context.calls):
        for above in uses.ancestors(node):
            if isinstance(above, ast.Lambda):
                found.update(_taker(uses, above))
            elif isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.update(_takers_by_name(uses, above.name))
    return frozenset(found)


def _takers_by_name(uses: Uses, name: str) -> Iterator[str]:
    for call in uses.calls():
        for given in (*call.args, *(k.value for k in call.keywords)):
            for node in walk(given):
                if isinstance(node, (ast.Name, ast.Attribute)) and _last(node) == name:
                    yield from _taker(uses, node)


def _taker(uses: Uses, node: ast.AST) -> Iterator[str]:
    inner = node
    for above in uses.ancestors(node):
        if isinstance(above, ast.keyword) and above.arg in _HANDED_TO:
            yield _HANDED_TO[above.arg]
            return
        if isinstance(above, ast.Call):
            if inner is above.func:
                return
            name = _last(above.func)
            if name in _HANDED_TO:
                yield _HANDED_TO[name]
                return
            if name != "partial":
                return
        elif isinstance(above, ast.stmt):
            return
        inner = above


def _last(node: ast.AST) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def restored(called: Called, tree: ast.Module) -> bool:
    """Whether the same function sets the affinity more than once: it is for a time only."""
    scope = uses_in(tree).scope_of(called.node)
    return sum(_sets(one) for one in walk(scope)) > 1


def _sets(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) in SETTERS and bool(
        len(node.args) == 2 if _last(node.func) == "sched_setaffinity" else node.args
    )  # fmt: skip


def binding_in_lambda(node: ast.AST) -> ast.Call | None:
    """The call of a lambda's body that binds to one fixed processor, if that is what it does."""
    if not isinstance(node, ast.Lambda):
        return None
    for one in walk(node.body):
        if isinstance(one, ast.Call) and _last(one.func) in SETTERS and one.args:
            cores = one.args[-1]
            if isinstance(cores, (ast.Set, ast.List, ast.Tuple)) and len(cores.elts) == 1:
                return one if isinstance(cores.elts[0], ast.Constant) else None
    return None
