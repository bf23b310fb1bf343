"""Frameworks that move batches and models by themselves, and options read from a command line."""

from __future__ import annotations

import ast

from memlint.analysis.events import Transfer
from memlint.analysis.interpreter.calls import facts_of
from memlint.analysis.interpreter.datasets import Datasets
from memlint.analysis.interpreter.machine import UNKNOWN, text_of
from memlint.analysis.interpreter.models import PRECISE
from memlint.analysis.knowledge import Args
from memlint.analysis.values import (
    Absent,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Site,
    Unknown,
    Value,
    alternatives,
    constants,
    join,
)

CUDA = frozenset({"cuda"})
MAYBE_CUDA = frozenset({"cuda", "cpu"})
LIGHTNING = ("lightning.", "pytorch_lightning.")
LOADER_HOOKS = ("train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader")
ACCELERATOR, TRAINER, FABRIC = "accelerate.Accelerator", "lightning.Trainer", "lightning.Fabric"
PARSER, NAMESPACE = "argparse.ArgumentParser", "argparse.Namespace"
FLAGS = {"store_true": Const(False), "store_false": Const(True)}


class Frameworks(Datasets):
    """Accelerate, Lightning and argparse."""

    # The options of each argument parser, with their defaults.
    options: dict[Site, dict[str, Value]]

    # Accelerate

    def _accelerator(self, args: Args, node: ast.AST) -> Value:
        return Object(ACCELERATOR, self.sites.at(node), facts_of(args))

    def _accelerator_device(self, made: Object, node: ast.AST) -> Value:
        kinds = ("cpu",) if made.fact("cpu") == Const(True) else ("cuda", "cpu")
        facts = (("0", join(Const(kind) for kind in kinds)),)
        return Object("torch.device", self.sites.at(node), facts)

    def _prepare(self, made: Object, args: Args, node: ast.AST) -> Value:
        """``accelerator.prepare(model, optimizer, loader)`` gives back what it is given."""
        if made.fact("device_placement") != Const(False):
            for one in _handed(args):
                if isinstance(one, (Object, Instance)) and one.site in self.loaders:
                    self.loaders[one.site].placed = True
        if made.fact("cpu") != Const(True):
            half = any(value in PRECISE for value in constants(made.fact("mixed_precision")))
            evident = half or self.cuda_evidence
            for one in _handed(args):
                self._takes(one, MAYBE_CUDA, half=half, node=node, batches=evident)
        values = args.positional
        return values[0] if len(values) == 1 else Sequence("tuple", values)

    def _takes(
        self,
        one: Value,
        devices: frozenset[str],
        *,
        half: bool,
        node: ast.AST,
        batches: bool = True,
    ) -> None:
        """A framework will move what it is given, and run it if it is a model."""
        if not isinstance(one, (Object, Instance)):
            return
        if one.site in self.loaders:
            if batches:
                self.loaders[one.site].add_transfer(Transfer(node, text_of(node), devices))
        elif self.is_module(one):
            record = self.model(one)
            record.move(node, text_of(node), devices)
            record.note("calls", node, "framework")
            if half:
                record.note("precisions", node, "framework")

    # Lightning

    def _trainer(self, args: Args, node: ast.AST) -> Value:
        return Object(TRAINER, self.sites.at(node), facts_of(args))

    def _fabric(self, args: Args, node: ast.AST) -> Value:
        return Object(FABRIC, self.sites.at(node), facts_of(args))

    def _fit(self, made: Object, args: Args, node: ast.AST) -> Value:
        """``Trainer(accelerator="gpu", precision="16-mixed").fit(model, loaders)``."""
        if _on_gpu(made):
            for one in _handed(args):
                self._fitted(one, half=_is_half(made), node=node)
        return UNKNOWN

    def _fitted(self, one: Value, *, half: bool, node: ast.AST) -> None:
        self._takes(one, CUDA, half=half, node=node)
        if not isinstance(one, Instance):
            return
        for name in LOADER_HOOKS:
            hook = self.class_attribute(one.cls, name)
            if isinstance(hook, Function):
                bound = Function(hook.node, hook.scope, one, hook.name)
                for loader in _opened(self.call_function(bound, Args(), node)):
                    self._takes(loader, CUDA, half=False, node=node)

    def _setup(self, made: Object, args: Args, node: ast.AST) -> Value:
        """``fabric.setup(model, optimizer)`` and ``fabric.setup_dataloaders(loader)``."""
        if _on_gpu(made):
            for one in _handed(args):
                self._takes(one, CUDA, half=_is_half(made), node=node)
        values = args.positional
        return values[0] if len(values) == 1 else Sequence("tuple", values)

    def special_call(self, name: str, args: Args, node: ast.AST) -> Value | None:
        if name.startswith(LIGHTNING):
            if name.endswith(".Trainer"):
                return self._trainer(args, node)
            if name.endswith(".Fabric"):
                return self._fabric(args, node)
        return super().special_call(name, args, node)

    # Command lines

    def _parser(self, args: Args, node: ast.AST) -> Value:
        site = self.sites.at(node)
        self.options.setdefault(site, {})
        return Object(PARSER, site)

    def _same_parser(self, made: Object, args: Args, node: ast.AST) -> Value:
        return made

    def _add_argument(self, made: Object, args: Args, node: ast.AST) -> Value:
        names = [n.value for n in args.positional if isinstance(n, Const)]
        texts = [n for n in names if isinstance(n, str)]
        dest = args.get("dest")
        if isinstance(dest, Const) and isinstance(dest.value, str):
            texts = [dest.value]
        if texts:
            long = next((text for text in texts if text.startswith("--")), texts[0])
            action = next(iter(constants(args.get("action"))), None)
            default = args.get("default")
            if isinstance(default, Absent):
                default = FLAGS.get(str(action), UNKNOWN)
            known = self.options.setdefault(made.site, {})
            known[long.lstrip("-").replace("-", "_")] = join((UNKNOWN, default))
        return UNKNOWN

    def _set_defaults(self, made: Object, args: Args, node: ast.AST) -> Value:
        known = self.options.setdefault(made.site, {})
        known.update((name, join((UNKNOWN, value))) for name, value in args.keywords.items())
        return Const(None)

    def _parse_args(self, made: Object, args: Args, node: ast.AST) -> Value:
        return Object(NAMESPACE, made.site)

    def _parse_known_args(self, made: Object, args: Args, node: ast.AST) -> Value:
        return Sequence("tuple", (Object(NAMESPACE, made.site), UNKNOWN))

    def object_attribute(self, base: Object, name: str, node: ast.AST) -> Value:
        if base.cls == NAMESPACE:
            return self.options.get(base.site, {}).get(name, UNKNOWN)
        return super().object_attribute(base, name, node)

    def store_on_object(self, base: Object | Instance, name: str, value: Value) -> None:
        if isinstance(base, Object) and base.cls == NAMESPACE:
            known = self.options.setdefault(base.site, {})
            sure = not self.frame.conditions and not self.frame.loops
            known[name] = value if sure else join((known.get(name, UNKNOWN), value))
        super().store_on_object(base, name, value)


