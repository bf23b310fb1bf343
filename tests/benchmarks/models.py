"""Trace models that others wrote: the same bits as untraced, and what is found, beside a verdict.

Every model of ``library_models`` is trained for some steps, once bare and once traced.  Losses,
gradients, weights and the state of the random numbers must agree bit by bit, with their strides.
Findings are matched with ``verdicts/traced/<rule>.json``.  Prints a table in Markdown, and every
finding that nobody has read yet; ends with status 1 where any bit differs.

    python -m tests.benchmarks.models [--models NAME ...] [--replay SECONDS] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import memlint
from memlint.findings import Finding
from memlint.tracer.evidence import REFUTED
from tests.benchmarks.accuracy import VERDICTS, Verdict, read_verdicts
from tests.benchmarks.library_models import MODELS, LibraryModel

STEPS = 3
_INSTALLED = "site-packages/"


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding of a traced model; ``place`` is relative to the folder that libraries are in."""

    place: str
    name: str
    message: str
    verdict: str
    count: int
    nbytes: int
    ratio: float | None
    net_ratio: float | None

    @property
    def key(self) -> str:
        """What the finding is called among the verdicts."""
        return f"{self.place} {self.name}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one model."""

    model: LibraryModel
    differing: tuple[str, ...]
    findings: tuple[Reported, ...]
    operations: int


def trained(
    model: LibraryModel, watched: AbstractContextManager[Any]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Every result of some steps of training, by name."""
    torch.manual_seed(7)
    net, loss_of = model.make()
    net.train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    kept: list[tuple[str, torch.Tensor]] = []
    with watched:
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = loss_of(net)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            kept.append((f"loss of step {step}", loss.detach()))
    yield from kept
    for name, weight in net.named_parameters():
        yield name, weight.detach()
        if weight.grad is not None:
            yield f"gradient of {name}", weight.grad
    yield from net.named_buffers()
    yield "state of the random numbers", torch.get_rng_state()


def compared(model: LibraryModel, replay: float) -> Outcome:
    """A model trained bare and traced; ``replay`` seconds are spent on measuring."""
    bare = list(trained(model, nullcontext()))
    trace = memlint.trace(quiet=True, replay=replay > 0, replay_budget=replay)
    watched = list(trained(model, trace))
    differing = [
        name
        for (name, one), (other_name, other) in zip(bare, watched, strict=True)
        if name != other_name or one.stride() != other.stride() or not _same_bits(one, other)
    ]
    found = tuple(map(_reported, trace.findings))
    return Outcome(model, tuple(differing), found, sum(one.count for one in trace.operations))


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.contiguous().view(-1).view(torch.uint8),
                       other.contiguous().view(-1).view(torch.uint8))  # fmt: skip


def _reported(finding: Finding) -> Reported:
    evidence = finding.evidence or {}
    _, _, inside = finding.path.rpartition(_INSTALLED)
    return Reported(
        f"{inside}:{finding.location.line}",
        finding.name,
        finding.message,
        evidence["verdict"],
        evidence["count"],
        evidence["bytes"],
        evidence["ratio"],
        evidence["net_ratio"],
    )


def table(outcomes: Sequence[Outcome], verdicts: dict[str, Verdict]) -> Iterator[str]:
    """The counts by model; "leave it" are those that a measurement has refuted."""
    heads = "model", "library", "operations", "same bits", "leave it", "findings", "right", "wrong"
    yield f"| {' | '.join(heads)} | not read |"
    yield "|---|---|---:|---|---:|---:|---:|---:|---:|"
    for one in outcomes:
        told = [found for found in one.findings if found.verdict != REFUTED]
        read = [verdicts[found.key] for found in told if found.key in verdicts]
        right = sum(verdict.right for verdict in read)
        left = len(one.findings) - len(told)
        cells = (left, len(told), right, len(read) - right, len(told) - len(read))
        yield (
            f"| {one.model.name} | {one.model.library} {one.model.version} | {one.operations:,} "
            f"| {'no' if one.differing else 'yes'} | {' | '.join(map(str, cells))} |"
        )


def details(outcome: Outcome, verdicts: dict[str, Verdict]) -> Iterator[str]:
    """Every finding of a model, with what a reader says of it."""
    yield f"\n{outcome.model.name}: {len(outcome.findings)} findings"
    for name in outcome.differing:
        yield f"  differs: {name}"
    for one in outcome.findings:
        read = verdicts.get(one.key)
        said = "not read" if read is None else ("right" if read.right else "WRONG")
        ratio = "" if one.net_ratio is None else f", ratio {one.ratio:.2f}, net {one.net_ratio:.2f}"
        yield f"  {said}: {one.key}: {one.message} [{one.verdict}, {one.nbytes:,} bytes{ratio}]"
        if read is not None:
            yield f"    {read.why}"


def missing(model: LibraryModel) -> str | None:
    """Why a model cannot be built here."""
    try:
        installed = version(model.library)
    except PackageNotFoundError:
        return f"{model.library} is not installed"
    if installed != model.version:
        return f"{model.library} is {installed}, and its findings were read of {model.version}"
    return None


def main() -> None:
    """Trace the models and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=[one.name for one in MODELS])
    parser.add_argument("--replay", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    verdicts = read_verdicts(VERDICTS / "traced")
    outcomes = []
    for model in MODELS:
        if model.name not in options.models:
            continue
        if (why := missing(model)) is not None:
            print(f"{model.name} is left out: {why}", file=sys.stderr)
            continue
        outcomes.append(compared(model, options.replay))
        print("\n".join(details(outcomes[-1], verdicts)), flush=True)
    print("", *table(outcomes, verdicts), sep="\n")
    if options.json is not None:
        told = [
            {"model": one.model.name, "library": one.model.library,
             "version": one.model.version, "operations": one.operations,
             "differing": one.differing, "findings": [asdict(found) for found in one.findings]}
            for one in outcomes
        ]  # fmt: skip
        options.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    if any(one.differing for one in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
