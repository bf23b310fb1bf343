"""The whole program: module body first, then what it never calls, then what was learnt."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memlint.analysis.events import Event, LoaderBuilt, ModelPlaced, ProgramEnd, Use
from memlint.analysis.index import Index
from memlint.analysis.interpreter.copies import Copies
from memlint.analysis.interpreter.layers import Parts
from memlint.analysis.interpreter.machine import OutOfBudgetError, text_of
from memlint.analysis.interpreter.records import ModelRecord
from memlint.analysis.knowledge import Args
from memlint.analysis.values import Class, Function, Instance, Ref, Site, Value
from memlint.analysis.watched import HOST_COPIES, SWITCH
from memlint.source.model import Source
from memlint.source.project import NOTHING, Followed, Project, is_foreign, source_of

CUDA_WORDS = (".cuda", '"cuda', "'cuda")
FORMAT_WORDS = ("memory_format", "torch.channels_last", "import channels_last")
TRAINING_WORDS = ("backward(", "training_step", "optim.")


class Interpreter(Copies):
    """Reads one program and tells what it finds as events."""

    def __init__(
        self,
        source: Source,
        tree: ast.Module,
        target_device: str,
        index: Index | None = None,
        watched: frozenset[str] = frozenset(),
        project: Project | None = None,
        followed: Followed = NOTHING,
    ) -> None:
        super().__init__(source, tree)
        self.project, self.followed, self.origins = project, followed.names, followed.origins
        self.modules, self.paths, self.kept, self.imported = {}, {}, [], {}
        self.watched = watched
        self.follows_copies = HOST_COPIES in watched and bool(SWITCH.search(source.text))
        self.host_copies, self.leaving = {}, {}
        self.waiting, self.answered = set(), set()
        self._index = index
        self.target_device = target_device
        self.memo, self.followed_cost = {}, {}
        self.targets = {}
        self.bases = {}
        self.class_traits = {}
        self.members = {}
        self.owners = {}
        self.registered = set()
        self.star_imports = []
        self.class_prefix = ""
        self.suspended = []
        self.module_compiled = None
        self.joblib_kind = "process"
        self.shared = set()
        self.iterated = set()
        self.declared = {}
        self.pending = {}
        self.lock_calls = {}
        self.bound_names = {}
        self.light_functions = {}
        self.lane_accesses, self.tiled = {}, set()
        self.backends = []
        self.addresses = {}
        self.argument_types = {}
        self.operator_sources = []
        self.attribute_specs = {}
        self.forwards = {}
        self.yielding = {}
        self.outer_modes = {}
        self.object_modes = {}
        self.called_models = {}
        self.statement = ast.Pass()
        self.stray_formats = []
        self.options = {}
        self.options_by_name = {}
        self.imports_text = "\n".join((source.text, *followed.texts.values()))
        self.cuda_evidence = any(word in source.text for word in CUDA_WORDS)
        self._selves: dict[int, Instance] = {}
        self._after_init: dict[Site, dict[str, Value]] = {}

    def events_of_program(self) -> Iterator[Event]:
        """Everything that is found, in a fixed order."""
        try:
            self.execute_body(self.tree.body)
            self.tell_nests()
            self._grad_set_by_module = self.grad_set
            self._enter_uncalled()
            self._make_finals()
        except OutOfBudgetError:
            self.exhausted = True
        yield from self.events
        self.events = []
        yield from self.tell_calls()
        yield from self.tell_forwards()
        yield from self.tell_copies()
        yield from self.tell_launches()
        yield from self.tell_lanes()
        yield ProgramEnd(self.tree)

    exhausted: bool = False
    _grad_set_by_module: bool | None = True

    def _enter_uncalled(self) -> None:
        """Functions and methods that the program itself never calls, as others would."""
        entered: list[tuple[Function, set[tuple[Site, str]]]] = []
        for function, owner in self._worklist():
            if id(function.node) in self.entered or not self._is_candidate(function):
                continue
            receiver = self._self_of(owner, function) if owner is not None else None
            bound = Function(function.node, function.scope, receiver, function.name)
            self.heap.asked = set()
            self._enter(bound)
            entered.append((bound, self.heap.asked))
        for function, asked in entered:
            # What one method stores, the methods before it may read when they run again.
            receiver = function.bound
            if isinstance(receiver, Instance) and self._grew(receiver, asked):
                self._enter(function)

    def _is_candidate(self, function: Function) -> bool:
        """Whether a function is worth reading for its own sake."""
        if is_foreign(function.node):
            return False
        return self._index is None or self._index.wants(function.node)

    def _enter(self, function: Function) -> None:
        self.frame.live = True
        self.frame.loops = []
        self.frame.conditions = self.frame.without_cuda = self.frame.throttles = 0
        self.frame.varied = 0
        self.grad_set = self._grad_set_by_module
        self.run(function, Args(), entry=True)

    def _grew(self, instance: Instance, asked: set[tuple[Site, str]]) -> bool:
        """Whether an object has other attributes now than after its ``__init__``, among those
        that were ``asked`` for."""
        before, now = self._after_init[instance.site], self.heap.of(instance.site)
        return any(
            (instance.site, name) in asked and before.get(name) != value
            for name, value in now.items()
        ) or ((instance.site, "") in asked and before != now)

    def _worklist(self) -> Iterator[tuple[Function, Class | None]]:
        index = 0
        while index < len(self.functions):
            function, owner = self.functions[index]
            yield function, owner if isinstance(owner, Class) else None
            index += 1

    def _self_of(self, owner: Class, function: Function) -> Value | None:
        traits = set(self.trait_names(function))
        if "builtins.staticmethod" in traits:
            return None
        if "builtins.classmethod" in traits:
            return owner
        known = self._selves.get(id(owner.node))
        if known is None:
            known = Instance(owner, self.sites.at(owner.node))
            self._selves[id(owner.node)] = known
            init = self.class_attribute(owner, "__init__")
            if isinstance(init, Function):
                bound = Function(init.node, init.scope, known, f"{owner.node.name}.__init__")
                self._enter(bound)
            self._after_init[known.site] = dict(self.heap.of(known.site))
        return known

    def _make_finals(self) -> None:
        built: list[LoaderBuilt] = []
        for record in list(self.loaders.values()):
            batch = self.batch_of(record)
            loader = LoaderBuilt(
                source_of(record.node, self.source),
                record.node,
                self._assigned_to(record.node),
                record.cls,
                record.arguments,
                record.open,
                tuple(record.transfers.values()),
                batch,
                record.direct,
                record.partial,
                self._name_of_torch(),
                self.code_of_workers(record, batch),
            )
            built.append(loader)
            self.emit(loader)
        for kept in self.attributes_of_datasets(built):
            self.emit(kept)
        training = any(word in self.source.text for word in TRAINING_WORDS)
        for site in list(self.models):
            self._place(site, training)

    def _name_of_torch(self) -> str:
        variables = self.module_scope.vars
        return next((name for name, value in variables.items() if value == Ref("torch")), "")

    def _place(self, site: Site, training: bool) -> None:
        record = self.models[site]
        if not record.moves or not isinstance(site.node, ast.Call):
            return
        parts = self.parts_of(record.value)
        records = [record]
        if any("cuda" in move.devices for move in record.moves.values()):
            records += self._records_of_parts(site, parts)
        self.emit(
            ModelPlaced(
                next(iter(record.moves.values())).node,
                record.text or text_of(site.node.func),
                tuple(parts.convolutions),
                parts.complete,
                tuple(record.moves.values()),
                tuple(use for r in records for use in r.precisions.values()),
                (*(use for r in records for use in r.formats.values()), *self._stray()),
                tuple(use for r in records for use in r.compiles.values()),
                tuple(use for r in records for use in r.calls.values()),
                tuple(use for r in records for use in r.exports.values()),
                training,
                site,
                self.source,
                self._name_of_torch(),
            )
        )

    def _records_of_parts(self, site: Site, parts: Parts) -> list[ModelRecord]:
        """What was done to those parts of a model that hold convolutions."""
        known = [(self.models.get(s), v) for s, v in parts.sites if s is not site]
        told = [(r, v) for r, v in known if r is not None and r.tells_of_running]
        return [r for r, v in told if self.parts_of(v).convolutions]

    def _stray(self) -> list[Use]:
        """Conversions that may be of any model: of unknown objects, or by unseen means."""
        if self.stray_formats or not any(word in self.imports_text for word in FORMAT_WORDS):
            return self.stray_formats
        if any(record.formats for record in self.models.values()):
            return []
        return [Use(self.tree, "mentioned")]

    def _assigned_to(self, node: ast.AST) -> str:
        target = self.targets.get(id(node))
        return text_of(target) if target is not None else ""
