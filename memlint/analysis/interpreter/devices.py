"""Where things live: loaders whose batches move, models that are placed, and their precision."""

from __future__ import annotations

import ast

from memlint.analysis import knowledge
from memlint.analysis.axes import OPAQUE
from memlint.analysis.events import Transfer
from memlint.analysis.interpreter.calls import facts_of
from memlint.analysis.interpreter.expressions import is_nothing
from memlint.analysis.interpreter.machine import UNKNOWN, name_of, text_of
from memlint.analysis.interpreter.models import PRECISE, Models
from memlint.analysis.interpreter.records import LoaderRecord
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    Absent,
    Const,
    Function,
    Instance,
    Mapping,
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

LOADER = "torch.utils.data.DataLoader"
LOADER_PARAMETERS = (
    "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn",
    "pin_memory", "drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator",
)  # fmt: skip
MAYBE_CUDA = frozenset({"cuda", "cpu"})
LIGHTNING = ("lightning.", "pytorch_lightning.", "lightning_fabric.")


class Devices(Models):
    """Loaders, moves, frameworks that move things by themselves."""

    target_device: str
    cuda_evidence: bool

    # Loaders

    def _data_loader(self, args: Args, node: ast.AST) -> Value:
        return self.loader_at(self.sites.at(node), LOADER, args, node)

    def loader_at(self, site: Site, cls: str, args: Args, node: ast.AST) -> Value:
        """Record the construction of a loader whose object is made at ``site``."""
        if not isinstance(node, ast.Call):
            return UNKNOWN
        given = {**dict(zip(LOADER_PARAMETERS, args.positional, strict=False)), **args.keywords}
        record = self.loaders.get(site)
        if record is None:
            record = self.loaders[site] = LoaderRecord(node, cls)
        if not _stands_in(args, node):
            record.direct = False
            callee = self.evaluate(node.func)
            if isinstance(callee, Partial):
                record.partial = callee.node
        record.made_with(given, open=args.open or "**" in given)
        return Object(LOADER, site, tuple(given.items()))

    def note_construction(
        self, instance: Instance, library: list[str], args: Args, node: ast.AST
    ) -> None:
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
        return frozenset(found)

    def loader_tags(self, args: Args) -> frozenset[Site]:
        """The loaders that a call's arguments are, or hold batches of."""
        batches = (loaders_of(v) for v in (*args.positional, *args.keywords.values()))
        return self.loader_objects(args).union(*batches)

    def batch_of(self, record: LoaderRecord) -> Value:
        """What the loader's dataset and collate function yield."""
        dataset = record.arguments.get("dataset", UNKNOWN)
        item = join(self._item_of_dataset(one) for one in alternatives(dataset))
        collate = record.arguments.get("collate_fn", Absent())
        return join(self._collated(item, one, record.node) for one in alternatives(collate))

    def _collated(self, item: Value, collate: Value, node: ast.Call) -> Value:
        if is_nothing(collate) or collate == Ref("torch.utils.data.default_collate"):
            # Numbers and NumPy arrays become tensors; what is a tensor stays where it is.
            devices = frozenset().union(*(devices_of(leaf) for leaf in leaves(item)))
            if any(isinstance(leaf, Unknown) for leaf in leaves(item)):
                return Unknown(devices=devices)
            return Tensor("torch", OPAQUE, devices=devices)
        if isinstance(collate, (Function, Partial, Instance)):
            return self.call(collate, Args((Sequence("list", None, item),), {}, False), node)
        return UNKNOWN

    def _item_of_dataset(self, dataset: Value) -> Value:
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
            self.record_transfer(value, devices, node)
        return devices

    def call_unknown_method(self, receiver: Unknown, name: str, args: Args, node: ast.AST) -> Value:
        if name == "copy_" and "cuda" in receiver.devices:
            self.record_transfer(args.get("", 0), receiver.devices, node)
        if name in ("prepare", "setup_dataloaders", "fit"):
            prepared = self._handed_to_framework(receiver, name, args, node)
            if prepared is not None:
                return prepared
        return super().call_unknown_method(receiver, name, args, node)

    def call_array_method(self, receiver: Tensor, name: str, args: Args, node: ast.AST) -> Value:
        if name == "copy_" and "cuda" in receiver.devices:
            self.record_transfer(args.get("", 0), receiver.devices, node)
        return super().call_array_method(receiver, name, args, node)

    def _handed_to_framework(
        self, receiver: Unknown, name: str, args: Args, node: ast.AST
    ) -> Value | None:
        return None

    def note_unseen_mover(self, callee: Value, args: Args, node: ast.AST) -> None:
        """``move_to_device(batch, device)``: a call nobody can see into, named for what it does."""
        last = self.callee_text(callee, node).rpartition(".")[2].lower()
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

    def callee_text(self, callee: Value, node: ast.AST) -> str:
        if isinstance(node, ast.Call):
            return text_of(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else ""
        return name_of(callee)

    # Frameworks that move batches and models by themselves

    def _accelerator(self, args: Args, node: ast.AST) -> Value:
        return Object("accelerate.Accelerator", self.sites.at(node), facts_of(args))

    def _accelerator_device(self, made: Object, node: ast.AST) -> Value:
        cpu = made.fact("cpu")
        if isinstance(cpu, Const) and cpu.value is True:
            return Object("torch.device", self.sites.at(node), (("0", Const("cpu")),))
        both = Sequence("tuple", (Const("cuda"), Const("cpu")))
        return Object("torch.device", self.sites.at(node), (("0", join(both.items or ())),))

    def _prepare(self, made: Object, args: Args, node: ast.AST) -> Value:
        """``accelerator.prepare(model, optimizer, loader)`` gives back what it is given."""
        cpu = made.fact("cpu")
        on_cpu = isinstance(cpu, Const) and cpu.value is True
        precision = made.fact("mixed_precision")
        half = [v for v in alternatives(precision) if isinstance(v, Const) and v.value in PRECISE]
        for value in (*args.positional, *args.keywords.values()):
            for one in alternatives(value):
                if on_cpu:
                    continue
                if (
                    isinstance(one, (Object, Instance))
                    and one.site in self.loaders
                    and (half or self.cuda_evidence)
                ):
                    transfer = Transfer(node, text_of(node), frozenset({"cuda"}))
                    self.loaders[one.site].add_transfer(transfer)
                if self.is_module(one):
                    record = self.model(one)
                    record.move(node, text_of(node), MAYBE_CUDA)
                    record.note("calls", node, "prepare")
                    if half:
                        record.note("precisions", node, "mixed_precision")
        values = args.positional
        return values[0] if len(values) == 1 else Sequence("tuple", values)

    def _lightning_trainer(self, args: Args, node: ast.AST) -> Value:
        return Object("lightning.Trainer", self.sites.at(node), facts_of(args))

    def _fit(self, made: Object, args: Args, node: ast.AST) -> Value:
        """``Trainer(accelerator="gpu", precision="16-mixed").fit(model, loaders)``."""
        accelerator = made.fact("accelerator")
        gpus = made.fact("gpus")
        on_gpu = any(
            isinstance(v, Const) and v.value in ("gpu", "cuda") for v in alternatives(accelerator)
        ) or any(isinstance(v, Const) and bool(v.value) for v in alternatives(gpus))
        precise = [
            v
            for v in alternatives(made.fact("precision"))
            if isinstance(v, Const) and str(v.value).partition("-")[0] in ("16", "bf16")
        ]
        if not on_gpu:
            return UNKNOWN
        for value in (*args.positional, *args.keywords.values()):
            for part in alternatives(value):
                self._fitted(part, bool(precise), node)
        return UNKNOWN

    def _fitted(self, part: Value, precise: bool, node: ast.AST) -> None:
        if isinstance(part, Sequence):
            for item in part.items or (part.element,):
                for one in alternatives(item):
                    self._fitted(one, precise, node)
        if isinstance(part, (Object, Instance)) and part.site in self.loaders:
            transfer = Transfer(node, text_of(node), frozenset({"cuda"}))
            self.loaders[part.site].add_transfer(transfer)
        if not isinstance(part, Instance):
            return
        for name in ("train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader"):
            method = self.class_attribute(part.cls, name)
            if isinstance(method, Function):
                bound = Function(method.node, method.scope, part, method.name)
                made = self.call_function(bound, Args((), {}, False), node)
                self._fitted_loader(made, node)
        if self.is_module(part):
            record = self.model(part)
            record.move(node, text_of(node), frozenset({"cuda"}))
            record.note("calls", node, "fit")
            if precise:
                record.note("precisions", node, "precision")

    def _fitted_loader(self, made: Value, node: ast.AST) -> None:
        for one in alternatives(made):
            parts = one.items or (one.element,) if isinstance(one, Sequence) else (one,)
            if isinstance(one, Mapping):
                parts = tuple(v for _, v in one.items)
            for part in parts:
                if isinstance(part, (Object, Instance)) and part.site in self.loaders:
                    transfer = Transfer(node, text_of(node), frozenset({"cuda"}))
                    self.loaders[part.site].add_transfer(transfer)

    def special_call(self, name: str, args: Args, node: ast.AST) -> Value | None:
        if name.startswith(LIGHTNING) and name.endswith(".Trainer"):
            return self._lightning_trainer(args, node)
        return super().special_call(name, args, node)

    def _loader_attribute(self, made: Object, node: ast.AST) -> Value | None:
        name = node.attr if isinstance(node, ast.Attribute) else ""
        return made.fact(name) if name in LOADER_PARAMETERS else UNKNOWN


def _stands_in(args: Args, node: ast.Call) -> bool:
    """Whether all of ``args`` are written in the call itself."""
    return len(args.positional) == len(node.args) and len(args.keywords) == len(node.keywords)


def _device_like(value: Value) -> bool:
    return any(
        isinstance(one, (Unknown, Object))
        or (isinstance(one, Const) and isinstance(one.value, str))
        for one in alternatives(value)
    )


Devices.FUNCTIONS[LOADER] = Devices._data_loader
Devices.FUNCTIONS["accelerate.Accelerator"] = Devices._accelerator
Devices.METHODS[("accelerate.Accelerator", ".device")] = Devices._accelerator_device
Devices.METHODS[("accelerate.Accelerator", "prepare")] = Devices._prepare
Devices.METHODS[("lightning.Trainer", "fit")] = Devices._fit
Devices.METHODS[("lightning.Trainer", "test")] = Devices._fit
Devices.METHODS[("lightning.Trainer", "validate")] = Devices._fit
Devices.METHODS[("lightning.Trainer", "predict")] = Devices._fit
