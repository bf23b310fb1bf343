"""Programs whose safe fixes concern a device: what they compute must stay the same.

Each defines ``run()``, which gives tensors.  The device is spelled ``"cuda"``, so that a program
can be tried on the host too, with that word replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = """import torch
from torch.utils.data import DataLoader, TensorDataset

rows = TensorDataset(torch.arange(4096.0).reshape(64, 64), torch.arange(64) % 7)
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A program that ``rule`` reports, ``fixes`` times with a safe fix.

    A ``racy`` one may give anything on a device before it is fixed."""

    rule: str
    fixes: int
    body: str
    racy: bool = False

    @property
    def text(self) -> str:
        """The whole program."""
        return HEAD + self.body


CASES = (
    Case(
        "blocking-transfer",
        2,
        """
def run():
    loader = DataLoader(rows, batch_size=8, num_workers=2, pin_memory=True)
    seen = []
    for x, y in loader:
        seen.append(x.to("cuda") * 2 + y.to("cuda")[:, None])
    return seen
""",
    ),
    Case(
        "missing-pin-memory",
        1,
        """
def run():
    loader = DataLoader(rows, batch_size=8, num_workers=2)
    seen = []
    for x, y in loader:
        seen.append(x.to("cuda", non_blocking=True) + y.to("cuda", non_blocking=True)[:, None])
    return seen
""",
    ),
    Case(
        "unsafe-nonblocking-d2h",
        1,
        """
def run():
    x = torch.arange(1 << 20, device="cuda") % 1000
    best = x.sort().values.to("cpu", non_blocking=True)
    return [torch.tensor(best.tolist())]
""",
        racy=True,
    ),
    Case(
        "create-then-move",
        3,
        """
def run():
    steps = torch.arange(64).to("cuda")
    mask = torch.tril(torch.ones(64, 64)).bool().to("cuda")
    ids = torch.full((64,), -1, dtype=torch.long).to("cuda")
    return [steps, mask, ids]
""",
    ),
    Case(
        "cast-before-transfer",
        1,
        """
def run():
    image = torch.tensor([list(range(20))] * 10, dtype=torch.uint8)
    return [image.float().to("cuda")]
""",
    ),
    Case(
        "pin-then-copy",
        1,
        """
def run():
    loader = DataLoader(rows, batch_size=8, num_workers=2)
    seen = []
    for x, y in loader:
        seen.append(x.pin_memory().to("cuda"))
    return seen
""",
    ),
    Case(
        "pin-memory-inert",
        1,
        """
def run():
    host = torch.arange(4096.0).pin_memory("cuda")
    return [host.to("cuda")]
""",
    ),
)
