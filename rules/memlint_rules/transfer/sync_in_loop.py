"""MEM205 sync-in-loop."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.events import Called, ModelPlaced, ProgramEnd, ProgramStart
from memlint.analysis.places.sync import may_wait
from memlint.analysis.placing import PLACING
from memlint.analysis.syncs import EMPTYING, READS, STEPS, TRAINING, TRUTH, Reads, Wait
from memlint.findings import Severity
from memlint.late_pattern import late_pattern
from memlint.rule import Draft, Needs, Related, Rule
from memlint.tracer.records import BACKWARD, FORWARD, Operation
from memlint.tracer.sightings import Sighting

READ = late_pattern(
    r"\.(item|tolist|cpu)\(|\.to\(\s*(device\s*=\s*)?[\"']cpu|\b(float|int|bool|print|str|any|all)\(|"
    r"\{[^}]*\}|[\"']\s*%"
)
HELP = {
    "training": "keep the value on the device (`total += loss.detach()`) and read it every so "
    "many steps, or after the loop",
    "token": "keep the tokens on the device and look for the end every few tokens only",
    "sample": "move the whole tensor to the host once, before the loop",
}
WHERE = {
    "training": "in every step of this training loop",
    "token": "for every token that is generated",
    "sample": "for every part of the tensor",
}
FEWEST_PER_STEP = 3
"""Of what runs: one or two values a step are read to be shown."""


class SyncInLoop(Rule):
    """The host waits for the GPU in every step.

    ## What it does

    Reports `.item()`, `.tolist()`, `.cpu()`, `float(x)`, `int(x)`, `bool(x)`, `if x.any()`,
    printing and formatting of a CUDA tensor where it runs in every iteration of a training loop,
    for every token of a loop that generates, or for every sample of a tensor; once a line.

    ## Why it is slow

    Kernels are queued: the host runs ahead of the device, and that hides its own work. To read a
    value the host must wait until all that was queued is done, and the device then idles until
    the next kernel arrives. One such read in a step of ten milliseconds or more is little; in
    short steps, with several reads, or one by one for the samples of a batch, they add up.
    PyTorch's tuning guide lists these calls as synchronisations to avoid; public reports tell of
    5 to 50 per cent of the time of a step.

    ## When it is silent

    - it runs only now and then (`if step % 100 == 0`, `if should_log`), or under a condition
      that is not the same in all iterations; `if rank == 0` is no such condition;
    - after the loop, once an epoch, and in loops that only evaluate;
    - the tensor is not known to be on a CUDA device;
    - what is read is handed to `env.step(...)`, which needs it on the host;
    - `torch.cuda.synchronize()` stands before it in the same iteration: that waits already;
    - copies with `non_blocking=True`, which do not wait.

    ## Example

    ```python
    import torch
    from torch import nn


    def train(model, batches, optimizer):
        model.cuda()
        criterion, total = nn.CrossEntropyLoss(), 0.0
        for x, y in batches:
            loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    def train(model, batches, optimizer):
        model.cuda()
        criterion, total = nn.CrossEntropyLoss(), torch.zeros((), device="cuda")
        for x, y in batches:
            loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total.item()
    ```

    ## Fix safety

    None is made: when a value is read is for the program to say. A value that is kept without
    `.detach()` keeps the graph of its step alive.

    ## How to confirm

    In a profile, look for `cudaStreamSynchronize` under `aten::_local_scalar_dense` or
    `aten::copy_`, how often it is called from this line, and how long the device idles after it.
    `torch.cuda.set_sync_debug_mode("warn")` warns at each.

    ## References

    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torchtune pull request 522](https://github.com/meta-pytorch/torchtune/pull/522)
    - [torchmetrics issue 2638](https://github.com/Lightning-AI/torchmetrics/issues/2638)
    """

    code = "MEM205"
    name = "sync-in-loop"
    severity = Severity.INFO
    needs_device = "cuda"
    needs = Needs(
        {"torch"},
        {"cuda", "CUDA", "gpu", "GPU", "ccelerat", "Fabric", "lightning", "Trainer", "ignite"},
        {READ},
        {"for ", "while "},
        units=[{"for ", "while "}, {READ}, {".to(", "cuda", "gpu", "device", "prepare("}],
        nearest=True,
        places=may_wait,
        callers=may_wait,
    )
    calls = READS | TRAINING | STEPS | EMPTYING | PLACING

    def __init__(self, options: dict[str, object] | None = None) -> None:
        super().__init__(options)
        self._reads = Reads()

    def check_start(self, start: ProgramStart) -> Iterator[Draft]:
        """Begin a program."""
        self._reads = Reads()
        yield from ()

    def check_model(self, model: ModelPlaced) -> Iterator[Draft]:
        """Take note of the models that are on a CUDA device."""
        if model.site is not None and any("cuda" in move.devices for move in model.moves):
            self._reads.placed.add(model.site)
        yield from ()

    def check_call(self, call: Called) -> Iterator[Draft]:
        """Take note of what reads, and of what trains."""
        self._reads.note(call)
        yield from ()

    def check_end(self, end: ProgramEnd) -> Iterator[Draft]:
        """The reads that make the host wait over and over."""
        for wait in self._reads.waits():
            yield self.finding(
                wait.read.node, _message(wait), HELP[wait.kind], related=_related(wait)
            )

    def observe(self, operation: Operation) -> Iterator[Sighting]:
        """Reads of single numbers, and results of unknown size, several times a step."""
        what = _waits(operation)
        if what is None or operation.phase not in (FORWARD, BACKWARD):
            return
        if operation.per_step < FEWEST_PER_STEP:
            return
        operand = operation.operands[0]
        yield Sighting(
            self,
            operation.site,
            f"{what} {operation.per_step:g} times a step: on a GPU the host waits each time until "
            "all that it has started is done",
            "keep the values on the device, and read them once for many steps",
            self.severity,
            operation.count,
            operation.steps,
            operand.array.nbytes * operation.count,
            settled=operand.kind != "cpu",
        )


def _message(wait: Wait) -> str:
    read = wait.read
    text = read.source.segment(read.node)
    shown = f"`{text}`" if len(text) <= 60 and "\n" not in text else "this"
    if read.name == "builtins.format":
        shown = f"formatting `{text}`"
    elif read.name == TRUTH and not text.startswith("bool"):
        shown = f"asking for the truth of {shown}"
    return (
        f"{shown} makes the host wait for the GPU {WHERE[wait.kind]}: nothing more is queued "
        "until all kernels before it are done"
    )


def _related(wait: Wait) -> list[Related]:
    loop = wait.loop.loop.node
    return [Related(loop, "the loop")] if getattr(loop, "lineno", 0) else []


def _waits(operation: Operation) -> str | None:
    """What of an operation the host has to wait for."""
    match operation.short:
        case "_local_scalar_dense":
            return "a number is read (`.item()`, `float()`, `if`)"
        case "nonzero":
            return "the places of what is not zero are looked up (`nonzero`, a mask as an index)"
        case "masked_select":
            return "elements are chosen by a mask"
        case "index" if any(one.dtype == "bool" for one in operation.operands[1:]):
            return "elements are chosen by a mask"
    return None
