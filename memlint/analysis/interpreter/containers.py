"""Python's containers: lists and dictionaries, and what is made of them."""

from __future__ import annotations

import ast

from memlint.analysis.interpreter.calls import Handler, facts_of
from memlint.analysis.interpreter.loops import Loops
from memlint.analysis.interpreter.machine import UNKNOWN
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    Absent,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Site,
    Unknown,
    Value,
    alternatives,
    join,
    loaders_of,
)

PASS_THROUGH = (
    "builtins.iter",
    "builtins.reversed",
    "copy.copy",
    "copy.deepcopy",
    "itertools.cycle",
    "itertools.islice",
    "tqdm.tqdm",
    "tqdm.auto.tqdm",
    "tqdm.notebook.tqdm",
    "tqdm.rich.tqdm",
    "rich.progress.track",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    "torch.nn.utils.spectral_norm",
    "torch.nn.utils.weight_norm",
    "torch.nn.utils.remove_spectral_norm",
    "torch.nn.utils.remove_weight_norm",
    "torch.nn.utils.parametrizations.spectral_norm",
    "torch.nn.utils.parametrizations.weight_norm",
    "torch.nn.utils.parametrizations.orthogonal",
)
LISTS = ("builtins.list", "builtins.tuple", "builtins.sorted")


