"""Each experiment runs at a tiny size, and what it finds is well-formed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from memlint.bench.claims import CLAIMS
from memlint.bench.collect import all_experiments, rule_benches
from memlint.bench.experiment import Experiment
from memlint.bench.lab import Lab
from memlint.bench.plan import Plan
from memlint.bench.requirements import missing
from memlint.bench.results import Plot
from memlint.cli.packs import load

# What counts for each: rows, bytes, pages, images, MiB or records.
SIZES = {
    "cache-line": 1 << 20,
    "convolution-format": 1,
    "load-weights": 4,
    "matrix-product": 32,
    "numa-memory": 4 << 20,
    "pinned-copies": 1 << 12,
    "row-column-scan": 32,
    "strided-operands": 32,
    "tensor-pages": 8 << 20,
    "tlb-reach": 64,
    "worker-growth": 2000,
    "working-set": 64 << 10,
}
EXPERIMENTS = {one.name: one for one in all_experiments()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_well_formed(name: str) -> None:
    one = EXPERIMENTS[name]
    if why := missing(one.needs):
        pytest.skip(why)
    lab = Lab(Plan(size=SIZES.get(name), threads=1, budget=60.0))
    lab.begin(6000)
    found = one.run(lab)
    assert found.answers
    for answer in found.answers:
        assert CLAIMS[answer.claim].bench == name
        assert answer.measured
        assert "nan" not in answer.measured
    assert len({answer.claim for answer in found.answers}) == len(found.answers)
    for row in found.rows:
        assert row.bench == name
        assert 0 < row.low <= row.ratio <= row.high < math.inf
    assert len({(row.variant, row.size, row.dtype) for row in found.rows}) == len(found.rows)
    for plot in found.plots:
        check_plot(plot)


def check_plot(plot: Plot) -> None:
    assert plot.title
    assert plot.x_label
    assert plot.y_label
    assert plot.curves
    for curve in plot.curves:
        xs = [point.x for point in curve.points]
        assert xs == sorted(set(xs))
        for point in curve.points:
            assert 0 < point.low <= point.y <= point.high < math.inf


def claims_of(one: Experiment) -> Iterator[str]:
    return (name for name, claim in CLAIMS.items() if claim.bench == one.name)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_about_claims(name: str) -> None:
    assert list(claims_of(EXPERIMENTS[name]))
    assert EXPERIMENTS[name].title().endswith(".")


def test_each_claim_names_a_bench_or_says_why_there_is_none() -> None:
    rules = {one.rule.name for one in rule_benches(load().rules.values())}
    for name, claim in CLAIMS.items():
        assert claim.bench in EXPERIMENTS.keys() | rules if claim.bench else claim.why_not, name
