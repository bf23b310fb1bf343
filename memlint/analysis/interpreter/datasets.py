"""What a loader's workers run and hold: datasets, their transforms, collate functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from memlint.analysis.events import DatasetAttribute, LoaderBuilt, Loop, Transfer, WorkerCode
from memlint.analysis.interpreter.devices import Devices
from memlint.analysis.interpreter.machine import UNKNOWN, name_of, text_of
from memlint.analysis.interpreter.records import LoaderRecord
from memlint.analysis.kept import Growth, Kept
from memlint.analysis.knowledge import Args, SliceValue
from memlint.analysis.knowledge.python_objects import READERS
from memlint.analysis.samples import Samples, methods_of, samples_of, work_of
from memlint.analysis.values import (
    Absent,
    Class,
    Function,
    Instance,
    Made,
    Mapping,
    Object,
    Partial,
    Sequence,
    Site,
    Unknown,
    Value,
    alternatives,
    made_of,
)
from memlint.source.model import Source

SUBSET = "torch.utils.data.Subset"
# Bases that say nothing of how objects of a class are pinned.
NEUTRAL_BASES = ("builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol")
_DEEPEST = 3
_MOST_VALUES = 40
NOTHING = Made("", ast.Pass(), ())


class Datasets(Devices):
    """Datasets and the code of workers."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        super().__init__(source, tree)
        self._stores: dict[tuple[Site, str], list[tuple[ast.Attribute, Value]]] = {}
        self._growth: dict[Site, Growth] = {}
        self._comprehended: dict[int, tuple[Loop, ...]] = {}
        self._cuda_moves: dict[tuple[int, Site | None], dict[int, Transfer]] = {}
        # All moves in order, which functions make some, and which each of their calls makes.
        self._moved: list[Transfer] = []
        self._movers: set[int] = set()
        self._moves_by_call: dict[object, tuple[Transfer, ...]] = {}

    # What is noted on the way

    def _assign_attribute(self, target: ast.Attribute, value: Value) -> None:
        super()._assign_attribute(target, value)
        receiver = self.frame.receiver
        if (
            isinstance(receiver, Instance)
            and isinstance(target.value, ast.Name)
            and self.read(target.value.id) == receiver
            and self._is_in_init()
        ):
            stored = self._stores.setdefault((receiver.site, target.attr), [])
            stored.append((target, value))

    def _is_in_init(self) -> bool:
        return any(frame.name.endswith("__init__") for frame in self.stack)

    def _grown(self, receiver: Sequence, name: str, added: Value) -> Sequence:
        if receiver.site is not None:
            self._note_growth(receiver.site, added if name == "extend" else None)
        return super()._grown(receiver, name, added)

    def _store_item(self, base: Value, items: tuple[Value | SliceValue, ...], value: Value) -> None:
        if isinstance(base, Mapping) and base.site is not None:
            self._note_growth(base.site, None)
        super()._store_item(base, items, value)

    def _updated(self, receiver: Mapping, name: str, args: Args, key: str | None) -> Mapping:
        if name == "setdefault" and key is None and receiver.site is not None:
            self._note_growth(receiver.site, None)
        return super()._updated(receiver, name, args, key)

    def note_copied(self, site: Site, source: Value) -> None:
        growth = self._growth.setdefault(site, Growth())
        if not any(source is one for one in growth.copied):
            growth.copied.append(source)

    def _note_growth(self, site: Site, fed: Value | None) -> None:
        growth = self._growth.setdefault(site, Growth())
        first = getattr(site.node, "lineno", 0)
        for opened in self.frame.loops:
            node = opened.loop.node
            # A list that is made in the body of a loop does not grow by that loop.
            if not getattr(node, "lineno", 0) <= first <= (getattr(node, "end_lineno", 0) or 0):
                growth.loops[id(node)] = opened.loop
        if fed is not None:
            growth.fed.append(fed)

    def _run_generators(
        self, generators: list[ast.comprehension], results: list[ast.expr], iterable: Value
    ) -> list[Value]:
        if not generators:
            loops = tuple(opened.loop for opened in self.frame.loops)
            self._comprehended[id(results[-1])] = loops
        return super()._run_generators(generators, results, iterable)

    def _growth_of(self, site: Site) -> Growth | None:
        """How the collection that is made at a place grows."""
        growth = self._growth.get(site)
        node = site.node
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            last = node.value if isinstance(node, ast.DictComp) else node.elt
            loops = self._comprehended.get(id(last), ())[-len(node.generators) :]
            growth = growth or Growth()
            every = {**growth.loops, **{id(one): one for one in loops}}
            return Growth(every, growth.fed, growth.copied)
        return growth

    def note_moves(self, value: Value, name: str, args: Args, node: ast.AST) -> frozenset[str]:
        devices = super().note_moves(value, name, args, node)
        if "cuda" in devices:
            self._note_cuda(node, devices)
        return devices

    def call_name(self, name: str, args: Args, node: ast.AST) -> Value:
        made = super().call_name(name, args, node)
        if "device" in args.keywords and name.startswith("torch."):
            devices = self.device_types(args.keywords["device"])
            if "cuda" in devices:
                self._note_cuda(node, devices)
        return made

    def _note_cuda(self, node: ast.AST, devices: frozenset[str]) -> None:
        move = Transfer(node, text_of(node), devices)
        self._moved.append(move)
        for frame in self.stack:
            if frame.function is not None:
                self._movers.add(id(frame.function.node))
        self._attribute_moves((move,))

    def _attribute_moves(self, moves: Iterable[Transfer]) -> None:
        """These moves are made by all functions that are running."""
        for frame in self.stack:
            if frame.function is not None:
                receiver = frame.receiver
                site = receiver.site if isinstance(receiver, Instance) else None
                known = self._cuda_moves.setdefault((id(frame.function.node), site), {})
                known.update((id(move.node), move) for move in moves)

    def call_function(self, function: Function, args: Args, node: ast.AST) -> Value:
        first = len(self._moved)
        result = super().call_function(function, args, node)
        if id(function.node) in self._movers:
            key = self._memo_key(function, args, node)
            moves = self._moves_by_call.get(key)
            if moves is None:
                self._moves_by_call[key] = tuple(self._moved[first:])
            else:
                # The function was not read again, since it was called in the same way before.
                self._attribute_moves(moves)
        return result

    # Datasets

    def datasets_in(self, value: Value, depth: int = 0) -> Iterator[Instance]:
        """The program's own datasets that a loader's dataset is, wraps or joins."""
        if depth > _DEEPEST:
            return
        for one in alternatives(value):
            match one:
                case Instance() if self._is_dataset(one):
                    yield one
                    for inner in self.heap.of(one.site).values():
                        yield from self.datasets_in(inner, depth + 1)
                case Object(facts=facts):
                    for _, fact in facts:
                        yield from self.datasets_in(fact, depth + 1)
                case Sequence(items=items, element=element):
                    for part in items if items is not None else (element,):
                        yield from self.datasets_in(part, depth + 1)
                case Unknown():
                    made = made_of(one)
                    for given in made.inputs if made is not None else ():
                        if isinstance(given, (Instance, Object, Sequence)):
                            yield from self.datasets_in(given, depth + 1)

    def _is_dataset(self, one: Instance) -> bool:
        return any(
            isinstance(self.class_attribute(one.cls, name), Function)
            for name in ("__getitem__", "__getitems__", "__iter__")
        )

    def _random_split(self, args: Args, node: ast.AST) -> Value:
        part = Object(SUBSET, self.sites.at(node), (("dataset", args.get("dataset", 0)),))
        return Sequence("list", None, part, self.sites.at(node, "parts"))

    # Their transforms

    def _composed(self, callee: Object, args: Args, node: ast.AST) -> Value | None:
        """``transforms.Compose([...])(x)`` calls one after the other."""
        value = args.get("img", 0)
        steps = _given(callee, "transforms")
        if not isinstance(steps, Sequence) or steps.items is None:
            return None
        for step in steps.items:
            value = self.call(step, Args((value,), {}, False), node)
        return value

    def _by_function(self, callee: Object, args: Args, node: ast.AST) -> Value | None:
        """``transforms.Lambda(function)(x)``."""
        return self.call(_given(callee, "lambd"), args, node)

    # What is told of them

    def code_of_workers(self, record: LoaderRecord, batch: Value) -> WorkerCode:
        """What the workers of a loader run; its items and batches have been read before."""
        dataset = record.arguments.get("dataset", UNKNOWN)
        found = list(self.datasets_in(dataset))
        moves: dict[int, Transfer] = {}
        for one in found:
            for name in ("__getitem__", "__getitems__", "__iter__"):
                moves.update(self._moves_in(self.class_attribute(one.cls, name), one.site))
        for collate in alternatives(record.arguments.get("collate_fn", Absent())):
            moves.update(self._moves_of_collate(collate))
        work = next((w for one in found[:1] if (w := work_of(self._methods(one)))), None)
        return WorkerCode(tuple(moves.values()), work, self._unpinned(batch))

    def _methods(self, one: Instance) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
        return methods_of(c.node for c in self.lineage(one.cls))

    def _moves_in(self, method: Value | None, site: Site | None) -> dict[int, Transfer]:
        if not isinstance(method, Function):
            return {}
        return self._cuda_moves.get((id(method.node), site), {})

    def _moves_of_collate(self, collate: Value) -> dict[int, Transfer]:
        match collate:
            case Partial(func=inner):
                return self._moves_of_collate(inner)
            case Function(bound=bound):
                return self._moves_in(collate, bound.site if isinstance(bound, Instance) else None)
            case Instance():
                return self._moves_in(self.class_attribute(collate.cls, "__call__"), collate.site)
        return {}

    def _unpinned(self, batch: Value) -> str:
        """The class of the batch, if it is one of the program's and has no ``pin_memory``."""
        names = set()
        for one in alternatives(batch):
            if not isinstance(one, Instance) or not self._cannot_be_pinned(one.cls):
                return ""
            names.add(one.cls.node.name)
        return min(names) if names else ""

    def _cannot_be_pinned(self, cls: Class) -> bool:
        bases = [b for c in self.lineage(cls) for b in self.bases.get(id(c.node), [])]
        known = all(isinstance(b, Class) or name_of(b).startswith(NEUTRAL_BASES) for b in bases)
        return known and self.class_attribute(cls, "pin_memory") is None

    def attributes_of_datasets(self, loaders: list[LoaderBuilt]) -> Iterator[DatasetAttribute]:
        """What datasets keep in Python objects, joined with the loaders that read them."""
        readers: dict[Site, list[LoaderBuilt]] = {}
        found: dict[Site, Instance] = {}
        for loader in loaders:
            for one in self.datasets_in(loader.argument("dataset")):
                found[one.site] = one
                readers.setdefault(one.site, []).append(loader)
        told: dict[tuple[int, str], DatasetAttribute] = {}
        for site, instance in found.items():
            for kept in self._kept_by(instance, readers[site]):
                key = (id(kept.node), kept.name)
                told[key] = _joined(told[key], kept) if key in told else kept
        yield from told.values()

    def _kept_by(
        self, instance: Instance, loaders: list[LoaderBuilt]
    ) -> Iterator[DatasetAttribute]:
        samples = samples_of([c.node for c in self.lineage(instance.cls)])
        attributes = self.heap.of(instance.site)
        for name, value in attributes.items():
            if not self._holds_samples(name, samples, attributes):
                continue
            judge = Kept(self._growth_of, records=name in samples.records)
            held = judge.held(value)
            node = self._stored_at(instance.site, name, value, judge)
            if held is None or node is None:
                continue
            yield DatasetAttribute(
                self.source,
                node,
                f"self.{name}",
                instance.cls.node.name,
                held.what,
                held.sure,
                held.table,
                tuple(loaders),
            )

    def _holds_samples(self, name: str, samples: Samples, attributes: dict[str, Value]) -> bool:
        if name in samples.direct:
            return True
        mapped = isinstance(attributes[name], Mapping)
        if name not in (samples.keyed | samples.by_field if mapped else samples.keyed):
            return False
        others = [attributes[other] for other in samples.direct if other in attributes]
        keyed = attributes[name]
        if isinstance(keyed, Mapping):
            return any(self._lists_keys(other, keyed) for other in others) or (
                _holds_lists(keyed)
                and not self._readers_of(keyed).isdisjoint(
                    reader for other in others for reader in self._readers_of(other)
                )
            )
        made = made_of(keyed)
        return made is not None and any(_comes_from(other, made.node) for other in others)

    def _lists_keys(self, value: Value, mapping: Mapping) -> bool:
        """Whether a list was made of a dictionary: ``sorted(table)``."""
        made = made_of(value)
        given = made.inputs if made is not None else ()
        growth = self._growth_of(value.site) if isinstance(value, Sequence) and value.site else None
        copied = growth.copied if growth is not None else ()
        return any(
            isinstance(one, Mapping) and one.site is mapping.site
            for whole in (*given, *copied)
            for one in (whole, *((made_of(whole) or NOTHING).inputs))
        )

    def _readers_of(self, value: Value) -> set[ast.AST]:
        """The calls that read the files which the entries of a collection come from."""
        pending, found = [value], set[ast.AST]()
        for _ in range(_MOST_VALUES):
            if not pending:
                break
            one = pending.pop()
            if isinstance(one, (Sequence, Mapping)) and one.site is not None:
                growth = self._growth_of(one.site)
                if growth is not None:
                    pending += [v for loop in growth.loops.values() if (v := loop.iterates)]
                    pending += growth.copied
            made = made_of(one)
            if made is not None:
                pending += made.inputs[:1]
                if made.name in READERS:
                    found.add(made.node)
        return found

    def _stored_at(self, site: Site, name: str, value: Value, judge: Kept) -> ast.Attribute | None:
        """Where the attribute gets what it keeps, or the list that will hold it."""
        stores = self._stores.get((site, name), [])
        own = {one.site for one in alternatives(value) if isinstance(one, (Sequence, Mapping))}
        for node, stored in stores:
            if judge.held(stored) is not None:
                return node
            for one in alternatives(stored):
                if isinstance(one, (Sequence, Mapping)) and one.site in own:
                    return node
        return None


