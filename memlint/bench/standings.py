"""Every claim beside what a run says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memlint.bench.claims import CLAIMS
from memlint.bench.results import Answer, Outcome, Standing
from memlint.bench.run import INTERRUPTED, OUT_OF_TIME


def standings(outcomes: Sequence[Outcome]) -> Iterator[Answer]:
    """The answers to the claims that the benches of a run are about, and to those that no bench
    can answer where all experiments have been run.  Of benches that a run did not come to there
    is nothing to say."""
    answers = {answer.claim: answer for outcome in outcomes for answer in outcome.answers}
    ran = {outcome.name: outcome for outcome in outcomes}
    whole = {claim.bench for claim in CLAIMS.values() if claim.bench} <= ran.keys()
    for name, claim in CLAIMS.items():
        if name in answers:
            yield answers[name]
        elif claim.bench in ran:
            outcome = ran[claim.bench]
            if outcome.skipped in (OUT_OF_TIME, INTERRUPTED):
                continue
            why = outcome.skipped or outcome.failed or "not at the sizes of this run"
            yield Answer(name, Standing.UNMEASURED, why)
        elif not claim.bench and whole:
            yield Answer(name, Standing.UNMEASURED, claim.why_not)
