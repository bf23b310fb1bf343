"""``memlint merge``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from memlint.cli.outputs import check_outputs
from memlint.cli.status import Failed, Status

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("traces", nargs=-1, required=True, type=_FILE)
@click.option("-o", "--output", type=_FILE, required=True, metavar="FILE", help="Write this file.")
@click.option("-q", "--quiet", is_flag=True, help="Do not say what was written.")
def merge(traces: Sequence[Path], output: Path, quiet: bool) -> int:
    """Join the TRACES of the ranks of one run, as `memlint trace -o` writes them.

    A finding of several ranks is told once, with the maximum and the median over the ranks;
    ranks whose arrays have another layout than on most are named.
    """
    from memlint.tracer.evidence_file import (
        EvidenceError,
        EvidenceFile,
        document,
        read_evidence,
        write_evidence,
    )
    from memlint.tracer.merge import Rank
    from memlint.tracer.merge import merge as joined

    check_outputs({"--output": output}, traces)
    ranks: dict[Rank, EvidenceFile] = {}
    for path in traces:
        try:
            evidence = read_evidence(path)
        except EvidenceError as error:
            raise Failed(str(error)) from error
        number = evidence.meta.get("rank")
        rank: Rank = number if isinstance(number, int) else str(path)
        if rank in ranks:
            raise Failed(f"{path}: rank {rank} is there twice")
        ranks[rank] = evidence
    whole = joined(dict(sorted(ranks.items(), key=lambda item: (str(type(item[0])), item[0]))))
    try:
        write_evidence(
            output, document(whole.meta, whole.findings, whole.sites, whole.profile, whole.journeys)
        )
    except OSError as error:
        raise Failed(f"{output}: {error.strerror}") from error
    if not quiet:
        found = f"{len(whole.findings)} finding{'' if len(whole.findings) == 1 else 's'}"
        of = f"{len(ranks)} rank{'' if len(ranks) == 1 else 's'}"
        click.echo(f"{found} of {of} written to {output}")
    return Status.CLEAN
