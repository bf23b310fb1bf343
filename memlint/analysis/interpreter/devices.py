"""Where things live: loaders whose batches move, models that are placed, and their precision."""

from __future__ import annotations

import ast
from dataclasses import replace

from memlint.analysis import knowledge
from memlint.analysis.axes import OPAQUE
from memlint.analysis.blocking import waits
from memlint.analysis.events import Transfer, Use
from memlint.analysis.interpreter.access import is_nothing
from memlint.analysis.interpreter.calls import facts_of
from memlint.analysis.interpreter.machine import UNKNOWN, name_of, text_of
from memlint.analysis.interpreter.models import HALF, Models
from memlint.analysis.interpreter.records import LoaderRecord
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    WITH_CUDA,
    WRAPPER,
    Absent,
    Class,
    Const,
    Function,
    Instance,
    Linear,
    Object,
    Partial,
    Ref,
    Sequence,
    Site,
    Tensor,
    Unknown,
    Value,
    alternatives,
    devices_of,
    join,
    leaves,
    loaders_of,
)
from memlint.analysis.walking import walk

LOADER = "torch.utils.data.DataLoader"
LOADER_PARAMETERS = (
    "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn",
    "pin_memory", "drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator",
)  # fmt: skip


class Devices(Models):
    """Loaders, devices and moves."""

    target_device: str
    cuda_evidence: bool
    default_devices: frozenset[str] = frozenset()
    default_precision: Use | None = None
    # Conversions to channels_last of objects that are not known.
    stray_formats: list[Use]
    # Devices stored as attributes of objects that are not known, by the last two names.
    options_by_name: dict[tuple[str, str], Value]

    # Loaders

    def _data_loader(self, args: Args, node: ast.AST) -> Value:
        return self.loader_at(self.sites.at(node), LOADER, args, node)

    def loader_at(self, site: Site, cls: str, args: Args, node: ast.AST) -> Value:
        """Record the construction of a loader whose object is made at ``site``."""
        if not isinstance(node, ast.Call):
            return UNKNOWN
        given = {**dict(zip(LOADER_PARAMETERS, args.positional, strict=False)), **args.keywords}
        if any(frame.without_cuda for frame in self.stack):
            # There is nothing to pin for here.
            given["pin_memory"] = UNKNOWN
        record = self.loaders.get(site)
        if record is None:
            record = self.loaders[site] = LoaderRecord(node, cls)
        if not _stands_in(args, node):
            record.direct = False
            callee = self.evaluate(node.func)
            if isinstance(callee, Partial):
                record.partial = callee.node
        if any(map(_pins, alternatives(given.get("collate_fn", Absent())))):
            given["pin_memory"] = UNKNOWN
        record.made_with(given, open=args.open or "**" in given)
        return Object(LOADER, site, tuple(given.items()))

    def note_construction(
        self, instance: Instance, library: list[str], args: Args, node: ast.AST
    ) -> None:
        super().note_construction(instance, library, args, node)
        if LOADER in library and isinstance(instance.site.node, ast.Call):
            self.loader_at(instance.site, instance.cls.node.name, args, node)
        if "threading.Thread" in library or "multiprocessing.Process" in library:
            self.heap.put(
                instance, "<target>", join(args.keywords.values() or (UNKNOWN,)), strong=True
            )

    def loader_objects(self, args: Args) -> frozenset[Site]:
        """The loaders that are handed over by a call, as such."""
        found: set[Site] = set()
        for value in (*args.positional, *args.keywords.values()):
            for one in alternatives(value):
                if isinstance(one, (Object, Instance)) and one.site in self.loaders:
                    found.add(one.site)
                elif isinstance(one, Unknown) and one.origin == WRAPPER:
                    found |= one.loaders
        return frozenset(found)

    def batch_of(self, record: LoaderRecord) -> Value:
        """What the loader's dataset and collate function yield."""
        dataset = record.arguments.get("dataset", UNKNOWN)
        item = join(self._item_of_dataset(one) for one in alternatives(dataset))
        collate = record.arguments.get("collate_fn", Absent())
        return join(self._collated(item, one, record.node) for one in alternatives(collate))

    def _collated(self, item: Value, collate: Value, node: ast.AST) -> Value:
        if is_nothing(collate) or collate == Ref("torch.utils.data.default_collate"):
            found = list(leaves(item))
            if found and all(isinstance(leaf, (Const, Linear)) for leaf in found):
                return item
            # NumPy arrays become tensors; what is a tensor stays where it is.
            devices = frozenset().union(*(devices_of(leaf) for leaf in found))
            if any(isinstance(leaf, Unknown) for leaf in found):
                return Unknown(devices=devices)
            return Tensor("torch", OPAQUE, devices=devices)
        if isinstance(collate, Ref) and collate.name.startswith("numpy."):
            return Tensor("numpy", OPAQUE)
        if isinstance(collate, Class):
            node = collate.node
        if isinstance(collate, (Class, Function, Partial, Instance)):
            return self.call(collate, Args((Sequence("list", None, item),), {}, False), node)
        return UNKNOWN

    def _item_of_dataset(self, dataset: Value) -> Value:
        if isinstance(dataset, Object) and dataset.cls == "builtins.range":
            return Const(0)
        if isinstance(dataset, Instance):
            return self.element(dataset)
        if isinstance(dataset, Object) and dataset.cls.endswith(
            ("TensorDataset", "Subset", "ConcatDataset")
        ):
            parts = tuple(
                v for k, v in dataset.facts if k.isdigit() or k in ("dataset", "datasets")
            )
            items = tuple(p if isinstance(p, Tensor) else self._item_of_dataset(p) for p in parts)
            return Sequence("tuple", items)
        if isinstance(dataset, Tensor):
            return dataset
        if isinstance(dataset, Sequence):
            return self.element(dataset)
        if dataset and devices_of(dataset):
            return Unknown(devices=devices_of(dataset))
        return UNKNOWN

    def store_on_object(self, base: Object | Instance, name: str, value: Value) -> None:
        """``loader.pin_memory = True``: options of a loader may be set until it is used."""
        record = self.loaders.get(base.site)
        if record is not None and name in LOADER_PARAMETERS:
            old = record.arguments.get(name, Absent())
            record.arguments[name] = join((old, value))
        super().store_on_object(base, name, value)

    def store_on_unknown(self, target: ast.Attribute, value: Value) -> None:
        """``args.device = device``: options go by one name wherever they are handed to."""
        if knowledge.device_types(value):
            key = _last_names(target)
            self.options_by_name[key] = join((self.options_by_name.get(key, value), value))

    def stored_on_unknown(self, node: ast.AST) -> Value | None:
        return self.options_by_name.get(_last_names(node)) if self.options_by_name else None

    # Devices

    def _variable(self, args: Args, node: ast.AST) -> Value | None:
        """Today's ``Variable(x)`` is ``x``."""
        first = args.get("data", 0)
        leaf = not isinstance(args.get("requires_grad", 1), Absent)
        return first if isinstance(first, (Unknown, Tensor)) and not leaf else None

    def _device(self, args: Args, node: ast.AST) -> Value:
        return Object("torch.device", self.sites.at(node), facts_of(args))

    def _current_accelerator(self, args: Args, node: ast.AST) -> Value:
        """``torch.accelerator.current_accelerator()``: that of CUDA, on most machines."""
        kinds = join((Const("cuda"), Const("mps")))
        return Object("torch.device", self.sites.at(node), (("0", kinds),))

    def _device_number(self, args: Args, node: ast.AST) -> Value:
        """The number of a process or of a device."""
        return Unknown("int")

    def _device_type(self, made: Object, node: ast.AST) -> Value:
        known = sorted(knowledge.device_types(made))
        return join(Const(kind) for kind in known) if known else UNKNOWN

    def _is_available(self, args: Args, node: ast.AST) -> Value:
        return Unknown(WITH_CUDA)

    def _set_device(self, args: Args, node: ast.AST) -> Value:
        """``torch.cuda.set_device(rank)``: ``rank`` is the number of a CUDA device."""
        given = args.get("device", 0)
        shown = node.args[0] if isinstance(node, ast.Call) and node.args else None
        if isinstance(given, Unknown) and not given.devices and isinstance(shown, ast.Name):
            self.bind(shown.id, replace(given, devices=frozenset({"cuda"})))
        return Const(None)

    def _set_default_dtype(self, args: Args, node: ast.AST) -> Value:
        half = knowledge.dtype_of(args.get("d", 0)) in HALF
        self.default_precision = Use(node, "default dtype") if half else None
        return Const(None)

    def _set_default_device(self, args: Args, node: ast.AST) -> Value:
        self.default_devices = self.device_types(args.get("device", 0))
        return Const(None)

    def note_birth(self, made: Value, node: ast.AST) -> None:
        inside = any(frame.name.endswith(".__init__") for frame in self.stack)
        if inside or not self.is_module(made):
            return
        devices = self.default_devices
        for context in self.frame.contexts:
            if isinstance(context, Object) and context.cls == "torch.device":
                devices = knowledge.device_types(context)
        if devices:
            self.model(made).move(node, text_of(node), devices)
        if self.default_precision is not None:
            use = self.default_precision
            self.model(made).note("precisions", use.node, use.detail)

    # Moves

    def device_types(self, value: Value) -> frozenset[str]:
        found = knowledge.device_types(value)
        if not found:
            for one in alternatives(value):
                if isinstance(one, (Tensor, Unknown)):
                    found |= one.devices
        if not found and self.target_device == "cuda" and isinstance(value, Unknown):
            return frozenset({"cuda"})
        return found

    def destination(self, name: str, args: Args) -> frozenset[str]:
        """The devices that ``x.<name>(args)`` moves to; empty where it moves to none known."""
        if name == "cuda":
            return frozenset({"cuda"})
        if name == "type":
            text = str(getattr(args.get("dtype", 0), "value", name_of(args.get("dtype", 0))))
            names = [name_of(v) or text for v in alternatives(args.get("dtype", 0))]
            kinds = {"cuda" for n in names if ".cuda." in n}
            return frozenset(kinds)
        found: frozenset[str] = frozenset()
        for value in (args.get("device", 0), args.get("other", 0)):
            if not isinstance(value, Absent):
                found |= self.device_types(value)
        return found

    def note_moves(self, value: Value, name: str, args: Args, node: ast.AST) -> frozenset[str]:
        """A tensor or an unknown object is moved: a transfer if it is a batch."""
        devices = self.destination(name, args)
        if devices and loaders_of(value):
            self.record_transfer(value, devices, node, waits=waits(name, args))
        return devices

    def call_unknown_method(self, receiver: Unknown, name: str, args: Args, node: ast.AST) -> Value:
        if name == "copy_" and "cuda" in receiver.devices:
            blocks = waits(name, args)
            self.record_transfer(args.get("", 0), receiver.devices, node, waits=blocks)
        if "memory_format" in args.keywords and self.may_be_channels_last(args):
            self.stray_formats.append(Use(node, "unknown object"))
            converted = self._in_format(receiver, name, args, node)
            if converted is not None:
                return converted
        return super().call_unknown_method(receiver, name, args, node)

    def _in_format(self, receiver: Unknown, name: str, args: Args, node: ast.AST) -> Value | None:
        """``x.to(device, memory_format=torch.channels_last)`` shows ``x`` to be an image."""
        if name not in ("to", "contiguous", "clone"):
            return None
        if name == "to":
            self.note_moves(receiver, name, args, node)
        image = self.assumed_tensor(receiver)
        return knowledge.call_method(image, name, args, node, self.sites.at(node))

    def call_array_method(self, receiver: Tensor, name: str, args: Args, node: ast.AST) -> Value:
        if name == "copy_" and "cuda" in receiver.devices:
            blocks = waits(name, args)
            self.record_transfer(args.get("", 0), receiver.devices, node, waits=blocks)
        return super().call_array_method(receiver, name, args, node)

    def note_unseen_mover(self, callee: Value, args: Args, node: ast.AST) -> None:
        """``move_to_device(batch, device)``: a call nobody can see into, named for what it does."""
        last = _called_name(callee, node).lower()
        if not any(
            word in last
            for word in (
                "to_device",
                "to_cuda",
                "to_gpu",
                "cuda",
                "move_",
                "send_to",
                "prefetch",
                "to_dev",
            )
        ):
            return
        devices: frozenset[str] = frozenset()
        batches: list[Value] = []
        for value in (*args.positional, *args.keywords.values()):
            if loaders_of(value):
                batches.append(value)
            elif not isinstance(value, (Const, Absent)) or isinstance(value, Const):
                devices |= self.device_types(value) if _device_like(value) else frozenset()
        if "cuda" in last or "gpu" in last:
            devices |= {"cuda"}
        loaders = self.loader_objects(args)
        if not devices:
            return
        for batch in batches:
            self.record_transfer(batch, devices, node)
        for site in loaders:
            self.loaders[site].add_transfer(Transfer(node, text_of(node), devices))

    def _loader_attribute(self, made: Object, node: ast.AST) -> Value | None:
        name = node.attr if isinstance(node, ast.Attribute) else ""
        return made.fact(name) if name in LOADER_PARAMETERS else UNKNOWN


