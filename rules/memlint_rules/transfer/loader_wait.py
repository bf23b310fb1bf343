"""MEM217 loader-wait."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.findings import Severity
from memlint.rule import Rule
from memlint.tracer.records import Waiting
from memlint.tracer.sightings import Sighting

LEAST_SHARE = 0.2
# More than tracing an operation takes, in seconds: without workers a loader is traced as well.
MOST_PER_OPERATION = 3e-5
FEWEST_BATCHES = 4


class LoaderWait(Rule):
    """The program waits for its next batch.

    ## What it does

    Reports, of a traced run, loops over a `DataLoader` that spend a fifth of their time or more in
    asking for the next batch, with the number of its workers.

    ## Why it is slow

    Nothing is computed meanwhile: the loader makes its batches slower than they are used.

    ## When it is silent

    - less than a fifth of the time is spent so;
    - fewer than four batches were asked for.

    ## Example

    ```python
    from torch.utils.data import DataLoader


    def train(model, images, step):
        for batch in DataLoader(images, batch_size=64):
            step(model, batch)
    ```

    ## Use instead

    ```python
    from torch.utils.data import DataLoader


    def train(model, images, step):
        for batch in DataLoader(images, batch_size=64, num_workers=8, persistent_workers=True):
            step(model, batch)
    ```

    ## Fix safety

    No fix is offered: how many workers serve depends on the machine.

    ## How to confirm

    The finding is an observation: the time was measured in the program.

    ## References

    - [torch.utils.data: multi-process loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
    """

    code = "MEM217"
    name = "loader-wait"
    severity = Severity.INFO
    trace_only = True

    def observe(self, waiting: Waiting) -> Iterator[Sighting]:
        """Loops that wait for their batches."""
        if waiting.count < FEWEST_BATCHES or waiting.elapsed <= 0:
            return
        own = max(waiting.waited - MOST_PER_OPERATION * waiting.operations, 0.0)
        if own < LEAST_SHARE * waiting.elapsed:
            return
        share = waiting.waited / waiting.elapsed
        each = waiting.waited / waiting.count * 1e3
        workers = f"{waiting.workers} workers" if waiting.workers else "no workers"
        help = "find out what its workers spend their time on, or give it more of them"
        if not waiting.workers:
            help = "let workers make the batches: `num_workers=...`, `persistent_workers=True`"
        yield Sighting(
            self,
            waiting.site,
            f"{share:.0%} of the time of this loop is spent in waiting for the next batch, "
            f"{each:.3g} ms each; the loader has {workers}",
            help,
            self.severity,
            waiting.count,
            waiting.count,
            0,
        )
