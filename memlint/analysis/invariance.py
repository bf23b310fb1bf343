"""Whether an expression has the same value in every iteration of the loops around it.

An expression is invariant in a loop if it is made of names, attributes, subscripts and calls
that only read, and if nothing in the loop binds those names anew or writes into what they
lead to (:mod:`memlint.analysis.changes`).  Whether computing it over and over costs anything
is another question, which is answered here as far as the shape of the loop tells.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from memlint.analysis.arguments import as_argument
from memlint.analysis.changes import Changes, Definitions, called_name, changes_in
from memlint.analysis.events import Called, Enclosing
from memlint.analysis.paths import Path, names_in, path_of
from memlint.analysis.surroundings import LOOPS, Loop, Surroundings, stores_elsewhere
from memlint.analysis.uses import uses_in
from memlint.analysis.walking import walk
from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern

# A loop of so many iterations is worth nobody's attention.
FEW = 8
# Methods that only read what they are called on, and give the same each time.
_READING = frozenset(
    {"t", "transpose", "permute", "contiguous", "view", "view_as", "reshape", "flatten", "ravel",
     "squeeze", "unsqueeze", "movedim", "moveaxis", "swapaxes", "swapdims", "expand", "expand_as",
     "narrow", "select", "unfold", "detach", "numpy", "diagonal", "to", "cuda", "cpu", "float",
     "half", "double", "bfloat16", "long", "int", "short", "bool", "byte", "type", "type_as",
     "astype", "copy", "clone", "size", "dim", "numel", "abs", "sqrt", "exp", "log", "mean", "sum",
     "repeat", "repeat_interleave", "tile", "adjoint", "conj", "index_select", "flip", "roll",
     "unflatten", "pin_memory", "tolist", "get_device", "softmax", "clamp", "pow", "round",
     "copy_to_host", "max", "min", "argmax", "argmin", "to_numpy", "items", "values", "keys"}
)  # fmt: skip
_MODULES = frozenset({"torch", "np", "numpy", "cp", "cupy", "jnp", "jax", "cuda", "math", "F"})
_RANDOM = late_pattern(r"rand|perm|normal|multinomial|bernoulli|dropout|seed|empty", re.IGNORECASE)
_PLAIN_FUNCTIONS = frozenset(
    {"len", "int", "float", "max", "min", "abs", "tuple", "list", "slice", "range", "str",
     "ascontiguousarray", "asfortranarray", "asarray", "as_tensor", "tensor", "from_numpy",
     "device_put", "to_device", "asnumpy", "device"}
)  # fmt: skip
# Loops that are about something other than steps: what they do takes long.
_LONG = late_pattern(
    r"(^|_)(folds?|seeds?|trials?|runs?|experiments?|exps?|configs?|cfgs?|reps?|repeats?|"
    r"rounds?|warm_?ups?|attempts?|retry|retries|tr(y|ies)|repetitions?|burn_?in|devices?|"
    r"gpus?|ranks?|stages?|phases?|splits?|datasets?|methods?|backends?)($|_)",
    re.IGNORECASE,
)
_MEASURES = late_pattern(r"bench|profil|timeit|timing|latency|throughput|warm_?up", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Repeated:
    """An expression that is computed anew, with the same result, in each iteration of ``loop``.

    ``enclosing`` is what the analysis knows of that loop; ``statement`` the assignment that
    is the expression's own, where there is one directly in the loop's body.
    """

    loop: Loop
    enclosing: Enclosing
    node: ast.expr
    statement: ast.Assign | None

    @property
    def head(self) -> ast.expr:
        """The line of the loop that a message can point at."""
        return self.loop.test if isinstance(self.loop, ast.While) else self.loop.iter


class Invariance:
    """What of one program is invariant in its loops."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._around = Surroundings(lambda node: uses_in(tree).parent(node))
        self._definitions: Definitions | None = None
        self._changes: dict[int, Changes] = {}

    def repeated(self, called: Called) -> Repeated | None:
        """The outermost loop of its function that repeats an operation for nothing, if any."""
        if next(self._around.loops(called.node), None) is not None:
            if not self._used_up(called.node):
                found = self._repeated_at(called.node, called.node, called)
                if found is not None:
                    return found
            return self._repeated_as_a_whole(called)
        return self._repeated_by_caller(called)

    def _repeated_as_a_whole(self, called: Called) -> Repeated | None:
        """``{k: v.to(device) for k, v in given.items()}`` is the same in each iteration."""
        whole = self._around.whole(called.node)
        if whole is None or self._used_up(whole):
            return None
        return self._repeated_at(whole, whole, called)

    def _repeated_at(self, place: ast.expr, node: ast.expr, called: Called) -> Repeated | None:
        """``node`` as it is computed at ``place``, in the loops around that."""
        enclosing = {id(one.loop.node): one for one in called.context.loops}
        found: Repeated | None = None
        costly = False
        for loop, branch in self._around.loops(place):
            known = enclosing.get(id(loop.target if isinstance(loop, ast.comprehension) else loop))
            if known is None or not self._is_invariant(node, loop, known):
                break
            if not self._runs_in_most(branch, loop, place) or known.throttled:
                break
            costly = costly or self._is_costly(loop, known, called, place)
            found = Repeated(loop, known, node, self._own_statement(node, loop))
        return found if costly else None

    def _repeated_by_caller(self, called: Called) -> Repeated | None:
        """An operation of a function that a loop calls with the same arguments each time."""
        function = uses_in(self._tree).scope_of(called.node)
        call = called.context.calls[-1] if called.context.calls else None
        if not isinstance(call, ast.Call) or not isinstance(
            function, (ast.FunctionDef, ast.AsyncFunctionDef)
        ):
            return None
        if called_name(call) != function.name or not self._around.always_runs(called.node):
            return None
        if not self._is_left_alone(called.node, function):
            return None
        place = call if self._around.is_returned(called.node) else called.node
        if self._used_up(place):
            return None
        moved = as_argument(called.node, function, call)
        return None if moved is None else self._repeated_at(call, moved, called)

    def _is_left_alone(
        self, node: ast.expr, function: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> bool:
        changes = changes_in(function.body, self._known_definitions())
        return only_reads(node, changes, any_device=True)

    def is_steady(self, node: ast.expr, called: Called) -> bool:
        """Whether an expression in a call is the same in each iteration of a loop around it."""
        enclosing = {id(one.loop.node): one for one in called.context.loops}
        for loop, _ in self._around.loops(called.node):
            known = enclosing.get(id(loop.target if isinstance(loop, ast.comprehension) else loop))
            if known is None or not self._is_invariant(node, loop, known):
                return False
            return not known.throttled and (known.loop.trips is None or known.loop.trips > 2)
        return False

    # Invariance

    def _is_invariant(self, node: ast.expr, loop: Loop, known: Enclosing) -> bool:
        changes = self._changes_in(loop)
        steps = known.role in ("batch", "step")
        if not only_reads(node, changes, any_device=steps):
            return False
        return not (changes.trains and any(map(_like_parameter, _paths_in(node))))

    def _changes_in(self, loop: Loop) -> Changes:
        if (known := self._changes.get(id(loop))) is None:
            region, around = self._around.region(loop), self._function_of(loop)
            known = changes_in(region, self._known_definitions(), around)
            self._changes[id(loop)] = known
        return known

    def _known_definitions(self) -> Definitions:
        if self._definitions is None:
            self._definitions = Definitions(self._tree)
        return self._definitions

    def _function_of(self, node: ast.AST) -> ast.AST:
        last: ast.AST = node
        for parent, _ in self._around.ancestors(node):
            last = parent
        return self._around.parent(last) or self._tree

    # What becomes of the result

    def _used_up(self, node: ast.expr) -> bool:
        return self._around.used_up(node, self._is_kept)

    def _is_kept(self, statement: ast.Assign) -> bool:
        if stores_elsewhere(statement):
            return True
        paths = {(n.id,) for t in statement.targets for n in walk(t) if isinstance(n, ast.Name)}
        for loop, _ in self._around.loops(statement):
            if any(map(self._changes_in(loop).write_into, paths)):
                return True
            break
        return False

    # Cost

    def _runs_in_most(self, branch: ast.AST, loop: Loop, node: ast.AST) -> bool:
        def is_steady(condition: ast.If) -> bool:
            return only_reads(condition.test, self._changes_in(loop), any_device=False)

        return self._around.runs_in_most(branch, loop, node, is_steady)

    def _is_costly(self, loop: Loop, known: Enclosing, called: Called, place: ast.expr) -> bool:
        trips = known.loop.trips
        if trips is not None and trips <= FEW:
            return False
        name = called.context.name
        if _MEASURES.search(name) or _MEASURES.search(called.source.path.rpartition("/")[2]):
            return False
        if known.role in ("batch", "step"):
            return True
        if isinstance(loop, ast.comprehension):
            return not _LONG.search(ast.unparse(loop.target))
        inner = [one for part in loop.body for one in walk(part) if isinstance(one, LOOPS)]
        around = {id(one) for one, _ in self._around.loops(place)}
        if any(id(one) not in around for one in inner):
            return False
        if known.role == "epoch" and not _trains(loop):
            return False
        shown = known.loop.variable or ""
        return not (_LONG.search(shown) or _LONG.search(known.loop.stop_text.rpartition(".")[2]))

    # Whole statements

    def _own_statement(self, node: ast.expr, loop: Loop) -> ast.Assign | None:
        if isinstance(loop, ast.comprehension):
            return None
        previous: ast.AST = node
        for parent, child in self._around.ancestors(node):
            if isinstance(parent, ast.stmt):
                direct = isinstance(parent, ast.Assign) and parent in loop.body
                return parent if direct and child is previous else None  # type: ignore[return-value]
            previous = parent
        return None

    def is_invariant(self, node: ast.expr, repeated: Repeated) -> bool:
        """Whether another expression is invariant in the same loop."""
        return self._is_invariant(node, repeated.loop, repeated.enclosing)

    def moves(self, node: ast.expr, repeated: Repeated) -> int:
        """How often something is moved to a device in the loop."""
        text = ast.unparse(node)
        return sum(
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in ("to", "cuda", "cpu", "to_empty", "half", "float")
            and ast.unparse(one.func.value) == text
            for part in self._around.region(repeated.loop)
            for one in walk(part)
        )


def _trains(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "backward"
        for part in loop.body
        for node in walk(part)
    )


def _paths_in(node: ast.expr) -> Iterator[Path]:
    """The longest paths in an expression; methods do not count."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _paths_in(node.func.value)
        for argument in (*node.args, *(k.value for k in node.keywords)):
            yield from _paths_in(argument)
        return
    path = path_of(node)
    if path is not None:
        yield path[:-1] if len(path) > 1 and path[-1] in ("T", "mT", "H", "mH") else path
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _paths_in(child)


_PARAMETERS = late_pattern(
    r"^(w|b|p|weights?|bias|biases|params?|parameters?|data|grad|kernel|theta|embeddings?|"
    r"x_adv|adv|delta|perturbation|latents?|logits|alphas?|thetas?|coeffs?|log_(std|sigma|var|scale|alpha|temperature))$",
    re.IGNORECASE,
)


def _like_parameter(path: Path) -> bool:
    """Whether an optimizer may well change what a path leads to."""
    if len(path) > 1 and path[0] not in ("self", "args", "cfg", "config", "batch", "data"):
        return path[-1] not in ("device", "dtype")
    return bool(_PARAMETERS.match(path[-1]))


def given_each_time(repeated: Repeated) -> ast.expr | None:
    """What a comprehension that is repeated as a whole runs over."""
    match repeated.node:
        case ast.ListComp(generators=[first]) | ast.DictComp(generators=[first]):
            return first.iter
    return None


def only_reads(node: ast.AST | None, changes: Changes, *, any_device: bool) -> bool:
    """Whether an expression only reads what ``changes`` leave as it is.

    ``any_device``: the device of whatever a loop computes with does not change.
    """
    match node:
        case None | ast.Constant():
            return True
        case ast.Name() | ast.Attribute():
            path = path_of(node)
            if any_device and getattr(node, "attr", "") in ("device", "dtype"):
                return True
            if path is not None:
                return not changes.touch(path)
            return only_reads(node.value, changes, any_device=any_device)  # type: ignore[union-attr]
        case ast.Call():
            return _call_reads(node, changes, any_device=any_device)
        case (
            ast.Subscript() | ast.Slice() | ast.Tuple() | ast.List() | ast.BinOp() | ast.UnaryOp()
            | ast.Compare() | ast.BoolOp() | ast.IfExp() | ast.Starred() | ast.keyword()
        ):  # fmt: skip
            return all(
                only_reads(child, changes, any_device=any_device)
                for child in ast.iter_child_nodes(node)
                if isinstance(child, (ast.expr, ast.keyword))
            )
        case ast.ListComp(elt=result) | ast.DictComp(value=result):
            generator = node.generators[0]
            inner = changes.without(names_in(generator.target))
            return only_reads(generator.iter, changes, any_device=any_device) and all(
                only_reads(one, inner, any_device=any_device) for one in (result, *generator.ifs)
            )
    return False


def _call_reads(node: ast.Call, changes: Changes, *, any_device: bool) -> bool:
    given: Iterable[ast.expr] = (*node.args, *(k.value for k in node.keywords))
    match node.func:
        case ast.Attribute(value=receiver, attr=name):
            path = path_of(receiver)
            library = path is not None and path[0] in _MODULES and not changes.touch(path)
            if library and not _RANDOM.search(name):
                receivers: list[ast.expr] = []
            elif name in _READING:
                receivers = [receiver]
            else:
                return False
        case ast.Name(id=name) if name in _PLAIN_FUNCTIONS:
            receivers = []
        case _:
            return False
    return all(only_reads(one, changes, any_device=any_device) for one in (*receivers, *given))
