"""Rules about moves between host and device, on streams that are checked in as data."""

from __future__ import annotations

import pytest
import torch

from memlint.linter.rules import all_rules
from memlint.tracer.observe import observe
from memlint.tracer.sightings import Sighting
from tests.tracer.streams import FOLDER, stream
from tests.tracer.tracing import traced

FOUND = {
    "pageable_batches": [("missing-pin-memory", "train.py", 12)],
    "pinned_batches": [],
    "pinned_but_waiting": [("blocking-transfer", "train.py", 12)],
    "made_on_host": [("create-then-move", "train.py", 21)],
    "made_on_device": [],
    "cast_on_host": [("cast-before-transfer", "train.py", 31)],
    "cast_on_device": [("missing-pin-memory", "train.py", 31)],
    "narrowed_on_host": [],
    "read_before_arrival": [("unsafe-nonblocking-d2h", "train.py", 42)],
    "read_after_waiting": [],
    "source_overwritten": [("pinned-source-overwritten", "train.py", 52)],
    "source_kept": [],
    "many_small_copies": [("many-small-copies", "train.py", 62)],
    "few_small_copies": [],
    "numbers_read_in_a_loop": [("sync-in-loop", "train.py", 72)],
    "half_nchw": [("nchw-conv", "model.py", 5)],
    "half_nhwc": [],
    "single_nchw": [],
}


def sightings_of(name: str) -> list[Sighting]:
    rules = [rule() for rule in all_rules().rules.values()]
    return list(observe(rules, stream(name), []))


@pytest.mark.parametrize("name", FOUND)
def test_what_is_seen_in_a_stream(name: str) -> None:
    found = [(one.rule.name, one.site.path, one.site.line) for one in sightings_of(name)]
    assert found == FOUND[name]


def test_every_stream_is_read() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(FOUND)


def test_the_bytes_that_a_cast_on_the_host_adds() -> None:
    (one,) = sightings_of("cast_on_host")
    assert one.nbytes == 4 * 64 * 3 * 224 * 224 * 3
    assert one.related[0][0].line == 32


def test_a_run_with_a_device_settles_what_it_saw() -> None:
    (one,) = sightings_of("numbers_read_in_a_loop")
    assert one.settled


def test_the_place_of_a_conflict_is_told() -> None:
    for name, line in (("read_before_arrival", 43), ("source_overwritten", 51)):
        (one,) = sightings_of(name)
        assert [site.line for site, _ in one.related] == [line]


def test_a_run_without_a_device_says_nothing_about_moves() -> None:
    model = torch.nn.Linear(256, 256)
    with traced() as run:
        for _ in range(4):
            x = torch.randn(256, 256).to("cpu", non_blocking=True)
            model(x.double().float())
    for name in ("create-then-move", "missing-pin-memory", "blocking-transfer",
                 "cast-before-transfer", "many-small-copies", "unsafe-nonblocking-d2h",
                 "pinned-source-overwritten"):  # fmt: skip
        assert run.sightings(name) == []
