"""Time memlint beside its peers, and say which of the promised limits hold.

Prints tables in Markdown; ``--json`` also writes every single run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tests.benchmarks import samples
from tests.benchmarks.contenders import Peers
from tests.benchmarks.limits import Limit, limits_of
from tests.benchmarks.sections import (
    Facts,
    Plan,
    Section,
    corpus_facts,
    real_modules,
    time_corpus,
    time_growth,
    time_small_files,
)
from tests.benchmarks.tables import page
from tests.benchmarks.wheels import Corpus, corpus


def machine() -> dict[str, object]:
    """What the figures depend on."""
    return {
        "CPUs": len(os.sched_getaffinity(0)),
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def growing_files(plan: Plan, modules: Path) -> Iterator[Section]:
    """The two kinds of growing files."""
    yield time_growth(plan, "repeated", samples.repeated)
    real = real_modules(modules)
    yield time_growth(plan, "concatenated", partial(samples.concatenated, real))


def measure(plan: Plan, corpora: Sequence[Corpus], modules: Path | None) -> list[Section]:
    """Time everything that was asked for."""
    sections = [time_corpus(plan, found, slow=found.name == "small") for found in corpora]
    sections.append(time_small_files(plan))
    if modules is not None:
        sections += growing_files(plan, modules)
    return sections


def as_json(sections: Sequence[Section], limits: Sequence[Limit], facts: Sequence[Facts]) -> str:
    """Everything that was measured, run by run."""
    document = {
        "machine": machine(),
        "facts": [asdict(fact) for fact in facts],
        "sections": [asdict(section) for section in sections],
        "limits": [{**asdict(limit), "met": limit.met} for limit in limits],
    }
    return json.dumps(document, indent=2) + "\n"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.speed", description=__doc__)
    add = parser.add_argument
    add(
        "--wheels",
        type=Path,
        required=True,
        metavar="DIR",
        help="what tests.benchmarks.wheels made",
    )
    add("--peers", type=Path, metavar="VENV", help="the virtual environment that holds the peers")
    add("--small", action="store_true", help="only the small corpus and the single files")
    add("--no-growth", action="store_true", help="leave out the growing files")
    add("--rounds", type=int, default=5, metavar="N")
    add("--slow-rounds", type=int, default=1, metavar="N", help="0 leaves the slow peers out")
    add("--seed", type=int, default=0, metavar="N", help="of the order of turns")
    add("--json", type=Path, metavar="FILE")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, write the JSON."""
    options = _options(arguments)
    wheels: Path = options.wheels.resolve()
    names = ("small",) if options.small else ("small", "all")
    corpora = [corpus(wheels, name) for name in names]
    facts = [corpus_facts(found) for found in corpora]
    with tempfile.TemporaryDirectory(prefix="memlint-benchmark-") as scratch:
        plan = Plan(
            peers=Peers(options.peers.resolve() if options.peers else None),
            rounds=options.rounds,
            slow_rounds=options.slow_rounds,
            seed=options.seed,
            scratch=Path(scratch),
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
        modules = None if options.no_growth else wheels / "all" / "timm"
        sections = measure(plan, corpora, modules)
    limits = limits_of(sections)
    print(page(sections, limits, facts, machine()))
    if options.json is not None:
        options.json.write_text(as_json(sections, limits, facts), encoding="utf-8")


if __name__ == "__main__":
    main()
