"""Whether autograd records, and which mode models are in, at each point of a program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from memlint.analysis.interpreter.machine import Machine, name_of, text_of
from memlint.analysis.interpreter.state import Frame
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    Absent,
    Class,
    Function,
    Instance,
    Object,
    Site,
    Unknown,
    Value,
    alternatives,
    constants,
    made_of,
    must_be,
)
from memlint.analysis.walking import walk
from memlint.late_pattern import late_pattern

GRAD_OFF = frozenset({"torch.no_grad", "torch.inference_mode"})
GRAD_ON = frozenset({"torch.enable_grad"})
SET_GRAD = "torch.set_grad_enabled"
SWITCHES = GRAD_OFF | GRAD_ON | {SET_GRAD}
# Words in the code of a decorator or a context manager that turns recording off.
TURNING_OFF = frozenset({"no_grad", "inference_mode", "set_grad_enabled", "_set_grad_enabled"})
# What such things are called where their code is not seen.
MAY_TURN_OFF = late_pattern(
    r"grad|inference|infer\b|eval|frozen|freez|predict_?mode", re.IGNORECASE
)
SELF = "self"
# Methods of a module that give the module itself.
SAME_MODEL = frozenset({".to", ".cuda", ".cpu", ".float", ".half", ".bfloat16", ".eval", ".train",
                        ".requires_grad_", ".to_empty", ".share_memory"})  # fmt: skip
DEEPEST_CHAIN = 8


class GradMode(Machine):
    """What decides whether operations are recorded."""

    # What the program last set by ``torch.set_grad_enabled(...)`` as a call of its own.
    grad_set: bool | None = True
    # Under which mode the generators that are context managers of the program yield.
    yielding: dict[int, bool | None]
    # Modes that a class or the module puts models in, outside of the function that uses them.
    outer_modes: dict[tuple[int, str], bool | None]
    # The mode that an object of the program is put into, and never another.
    object_modes: dict[Site, bool | None]
    statement: ast.stmt
    targets: dict[int, ast.expr]

    def recording(self) -> bool | None:
        """Whether autograd records: ``None`` where that is not known."""
        grad = self.frame.grad
        return grad if self.grad_set else self.grad_set if grad else False

    def grad_under(self, grad: bool | None, managers: Iterable[Value]) -> bool | None:
        """Whether autograd records under these context managers, where ``grad`` held before."""
        for manager in managers:
            outcomes = {self._grad_under_one(grad, one) for one in alternatives(manager)}
            grad = outcomes.pop() if len(outcomes) == 1 else None
        return grad

    def _grad_under_one(self, grad: bool | None, manager: Value) -> bool | None:
        name = name_of(manager)
        if name in GRAD_OFF:
            return _switched(manager, "mode", on=False)
        if name in GRAD_ON:
            return True
        if name == SET_GRAD:
            return _switched(manager, "mode", on=True)
        match manager:
            case Function(node=node):
                return None if grad and turns_off(node) else grad
            case Class(node=node) | Instance(cls=Class(node=node)):
                return None if grad and turns_off(node) else grad
            case Unknown():
                made = made_of(manager)
                if made is not None and isinstance(made.node, ast.Call):
                    return None if grad and MAY_TURN_OFF.search(_last(made.node)) else grad
        if name and not name.startswith("torch.") and MAY_TURN_OFF.search(name.rpartition(".")[2]):
            return None if grad else grad
        return grad

    def grad_within(self, grad: bool | None, manager: Value, node: ast.expr) -> bool | None:
        """Whether autograd records in ``with manager:``, which is written ``node``."""
        if isinstance(node, ast.Call):
            for callee in alternatives(self.evaluate(node.func)):
                if isinstance(callee, Function) and id(callee.node) in self.yielding:
                    within = self.yielding[id(callee.node)]
                    return within if grad else grad
        return self.grad_under(grad, (manager,))

    def note_yield(self) -> None:
        if self.frame.function is not None:
            self.yielding[id(self.frame.function.node)] = self.recording()

    def note_wrapped(self, function: Function, wrapper: Value) -> None:
        """A decorator of the program put another function in the place of this one."""
        if (
            isinstance(wrapper, Function)
            and wrapper.node is not function.node
            and turns_off(wrapper.node)
        ):
            self._guard(function, wrapper)

    def note_guarded(self, guard: Value, value: Value) -> None:
        """``torch.no_grad()(function)``."""
        if isinstance(value, Function) and name_of(guard) in SWITCHES:
            self._guard(value, guard)

    def _guard(self, function: Function, guard: Value) -> None:
        traits = self.traits.setdefault(id(function.node), [])
        if guard not in traits:
            traits.append(guard)

    def set_grad(self, args: Args) -> None:
        """``torch.set_grad_enabled(mode)`` as a call of its own."""
        mode = args.get("mode", 0)
        made = made_of(mode)
        if must_be(mode, True) or (made is not None and made.name == "torch.is_grad_enabled"):
            self.grad_set = True
        elif must_be(mode, False) and not self.frame.conditions:
            self.grad_set = False
        else:
            self.grad_set = None

    def note_entered(self, name: str, receiver: Value | None, args: Args) -> None:
        """``stack.enter_context(torch.no_grad())`` and ``torch.no_grad().__enter__()``."""
        if name == ".enter_context":
            self.frame.grad = self.grad_under(self.frame.grad, args.positional)
        elif name == ".__enter__" and receiver is not None:
            self.frame.grad = self.grad_under(self.frame.grad, (receiver,))

    # Modes of models

    def note_mode(self, name: str, node: ast.AST, receiver: Value, args: Args) -> None:
        """``model.eval()`` and ``model.train()``, by the texts that the model goes by."""
        if name not in (".eval", ".train") or not isinstance(node, ast.Call):
            return
        given = [*args.positional, *args.keywords.values()]
        if len(given) > (name == ".train"):
            return
        training: bool | None = name == ".train"
        if given:
            known = set(constants(given[0]))
            training = next(iter(known)) is True if known in ({True}, {False}) else None
        evaluating = None if training is None else not training
        for text in self._called_by_name(node):
            self._put_mode(text, evaluating)
        for site in self.sites_of_model(receiver):
            before = self.object_modes.get(site, evaluating)
            self.object_modes[site] = evaluating if before is evaluating else None

    def sites_of_model(self, model: Value) -> Iterator[Site]:
        """Where models are made: the object itself, or the call that nobody can see into."""
        for one in alternatives(model):
            for _ in range(DEEPEST_CHAIN):
                made = made_of(one)
                if isinstance(one, (Object, Instance)):
                    yield one.site
                    break
                if made is None:
                    break
                if made.name not in SAME_MODEL or not made.inputs:
                    if isinstance(made.node, ast.Call):
                        yield self.sites.at(made.node)
                    break
                one = made.inputs[0]

    def _called_by_name(self, node: ast.Call) -> Iterator[str]:
        assert isinstance(node.func, ast.Attribute)
        base = node.func.value
        while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
            base = base.func.value
        if isinstance(base, (ast.Name, ast.Attribute)):
            yield text_of(base)
            yield from self.iterated_texts(base)
        elif isinstance(base, ast.Subscript):
            yield text_of(base)
        statement = self.statement
        if isinstance(statement, ast.Assign) and any(
            node in _receivers(one) for one in _displayed(statement.value)
        ):
            yield from (text_of(t) for t in statement.targets)

    def iterated_texts(self, model: ast.expr) -> Iterator[str]:
        """What a list of models goes by, of which ``model`` is the variable of a loop."""
        if not isinstance(model, (ast.Name, ast.Attribute)):
            return
        for opened in self.frame.loops:
            if opened.loop.variable == text_of(model) and opened.loop.iterated is not None:
                yield from _texts_in(opened.loop.iterated)

    def _put_mode(self, text: str, evaluating: bool | None) -> None:
        frame = self.frame
        old = frame.modes.get(text, evaluating if not frame.conditions else None)
        if frame.conditions and evaluating is False:
            frame.modes[text] = False
        else:
            frame.modes[text] = evaluating if not frame.conditions or old is evaluating else None
        if text.startswith(f"{SELF}.") and isinstance(frame.receiver, Instance):
            key = (id(frame.receiver.cls.node), text)
        elif frame.function is None:
            key = (0, text)
        else:
            return
        same = self.outer_modes.get(key, evaluating) is evaluating
        self.outer_modes[key] = evaluating if same else None

    def mode_of(self, text: str) -> bool | None:
        """Whether the model that goes by ``text`` is evaluated here, as this call path says."""
        return next(
            (m for t in _prefixes(text) if (m := self.frame.modes.get(t)) is not None), None
        )

    def outer_mode_of(self, text: str) -> bool | None:
        """The mode that the class or the module puts a model into, and never another."""
        receiver = self.frame.receiver
        owner = id(receiver.cls.node) if isinstance(receiver, Instance) else 0
        for one in _prefixes(text):
            key = (owner if one.startswith(SELF) else 0, one)
            if key in self.outer_modes:
                return self.outer_modes[key]
        return None

    def hand_modes(self, frame: Frame, caller: Frame, node: ast.AST | None) -> None:
        """What a function that is called knows of the modes of its arguments."""
        if not caller.modes or not isinstance(node, ast.Call) or frame.function is None:
            return
        if frame.receiver is not None and frame.receiver == caller.receiver:
            frame.modes.update(
                (text, mode)
                for text, mode in caller.modes.items()
                if text == SELF or text.startswith(f"{SELF}.")
            )
        spec = frame.function.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        if frame.receiver is not None:
            if isinstance(node.func, ast.Attribute):
                self._hand_mode(frame, caller, SELF, node.func.value)
            del names[:1]
        for name, given in zip(names, node.args, strict=False):
            self._hand_mode(frame, caller, name, given)
        for keyword in node.keywords:
            if keyword.arg is not None:
                self._hand_mode(frame, caller, keyword.arg, keyword.value)

    def _hand_mode(self, frame: Frame, caller: Frame, name: str, given: ast.expr) -> None:
        if not isinstance(given, (ast.Name, ast.Attribute)):
            return
        text = text_of(given)
        for one, mode in list(caller.modes.items()):
            if one == text or one.startswith(f"{text}.") or text.startswith(f"{one}."):
                rest = one[len(text) :] if one.startswith(text) else ""
                frame.modes[name + rest] = mode

    def return_modes(self, frame: Frame, caller: Frame) -> None:
        """What a method leaves its object's models in."""
        if frame.receiver is not None and frame.receiver == caller.receiver:
            caller.modes.update(
                (text, mode)
                for text, mode in frame.modes.items()
                if text == SELF or text.startswith(f"{SELF}.")
            )


