"""The package's own validation, against jsonschema."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from memlint.schemas.validation import SchemaError, schema, validate
from tests.report.evidence_samples import document as sample

_HOSTILE = (None, -1, 0, 1e300, 10**30, "", "x" * 5000, "\ud800", [], {}, True, [1], 0.5, "1")
_OPTIONAL = ("profile", "journeys", "source")


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, one in items:
        yield (*path, name)
        if isinstance(one, (dict, list)):
            yield from _places(one, (*path, name))


def _spoilt(draw: random.Random) -> Any:
    document = copy.deepcopy(sample())
    *path, last = draw.choice(list(_places(document)))
    holder = document
    for name in path:
        holder = holder[name]
    if draw.random() < 0.3:
        del holder[last]
    else:
        holder[last] = copy.deepcopy(draw.choice(_HOSTILE))
    return document


def test_the_schema_says_to_both_the_same() -> None:
    draw = random.Random(3)
    told = jsonschema.Draft202012Validator(schema("trace"))
    seen = set()
    for _ in range(600):
        document = _spoilt(draw)
        errors = list(told.iter_errors(document))
        try:
            validate(document, schema("trace"))
        except SchemaError:
            assert errors
            seen.add(False)
        else:
            assert not errors, errors
            seen.add(True)
    assert seen == {True, False}


def test_what_other_versions_have_not_or_have_beyond_is_accepted() -> None:
    document = copy.deepcopy(sample())
    del document["profile"], document["journeys"]
    document["more"] = document["findings"][0]["more"] = 1
    validate(document, schema("trace"), optional=_OPTIONAL)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_refused(number: float) -> None:
    document = copy.deepcopy(sample())
    document["findings"][0]["evidence"]["ratio"] = number
    with pytest.raises(SchemaError, match=r"findings\[0\]\.evidence\.ratio: number or null"):
        validate(document, schema("trace"))
