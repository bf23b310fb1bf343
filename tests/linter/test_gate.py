"""The gate: what it looks for by names is what is in the bytes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlint.late_pattern import late_pattern, name_pattern
from memlint.linter.gate import Gate
from memlint.rule import Needs, Rule, Word

WORDS: tuple[Word, ...] = (
    "cat", "transpose(", ".mT", ".view(", "torch", "a.b", " in ", "self.", "é", "(", ".",
    late_pattern(r"\bload\b"), name_pattern(r"\b(save|dumps?)\b"), name_pattern(r"ensor\("),
)  # fmt: skip
PIECES = st.sampled_from(
    ["cat", "transpose", ".mT", "mT", ".", "(", " ", "\n", "view", "torch", "a", "b", " in ", "é",
     "self", "load", "save", "dumps", "dump", "tensor", "Tensor", "_", "1", "#", '"']
)  # fmt: skip


def _needing(*groups: set[Word], across: set[Word] | None = None) -> Rule:
    class One(Rule):
        needs = Needs(*groups, across=across or ())

    return One()


@pytest.mark.parametrize("word", WORDS, ids=str)
@given(pieces=st.lists(PIECES, max_size=12))
def test_a_word_is_found_where_it_occurs(word: Word, pieces: list[str]) -> None:
    text = "".join(pieces)
    if isinstance(word, str):
        occurs = word in text
    else:
        assert not callable(word)
        occurs = re.search(word.pattern, text, re.ASCII) is not None
    rule = _needing({word})
    assert bool(Gate([rule]).pass_through(text.encode()).speaking) == occurs


def test_a_large_file_is_searched_as_a_small_one_is() -> None:
    gate = Gate([_needing({"transpose("}), _needing({".missing("})])
    for filling in (b"", b"x = 1\n" * 200_000):
        assert len(gate.pass_through(filling + b"y.transpose(0, 1)").speaking) == 1


def test_rules_are_open_where_only_what_is_imported_can_tell() -> None:
    rule = _needing({"DataLoader"}, {"cuda"}, across={"DataLoader"})
    gate = Gate([rule])
    assert gate.pass_through(b"from data import loader\nx.cuda()") == ([], [rule])
    assert gate.pass_through(b"from data import DataLoader\nx.cuda()") == ([rule], [rule])
    assert gate.pass_through(b"from data import loader\nx.cpu()") == ([], [])
    assert gate.pass_through(b"x.cuda()") == ([], [])