def _opened(value: Value) -> list[Value]:
    """The values in a container, or the value itself."""
    found: list[Value] = []
    for one in alternatives(value):
        match one:
            case Sequence(items=items, element=element):
                for part in items if items is not None else (element,):
                    found.extend(_opened(part))
            case Mapping(items=pairs):
                for _, part in pairs:
                    found.extend(_opened(part))
            case _:
                found.append(one)
    return found


def _handed(args: Args) -> list[Value]:
    return [one for v in (*args.positional, *args.keywords.values()) for one in _opened(v)]


def _on_gpu(made: Object) -> bool:
    if any(value in ("gpu", "cuda") for value in constants(made.fact("accelerator"))):
        return True
    gpus = made.fact("gpus")
    return not isinstance(gpus, (Absent, Unknown)) and any(constants(gpus))


def _is_half(made: Object) -> bool:
    precision = made.fact("precision")
    return any(str(v).partition("-")[0] in ("16", "bf16") for v in constants(precision))


Frameworks.FUNCTIONS[ACCELERATOR] = Frameworks._accelerator
Frameworks.FUNCTIONS[PARSER] = Frameworks._parser
Frameworks.METHODS.update(
    {
        (ACCELERATOR, ".device"): Frameworks._accelerator_device,
        (ACCELERATOR, "prepare"): Frameworks._prepare,
        (ACCELERATOR, "prepare_model"): Frameworks._prepare,
        (ACCELERATOR, "prepare_data_loader"): Frameworks._prepare,
        (FABRIC, "setup"): Frameworks._setup,
        (FABRIC, "setup_module"): Frameworks._setup,
        (FABRIC, "setup_dataloaders"): Frameworks._setup,
        (PARSER, "add_argument"): Frameworks._add_argument,
        (PARSER, "set_defaults"): Frameworks._set_defaults,
        (PARSER, "parse_args"): Frameworks._parse_args,
        (PARSER, "parse_known_args"): Frameworks._parse_known_args,
    }
)
for _name in ("fit", "test", "validate", "predict"):
    Frameworks.METHODS[(TRAINER, _name)] = Frameworks._fit
for _name in (
    "add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser",
):  # fmt: skip
    Frameworks.METHODS[(PARSER, _name)] = Frameworks._same_parser
