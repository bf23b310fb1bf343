"""What is learnt of loaders and models while the program is read."""

from __future__ import annotations

import ast
from dataclasses import field, replace

from memlint.analysis.events import Transfer, Use
from memlint.analysis.values import Value, join
from memlint.late_dataclass import dataclass


@dataclass(slots=True)
class LoaderRecord:
    """A DataLoader: how it was made (joined over all contexts) and where its batches went.

    ``placed`` tells that a framework yields its batches on the device, so that moving them there
    once more does nothing."""

    node: ast.Call
    cls: str
    arguments: dict[str, Value] = field(default_factory=dict)
    open: bool = False
    direct: bool = True
    partial: ast.AST | None = None
    placed: bool = False
    transfers: dict[int, Transfer] = field(default_factory=dict)

    def made_with(self, arguments: dict[str, Value], *, open: bool) -> None:
        """Join the arguments of one more construction."""
        from memlint.analysis.values import Absent

        if not self.arguments:
            self.arguments = dict(arguments)
        else:
            for name in {*self.arguments, *arguments}:
                self.arguments[name] = join(
                    (self.arguments.get(name, Absent()), arguments.get(name, Absent()))
                )
        self.open = self.open or open

    def add_transfer(self, transfer: Transfer) -> None:
        known = self.transfers.get(id(transfer.node))
        if known is not None:
            transfer = replace(
                transfer,
                devices=transfer.devices | known.devices,
                blocking=transfer.blocking and known.blocking,
                whole=transfer.whole or known.whole,
            )
        self.transfers[id(transfer.node)] = transfer


@dataclass(slots=True)
class ModelRecord:
    """A model that the program makes: what it is, and what was done to it."""

    value: Value
    text: str = ""
    moves: dict[int, Transfer] = field(default_factory=dict)
    precisions: dict[int, Use] = field(default_factory=dict)
    formats: dict[int, Use] = field(default_factory=dict)
    compiles: dict[int, Use] = field(default_factory=dict)
    calls: dict[int, Use] = field(default_factory=dict)
    exports: dict[int, Use] = field(default_factory=dict)

    @property
    def tells_of_running(self) -> bool:
        """Whether anything is known of how the model runs."""
        return bool(self.precisions or self.formats or self.compiles or self.calls or self.exports)

    def move(self, node: ast.AST, text: str, devices: frozenset[str]) -> None:
        known = self.moves.get(id(node))
        devices = devices | (known.devices if known else frozenset())
        self.moves[id(node)] = Transfer(node, text, devices)

    def note(self, kind: str, node: ast.AST, detail: str, *, certain: bool = True) -> None:
        """``kind`` is "precisions", "formats", "compiles", "calls" or "exports"."""
        uses: dict[int, Use] = getattr(self, kind)
        known = uses.get(id(node))
        if known is None or (certain and not known.certain):
            uses[id(node)] = Use(node, detail, certain)

    def forget_casts(self) -> None:
        """The model is cast back to full precision; what autocast does to it still counts."""
        self.precisions = {k: u for k, u in self.precisions.items() if u.detail == "autocast"}