def _given(callee: Object, name: str) -> Value:
    given = callee.fact("0")
    return callee.fact(name) if isinstance(given, Absent) else given


def _holds_lists(mapping: Mapping) -> bool:
    """Whether a dictionary groups entries by something: each of its values is a list."""
    held = alternatives(mapping.get(""))
    return all(isinstance(one, Sequence) and one.kind == "list" for one in held)


def _joined(one: DatasetAttribute, other: DatasetAttribute) -> DatasetAttribute:
    return DatasetAttribute(
        one.source,
        one.node,
        one.name,
        one.cls,
        one.what,
        one.sure or other.sure,
        one.table,
        (*one.loaders, *other.loaders),
    )


def _comes_from(value: Value, node: ast.AST, depth: int = 0) -> bool:
    """Whether the operation at ``node`` is among those that made ``value``."""
    if depth > 6:
        return False
    for one in alternatives(value):
        if isinstance(one, Sequence) and one.items is None and one.kind == "list":
            made = made_of(one.element)
        else:
            made = made_of(one)
        if made is not None and (
            made.node is node or any(_comes_from(v, node, depth + 1) for v in made.inputs)
        ):
            return True
    return False


Datasets.FUNCTIONS["torch.utils.data.random_split"] = Datasets._random_split
for _module in ("torchvision.transforms", "torchvision.transforms.v2"):
    Datasets.METHODS[f"{_module}.Compose", "__call__"] = Datasets._composed
    Datasets.METHODS[f"{_module}.Lambda", "__call__"] = Datasets._by_function