def _called_name(callee: Value, node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
        case ast.Call():
            return ""
    return name_of(callee).rpartition(".")[2]


def _pins(collate: Value) -> bool:
    """Whether a collate function pins what it makes."""
    return isinstance(collate, Function) and any(
        isinstance(node, ast.Attribute) and node.attr == "pin_memory" for node in walk(collate.node)
    )


def _stands_in(args: Args, node: ast.Call) -> bool:
    """Whether all of ``args`` are written in the call itself."""
    return len(args.positional) == len(node.args) and len(args.keywords) == len(node.keywords)


def _last_names(node: ast.AST) -> tuple[str, str]:
    match node:
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name):
            return owner, name
    return "", ""


def _device_like(value: Value) -> bool:
    return any(
        isinstance(one, (Unknown, Object))
        or (isinstance(one, Const) and isinstance(one.value, str))
        for one in alternatives(value)
    )


Devices.FUNCTIONS[LOADER] = Devices._data_loader
Devices.FUNCTIONS["torch.autograd.Variable"] = Devices._variable
Devices.FUNCTIONS["torch.device"] = Devices._device
Devices.FUNCTIONS["torch.cuda.device"] = Devices._device
Devices.FUNCTIONS["torch.set_default_dtype"] = Devices._set_default_dtype
Devices.FUNCTIONS["torch.set_default_device"] = Devices._set_default_device
Devices.FUNCTIONS["torch.cuda.is_available"] = Devices._is_available
Devices.FUNCTIONS["torch.accelerator.is_available"] = Devices._is_available
Devices.FUNCTIONS["torch.accelerator.current_accelerator"] = Devices._current_accelerator
for _name in (
    "torch.distributed.get_rank",
    "torch.cuda.current_device",
    "torch.accelerator.current_device_index",
):
    Devices.FUNCTIONS[_name] = Devices._device_number
Devices.FUNCTIONS["torch.cuda.set_device"] = Devices._set_device
Devices.METHODS[("torch.device", ".type")] = Devices._device_type
for _name in LOADER_PARAMETERS:
    Devices.METHODS[(LOADER, f".{_name}")] = Devices._loader_attribute
