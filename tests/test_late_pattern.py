"""A pattern that is compiled late does what one does that is compiled at once."""

from __future__ import annotations

import pickle
import re

import pytest

from memlint.late_pattern import is_pattern, late_pattern
from memlint.rule import occurs


def test_it_finds_what_a_compiled_one_finds() -> None:
    late, soon = late_pattern(r"(a)b*", re.IGNORECASE), re.compile(r"(a)b*", re.IGNORECASE)
    text = "xABb ab"
    assert late.findall(text) == soon.findall(text)
    assert late.sub("-", text) == soon.sub("-", text)
    assert late.groups == soon.groups
    assert occurs(late, text)
    assert not occurs(late, "x")


def test_it_is_one_with_another_of_the_same_text() -> None:
    assert late_pattern("a") == late_pattern("a") != late_pattern("a", re.MULTILINE)
    assert len({late_pattern("a"), late_pattern("a")}) == 1
    assert is_pattern(late_pattern("a"))
    assert is_pattern(re.compile("a"))
    assert not is_pattern("a")


def test_it_can_be_sent_to_another_process() -> None:
    late = late_pattern("a+")
    late.search("a")
    sent = pickle.loads(pickle.dumps(late))
    assert sent == late
    assert sent.fullmatch("aaa")


def test_what_is_no_pattern_is_found_out_when_it_is_used() -> None:
    with pytest.raises(re.error):
        late_pattern("(").search("a")
