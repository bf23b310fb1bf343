"""MEM604 checkpoint-in-step-loop."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.events import Called
from memlint.analysis.places.state import may_save
from memlint.analysis.values import Const, Instance, Made, Value, leaves, made_of
from memlint.findings import Severity
from memlint.rule import Draft, Needs, Rule

STATES = frozenset({".state_dict", ".get_model_state_dict", ".parameters"})
# What stands between a state and the copies of its tensors: ``{k: v.cpu() for k, v in ...}``.
PASSED = frozenset(
    {".cpu", ".clone", ".detach", ".half", ".to", ".contiguous", ".items", ".values", ".copy",
     "operator.getitem", "builtins.next", "builtins.dict", "builtins.list",
     "copy.deepcopy", "copy.copy"}
)  # fmt: skip
DEPTH = 8


class CheckpointInStepLoop(Rule):
    """The weights are written to disk after each training step.

    ## What it does

    Reports `torch.save` of a `state_dict()` in a loop over batches or training steps, with
    nothing that skips most of the iterations.

    ## Why it is slow

    The step waits while the weights are copied to the host and written. How long depends on
    the size of the model and the disk; it is paid per step.

    ## When it is silent

    - the call is throttled (`if step % 1000 == 0`) or under any other condition, such as a best
      score;
    - it stands in the loop over epochs, or after the loop;
    - something other than a state is saved.

    ## Example

    ```python
    import torch


    def train(model, optimizer, loader, path):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            torch.save(model.state_dict(), path)
    ```

    ## Use instead

    ```python
    import torch


    def train(model, optimizer, loader, path, every=1000):
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            if step % every == 0:
                torch.save(model.state_dict(), path)
    ```

    ## Fix safety

    No fix is offered: how much work may be lost is for the user to say. Since PyTorch 2.4
    `torch.distributed.checkpoint.async_save` writes in the background, from a copy in host
    memory (of one model for each process).

    ## How to confirm

    Time the call, synchronised before and after, against the step.

    ## References

    - [Asynchronous saving with Distributed Checkpoint](https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html)
    """

    code = "MEM604"
    name = "checkpoint-in-step-loop"
    severity = Severity.INFO
    default_on = False
    calls = frozenset({"torch.save"})
    needs = Needs(
        {"torch"},
        {"state_dict", "parameters"},
        units=[{"save"}, {"for ", "while "}],
        places=may_save,
    )

    def check(self, called: Called) -> Iterator[Draft]:
        """A state that is saved in every step."""
        loop = called.context.innermost("batch", "step")
        if loop is None or loop.throttled or loop.conditional or called.context.throttled:
            return
        if any(one.role == "" and one.conditional for one in called.context.loops):
            return
        if not any(_is_state(leaf) for leaf in leaves(called.args.get("obj", 0))):
            return
        yield self.finding(
            called.node,
            "the state is saved in each step: the step waits until it is copied to the host and "
            "written",
            "save every so many steps, or with `torch.distributed.checkpoint.async_save` "
            "(PyTorch >= 2.4)",
        )


def _is_state(value: Value) -> bool:
    return isinstance(value, Instance) or _comes_from_state(made_of(value))


def _comes_from_state(made: Made | None) -> bool:
    """Whether a value is a state, or a tensor of one that was copied for the file."""
    for _ in range(DEPTH):
        if made is None:
            return False
        if made.name in STATES:
            return True
        if made.name not in PASSED or not made.inputs or _is_by_name(made):
            return False
        made = made_of(made.inputs[0])
    return False


def _is_by_name(made: Made) -> bool:
    """Whether a subscript picks one tensor of a state."""
    key = made.inputs[-1]
    return made.name == "operator.getitem" and isinstance(key, Const) and isinstance(key.value, str)