class Containers(Loops):
    """Lists and dictionaries."""

    def call_list_method(self, receiver: Sequence, name: str, args: Args, node: ast.AST) -> Value:
        first = args.get("", 0)
        if receiver.site is not None and name in ("append", "add", "insert", "extend"):
            added = args.get("", 1) if name == "insert" else first
            self.replace_object(receiver.site, self._grown(receiver, name, added))
            return Const(None)
        if name in ("pop", "popleft"):
            return self.element(receiver)
        if name == "copy":
            return Sequence(receiver.kind, receiver.items, receiver.element, self.sites.at(node))
        return UNKNOWN

    def _grown(self, receiver: Sequence, name: str, added: Value) -> Sequence:
        if name == "extend":
            if (
                isinstance(added, Sequence)
                and added.items is not None
                and receiver.items is not None
            ):
                return Sequence(receiver.kind, receiver.items + added.items, UNKNOWN, receiver.site)
            added = self.element(added)
        in_loop = bool(self.frame.loops)
        if receiver.items is not None and name == "append" and not in_loop:
            return Sequence(receiver.kind, (*receiver.items, added), UNKNOWN, receiver.site)
        known = list(receiver.items) if receiver.items is not None else [receiver.element]
        return Sequence(receiver.kind, None, join([*known, added]), receiver.site)

    def call_dict_method(self, receiver: Mapping, name: str, args: Args, node: ast.AST) -> Value:
        first = args.get("", 0)
        key = first.value if isinstance(first, Const) and isinstance(first.value, str) else None
        match name:
            case "update" | "setdefault" if receiver.site is not None:
                self.replace_object(receiver.site, self._updated(receiver, name, args, key))
                return args.get("", 1) if name == "setdefault" else Const(None)
            case "get" | "pop":
                found = receiver.get(key) if key is not None else UNKNOWN
                if name == "pop" and key is not None and receiver.site is not None:
                    rest = tuple(i for i in receiver.items if i[0] != key)
                    popped = Mapping(rest, receiver.complete, receiver.site)
                    self.replace_object(receiver.site, popped)
                if isinstance(found, Absent):
                    default = args.get("", 1)
                    return Const(None) if isinstance(default, Absent) else default
                return found
            case "copy":
                return Mapping(receiver.items, receiver.complete, self.sites.at(node))
            case "items":
                pairs = [Sequence("tuple", (Const(k), v)) for k, v in receiver.items]
                return Sequence("iterator", None, join(pairs) if pairs else UNKNOWN)
            case "values":
                values = tuple(v for _, v in receiver.items)
                if receiver.complete:
                    return Sequence("iterator", values)
                return Sequence("iterator", None, join(values) if values else UNKNOWN)
        return UNKNOWN

    def _updated(self, receiver: Mapping, name: str, args: Args, key: str | None) -> Mapping:
        items = dict(receiver.items)
        complete = receiver.complete
        if name == "setdefault":
            if key is None:
                items[""] = join([*(v for k, v in receiver.items if not k), args.get("", 1)])
                return Mapping(tuple(items.items()), False, receiver.site)
            old = receiver.get(key)
            default = args.get("", 1)
            kept = [v for v in alternatives(old) if not isinstance(v, Absent)]
            items[key] = join([*kept, default]) if Absent() in alternatives(old) else old
            return Mapping(tuple(items.items()), complete, receiver.site)
        for one in alternatives(args.get("", 0)) if args.positional else ():
            if isinstance(one, Mapping):
                items.update(one.items)
                complete = complete and one.complete
            else:
                complete = False
        items.update(args.keywords)
        return Mapping(tuple(items.items()), complete and not args.open, receiver.site)

    # Containers of other containers

    def _pass_through(self, args: Args, node: ast.AST) -> Value | None:
        first = args.get("", 0)
        if isinstance(first, Absent):
            first = next(iter(args.keywords.values()), Absent())
        if isinstance(first, Absent):
            return Sequence("list", (), UNKNOWN, self.sites.at(node))
        if isinstance(first, Object) and first.cls == "builtins.map":
            return Sequence("list", None, self.element(first), self.sites.at(node))
        if isinstance(first, (Sequence, Object, Instance)) or loaders_of(first):
            if isinstance(first, Sequence) and first.site is not None:
                copied = Sequence(first.kind, first.items, first.element, self.sites.at(node))
                self.note_copied(self.sites.at(node), first)
                return copied
            return first
        return first if isinstance(first, Unknown) else None

    def note_copied(self, site: Site, source: Value) -> None:
        """The collection that is made at ``site`` has an entry for each of those of ``source``."""
        raise NotImplementedError

    def _as_list(self, name: str, args: Args, node: ast.AST) -> Value | None:
        """``list``, ``tuple`` or ``sorted`` of something."""
        made = self._pass_through(args, node)
        if not isinstance(made, Sequence):
            return made
        kind = "tuple" if name == "builtins.tuple" else "list"
        site = self.sites.at(node)
        self.note_copied(site, args.get("", 0))
        return Sequence(kind, made.items, made.element, site)

    def _zip(self, args: Args, node: ast.AST) -> Value:
        """``zip(*rows)`` gives columns, each as long as there are rows."""
        rows = self.spread.get(id(node))
        row = args.get("", 0)
        if rows is None or len(args.positional) != 1 or loaders_of(row):
            return Object("builtins.zip", self.sites.at(node), facts_of(args))
        site = self.sites.at(node, "columns")
        if isinstance(row, Sequence) and row.items is not None:
            self.note_copied(site, rows)
            columns = (Sequence("tuple", None, item, site) for item in row.items)
            return Sequence("iterator", tuple(columns))
        if isinstance(row, (Sequence, Unknown)):
            self.note_copied(site, rows)
            column = Sequence("tuple", None, self.element(row), site)
            return Sequence("iterator", None, column)
        return Object("builtins.zip", self.sites.at(node), facts_of(args))

    def _chain(self, args: Args, node: ast.AST) -> Value:
        if len(args.positional) == 1 and not args.open:
            found = self._pass_through(args, node)
            return UNKNOWN if found is None else found
        element = join([self.element(one) for one in args.positional] or [UNKNOWN])
        return Sequence("iterator", None, element)

    def _dict_function(self, args: Args, node: ast.AST) -> Value:
        site = self.sites.at(node)
        first = args.get("", 0)
        pairs = isinstance(first, Sequence) or (
            isinstance(first, Object) and first.cls == "builtins.zip"
        )
        if pairs and not args.keywords:
            self.note_copied(site, first)
            pair = self.element(first)
            if isinstance(pair, Sequence) and pair.items is not None and len(pair.items) == 2:
                return Mapping((("", pair.items[1]),), False, site)
            return Mapping((("", self.element(pair)),), False, site)
        return self._updated(Mapping((), True, site), "update", args, None)


def _listed(name: str) -> Handler:
    return lambda self, args, node: self._as_list(name, args, node)


Containers.FUNCTIONS.update(dict.fromkeys(PASS_THROUGH, Containers._pass_through))
Containers.FUNCTIONS.update({name: _listed(name) for name in LISTS})
Containers.FUNCTIONS.update(
    {
        "itertools.chain": Containers._chain,
        "builtins.zip": Containers._zip,
        "builtins.dict": Containers._dict_function,
    }
)
