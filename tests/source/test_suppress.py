from __future__ import annotations

import time

import pytest

from memlint.source.suppress import Kind, read_suppressions

CODE, NAME = "TST101", "flag-me"


def covered(text: str, code: str = CODE, name: str = NAME) -> set[int]:
    suppressions = read_suppressions(text)
    return {line for line in range(1, text.count("\n") + 2) if suppressions.cover(line, code, name)}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = 1  # memlint: ignore[TST101]\ny = 2\n", {1}),
        ("x = 1  # memlint: ignore[flag-me]\n", {1}),
        ("x = 1  # memlint: ignore[other, tst101]\n", {1}),
        ("x = 1  # memlint: ignore[TST102]\n", set()),
        ("x = 1  # memlint: ignore\n", {1}),
        ("x = 1  # memlint:ignore[flag-me] because of that\n", {1}),
        ("x = 1  # type: ignore  # memlint: ignore[flag-me]  # noqa: E501\n", {1}),
        ("f(\n  1,\n)  # memlint: ignore[flag-me]\ny\n", {1, 2, 3}),
        ("f(\n  1,  # memlint: ignore[flag-me]\n)\ny\n", {1, 2, 3}),
        ("f(\n  # memlint: ignore[flag-me]\n  1,\n)\ny\n", {1, 2, 3, 4}),
        ("x = 1 + \\\n  2  # memlint: ignore[flag-me]\n", {1, 2}),
        ("s = '''\n\n'''  # memlint: ignore[flag-me]\n", {1, 2, 3}),
        ("s = '# memlint: ignore[flag-me]'\n", set()),
        ("for x in (\n  y\n):  # memlint: ignore[flag-me]\n  f(x)\n", {1, 2, 3}),
        ("def f():  # memlint: ignore[flag-me]\n  g()\n", {1}),
        ("with a, \\\n  b:  # memlint: ignore[flag-me]\n  g()\n", {1, 2}),
        ("# memlint: ignore[flag-me]\nx = (\n  1)\ny\n", {2, 3}),
        ("# memlint: ignore[flag-me]\n# more words\nx = 1\ny\n", {3}),
        ("# memlint: ignore[flag-me]\n\nx = 1\n", set()),
        ("# memlint: ignore[flag-me]\n@deco\n@deco\ndef f(\n  x):\n  g()\n", {2, 3, 4, 5}),
        ("if x:\n    # memlint: ignore[flag-me]\n    f()\n    g()\n", {3}),
        ("if x:\n    f()\n    # memlint: ignore[flag-me]\ng()\n", {4}),
        ("a; b  # memlint: ignore[flag-me]\n", {1}),
        ("x = 1  # noqa\ny\n", {1}),
        ("x = 1  #NOQA : E501\ny\n", set()),
        ("x = 1  # noqa: E501, TST101\n", {1}),
        ("x = 1  # noqa:TST1\n", {1}),
        ("x = 1  # noqa: E501\n", set()),
        ("x = 1  # noqa: because\n", set()),
        ("# noqa\nx = 1\n", set()),
        ("x\n# memlint: ignore-file[flag-me]\ny\n", {1, 2, 3, 4}),
        ("# memlint: ignore-file[other]\ny\n", set()),
        ("# memlint: ignore-file\ny\n", {1, 2, 3}),
        ("x = 1  # memlint: ignored[flag-me]\n", set()),
        ("x = 1  # memlint: ignore[flag-me\n", set()),
        ("x = 1  # memlint: ignore[]\n", set()),
        ("x = 1  # memlint: ignore[flag-me]\r\ny = 2\r\n", {1}),
    ],
)
def test_what_a_comment_covers(text: str, lines: set[int]) -> None:
    assert covered(text) == lines


def test_a_comment_remembers_its_use() -> None:
    suppressions = read_suppressions("x  # memlint: ignore[flag-me, other]\n")
    assert suppressions.cover(1, CODE, NAME)
    assert [directive.used for directive in suppressions.directives] == [{"flag-me"}]


def test_misspelt_comments_are_known_as_such() -> None:
    texts = ["ignore[", "ignore[]", "ignores", "disable[x]", "noqa"]
    text = "".join(f"x  # memlint: {text}\n" for text in texts) + "x  # memlint: is a linter\n"
    kinds = [directive.kind for directive in read_suppressions(text).directives]
    assert kinds == [Kind.BROKEN] * len(texts)


def test_text_without_the_words_is_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenize.generate_tokens", None)
    assert not read_suppressions("x = 'memlint ignore'\n# nothing\n").directives


def test_many_comments_above_a_statement_take_no_longer_than_they_are() -> None:
    text = "# memlint: ignore\n" * 20_000 + "x = 1\n"
    started = time.monotonic()
    assert {d.first for d in read_suppressions(text).directives} == {20_001}
    assert time.monotonic() - started < 4
