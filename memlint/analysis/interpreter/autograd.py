"""The graphs of autograd: which calls make one, and which values are a part of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from memlint.analysis.events import Forward
from memlint.analysis.interpreter.grad_mode import GradMode, turns_off
from memlint.analysis.interpreter.machine import text_of
from memlint.analysis.knowledge import Args
from memlint.analysis.knowledge.autograd import (
    LEAVING,
    LEAVING_ATTRIBUTES,
    LEAVING_OPERATORS,
    NUMBERS,
    WITH_PARAMETERS,
    WITH_PLACES,
)
from memlint.analysis.knowledge.networks import NETWORK_NAME, RUNNING
from memlint.analysis.values import (
    Absent,
    Bound,
    Class,
    Const,
    Function,
    Instance,
    Object,
    Partial,
    Sequence,
    Site,
    Tensor,
    Unknown,
    Value,
    alternatives,
    graphs_of,
    must_be,
    possible_graphs,
)
from memlint.analysis.walking import walk
from memlint.late_pattern import late_pattern
from memlint.source.project import source_of

# The name under which rules ask for :class:`~memlint.analysis.events.Forward` events.
FORWARD = "forward"
# How the labels of graphs begin; parameters, which are their leaves, have none.
GRAPH = "graph "
# Methods that only modules have.
OF_MODULES = frozenset({"eval", "train", "parameters", "named_parameters"})
FREEZING = late_pattern(r"(?<!un)(^|_)freeze|(^|_)requires_grads?$", re.IGNORECASE)
NETWORKS = ("torchvision.models.", "timm.", "segmentation_models_pytorch.")


class Autograd(GradMode):
    """Which values are parts of graphs."""

    watched: frozenset[str] = frozenset()
    forwards: dict[tuple[object, ...], Forward]
    called_models: dict[tuple[object, ...], tuple[Site, ...]]

    @property
    def follows_graphs(self) -> bool:
        """Whether any rule asks."""
        return FORWARD in self.watched

    def graphs_after(
        self, name: str, node: ast.AST, receiver: Value | None, args: Args
    ) -> frozenset[Site]:
        """The graphs that the result of an operation is a part of."""
        if not self.follows_graphs:
            return frozenset()
        short = name.rpartition(".")[2]
        if name == ".requires_grad_" and not must_be(args.get("requires_grad", 0), False):
            return frozenset({self._graph_at(node)})
        if must_be(args.keywords.get("requires_grad", Const(False)), True):
            return frozenset({self._graph_at(node)})
        leaves = short in LEAVING or (name[:1] == "." and short in LEAVING_ATTRIBUTES)
        if self.recording() is False or leaves:
            return frozenset()
        if name in LEAVING_OPERATORS or name in NUMBERS or name.startswith("numpy."):
            return frozenset()
        if name == "torch.autograd.grad" and not must_be(args.get("create_graph"), True):
            return frozenset()
        given = (*args.positional, *args.keywords.values())
        if receiver is not None:
            given = (receiver, *given)
        found = frozenset[Site]().union(*(graphs_of(one) for one in given))
        parameters = {site for site in found if not is_graph(site)}
        return found - parameters | {self._graph_at(node)} if parameters else found

    def _graph_at(self, node: ast.AST) -> Site:
        """The graph that an operation makes, one for each way that leads to it."""
        way = "/".join(str(id(frame.call)) for frame in self.stack[1:])
        return self.sites.at(node, f"{GRAPH}{way}")

    def graphs_of_call(
        self, callee: Value, args: Args, node: ast.AST, value: Value
    ) -> frozenset[Site]:
        """What a call makes or hands on of graphs, but for operations of known names."""
        if not self.follows_graphs or self.recording() is False:
            return frozenset()
        if isinstance(callee, (Function, Class, Partial)) or not isinstance(node, ast.Call):
            return frozenset()
        if isinstance(callee, Instance):
            if possible_graphs(value) or not isinstance(value, Unknown) or not self._opaque(callee):
                return frozenset()
            return frozenset({self._graph_at(node)})
        handed = frozenset[Site]()
        if not isinstance(callee, Bound):
            given = (*args.positional, *args.keywords.values())
            handed = handed.union(*(graphs_of(one) for one in given))
        if self._is_network(callee, node):
            return handed | {self._graph_at(node)}
        return handed

    def _opaque(self, callee: Instance) -> bool:
        """A module of the program whose layers are not all seen."""
        return self.is_module(callee) and not turns_off(callee.cls.node)

    def is_module(self, value: Value) -> bool:
        raise NotImplementedError

    def _is_network(self, callee: Value, node: ast.Call) -> bool:
        match callee:
            case Object(cls=cls):
                if cls in WITH_PARAMETERS or cls.startswith(NETWORKS):
                    return not self._is_frozen(node)
                if not cls.startswith(("torch.", "builtins.", "memlint.", "collections.")):
                    last = model_text(node.func).rpartition(".")[2]
                    known = last in self.module_names or callee.site in self.object_modes
                    return known and not self._is_frozen(node)
                return cls == "torch.nn.Sequential" and any(
                    isinstance(one, Object) and one.cls in WITH_PARAMETERS
                    for _, fact in callee.facts
                    for one in alternatives(fact)
                )
            case Bound(receiver=Unknown() | Instance()) | Unknown():
                func = node.func
                if isinstance(func, ast.Attribute) and func.attr in RUNNING:
                    func = func.value
                text = model_text(func)
                last = text.rpartition(".")[2]
                named = last in self.module_names or bool(NETWORK_NAME.search(last))
                if not named and not self._has_mode(callee, node.func):
                    return False
                return bool(last) and not self._is_frozen(node)
        return False

    def _has_mode(self, callee: Value, func: ast.expr) -> bool:
        """Whether the program puts what is called into a mode."""
        running = isinstance(func, ast.Attribute) and func.attr in RUNNING
        model = callee.receiver if running and isinstance(callee, Bound) else callee
        return any(site in self.object_modes for site in self.sites_of_model(model)) or any(
            self.outer_mode_of(text) is not None for text in self.iterated_texts(func)
        )

    def _is_frozen(self, node: ast.Call) -> bool:
        return model_text(node.func).rpartition(".")[2] in self.frozen_names

    @cached_property
    def module_names(self) -> frozenset[str]:
        """The last names of what the program calls methods on that only modules have."""
        return frozenset(
            _last_name(one.func.value)
            for one in walk(self.tree)
            if isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in OF_MODULES
            and isinstance(one.func.value, (ast.Name, ast.Attribute, ast.Subscript))
            and len(one.args) + len(one.keywords) <= 1
        ) - {"", "self"}

    @cached_property
    def frozen_names(self) -> frozenset[str]:
        """The last names of models whose parameters the program takes out of training."""
        found: set[str] = set()
        for one in walk(self.tree):
            match one:
                case ast.Call(
                    func=ast.Attribute(value=base, attr="requires_grad_"),
                    args=[ast.Constant(value=False)],
                ):
                    found.add(_last_name(base))
                case ast.Call(func=func, args=args) if _is_freezing(func, args):
                    found.update(_last_name(one) for given in args for one in _each(given))
                case ast.Assign(targets=targets, value=ast.Call() as value) if any(
                    isinstance(call, ast.Call) and _is_freezing(call.func, call.args)
                    for call in walk(value)
                ):
                    found.update(_last_name(target) for target in targets)
                case ast.For(iter=ast.Call(func=ast.Attribute(value=base, attr=attr))) if attr in (
                    "parameters",
                    "named_parameters",
                ) and _freezes(one):
                    found.add(_last_name(base))
        return frozenset(found - {""})

    def note_forward(self, callee: Value, args: Args, node: ast.AST, value: Value) -> None:
        """Tell of a call whose result is a part of a graph that no argument was a part of."""
        if not self.follows_graphs or not isinstance(node, ast.Call):
            return
        if isinstance(callee, Bound) and isinstance(callee.receiver, Object):
            return
        after = possible_graphs(value)
        if not after and not self._is_network(callee, node):
            return
        given = (*args.positional, *args.keywords.values())
        before = frozenset[Site]().union(*(possible_graphs(one) for one in given))
        if isinstance(callee, Bound):
            before |= possible_graphs(callee.receiver)
        new = after - before
        if after and not new:
            return
        key = (id(node), *(id(f.call) for f in self.stack))
        model = callee.receiver if isinstance(callee, Bound) else callee
        if sites := tuple(self.sites_of_model(model)):
            self.called_models[key] = sites
        texts = tuple(dict.fromkeys((*_model_texts(callee, node), *self.iterated_texts(node.func))))
        modes = [mode for text in texts if (mode := self.mode_of(text)) is not None]
        outer = [mode for text in texts if (mode := self.outer_mode_of(text)) is not None]
        self.forwards[key] = Forward(
            node,
            texts,
            new,
            value,
            modes[0] if modes else None,
            outer[0] if outer else None,
            isinstance(callee, Function),
            self.statement,
            self.context(),  # type: ignore[attr-defined]
            source_of(node, self.source),
        )

    def tell_forwards(self) -> Iterator[Forward]:
        """The runs of models, with what was learnt of their modes."""
        for key, one in self.forwards.items():
            sites = self.called_models.get(key, ())
            modes = {self.object_modes.get(site) for site in sites}
            if one.elsewhere is None and len(modes) == 1:
                one = replace(one, elsewhere=modes.pop())
            yield one
        self.forwards = {}


def is_graph(site: Site) -> bool:
    """Whether a site stands for a graph, not for a parameter that graphs begin at."""
    return site.label.startswith(GRAPH)


def with_places(name: str, args: Args, value: Value) -> Value:
    """``values, places = x.max(1)``: the second is no part of the graph."""
    if not isinstance(value, (Unknown, Tensor)) or not value.graphs:
        return value
    head, _, short = name.rpartition(".")
    if short not in WITH_PLACES or head not in ("", "torch"):
        return value
    axis = args.get("dim", 1 if head else 0)
    if isinstance(axis, Absent) and short in ("max", "min", "median", "mode"):
        return value
    if isinstance(axis, (Tensor, Unknown)):
        return value
    place = Unknown("call", devices=value.devices, made=value.made)
    return Sequence("tuple", (value, place))


def model_text(func: ast.expr) -> str:
    """What is called, without ``.forward`` and ``.module``, where it is a name."""
    while isinstance(func, ast.Attribute) and func.attr in ("forward", "module"):
        func = func.value
    return text_of(func) if isinstance(func, (ast.Name, ast.Attribute)) else _last_name(func)


def _model_texts(callee: Value, node: ast.Call) -> Iterator[str]:
    """The texts that the model may go by which a call runs."""
    func = node.func
    yield model_text(func)
    if isinstance(func, ast.Subscript):
        yield text_of(func)
        yield text_of(func.value)
    if not isinstance(callee, Function):
        return
    if isinstance(func, ast.Attribute):
        yield text_of(func.value)
    for given in (*node.args, *(k.value for k in node.keywords)):
        if isinstance(given, (ast.Name, ast.Attribute)):
            yield text_of(given)


def _last_name(node: ast.expr) -> str:
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Attribute) and node.attr in ("to", "cuda", "module"):
            node = node.value
    return getattr(node, "id", getattr(node, "attr", ""))


def _is_freezing(func: ast.expr, given: list[ast.expr]) -> bool:
    """Whether a call is one of a helper that takes models out of training: ``freeze(model)``,
    ``set_requires_grad(model, False)``."""
    if not FREEZING.search(getattr(func, "attr", getattr(func, "id", ""))):
        return False
    return bool(given) and not any(
        isinstance(one, ast.Constant) and one.value is True for one in given
    )


def _each(given: ast.expr) -> list[ast.expr]:
    return given.elts if isinstance(given, (ast.List, ast.Tuple)) else [given]


def _freezes(loop: ast.For) -> bool:
    """Whether a loop takes each parameter out of training, without asking which it is."""
    for statement in loop.body:
        match statement:
            case ast.Assign(
                targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=False)
            ):
                return True
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="requires_grad_"), args=[ast.Constant(value=False)]
                )
            ):
                return True
    return False