def _switched(manager: Value, key: str, *, on: bool) -> bool | None:
    """What a manager with a switch sets autograd to; ``on`` is what ``mode=True`` means."""
    if not isinstance(manager, Object):
        return on
    mode = manager.fact(key)
    if isinstance(mode, Absent):
        mode = manager.fact("0")
    if isinstance(mode, Absent) or must_be(mode, True):
        return on
    return (not on) if must_be(mode, False) else None


@lru_cache(maxsize=256)
def turns_off(node: ast.AST) -> bool:
    """Whether the code of a wrapper or a context manager holds a switch of autograd."""
    return any(
        (isinstance(one, ast.Attribute) and one.attr in TURNING_OFF)
        or (isinstance(one, ast.Name) and one.id in TURNING_OFF)
        for one in walk(node)
    )


def _last(node: ast.Call) -> str:
    func = node.func
    return getattr(func, "attr", getattr(func, "id", ""))


def _prefixes(text: str) -> Iterator[str]:
    while text:
        yield text
        text = text.rpartition(".")[0]


def _texts_in(node: ast.expr) -> Iterator[str]:
    """What a loop over models may be over: a list's name, or the names in a display."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            yield from (text_of(part) for part in parts)
        case ast.Name() | ast.Attribute():
            yield text_of(node)
        case ast.Call(func=ast.Attribute(value=base, attr="values")):
            yield text_of(base)


def _displayed(node: ast.expr) -> Iterator[ast.expr]:
    """What is given a name: an expression, or the parts of a list that holds several."""
    match node:
        case ast.ListComp(elt=part):
            yield part
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            yield from parts
        case _:
            yield node


def _receivers(node: ast.expr) -> Iterator[ast.expr]:
    """A chain of calls: ``Net().to(device).eval()`` and each one before."""
    while isinstance(node, ast.Call):
        yield node
        if not isinstance(node.func, ast.Attribute):
            return
        node = node.func.value
