"""The sieve of workers' elements must let pass whatever may be one, and little else."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.places.slot import may_store_again


def passes(text: str, more: str = "") -> bool:
    return may_store_again(ast.parse(text).body[0], text, f"{text}\n{more}")


def worker(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"def work(w, hits, rows):\n{lines}"


STARTED = "pool.map(work, jobs)"


@pytest.mark.parametrize(
    "body",
    [
        "for row in rows:\n    hits[w] += 1",
        "for row in rows:\n    hits[w, row.kind] = row",
        "for row in rows:\n    hits[w][row] -= 1",
        "for row in rows:\n    slot = 8 * w\n    hits[slot] += 1",
        "for row in rows:\n    hits[get_thread_id()] += 1",
        "for row in rows:\n    me = get_thread_id()\n    hits[me] += 1",
        "i = 0\nwhile i < 9:\n    hits[w] = i\n    i += 1",
    ],
)
def test_elements_of_workers_pass(body: str) -> None:
    assert passes(worker(body), STARTED)


@pytest.mark.parametrize(
    "body",
    [
        "for row in rows:\n    hits[row] += 1",
        "for i, row in enumerate(rows):\n    key = row.name\n    hits[i] = hits[i] + row[key]",
        "for row in rows:\n    key = clean(row)\n    hits[key] = row",
        "for row in rows:\n    hits['seen'] = row",
        "i = 0\nwhile i < 9:\n    hits[i] = w\n    i += 1",
        "hits[w] = len(rows)",
        "for row in rows:\n    total = hits[w]",
    ],
)
def test_elements_of_the_loop_do_not(body: str) -> None:
    assert not passes(worker(body), STARTED)


@pytest.mark.parametrize(
    "more",
    [
        "Thread(target=work, args=(1,))",
        "def outer(job):\n    work(job, hits, rows)\npool.map(outer, jobs)",
        "pool.submit(lambda: work(1, hits, rows))",
        "class Worker(Thread):\n    def run(self):\n        work(self.rank, hits, rows)",
        "for w in prange(8):\n    work(w, hits, rows)",
    ],
)
def test_ways_to_workers(more: str) -> None:
    assert passes(worker("for row in rows:\n    hits[w] += 1"), more)


def test_what_is_only_called_runs_in_no_worker() -> None:
    text = worker("for row in rows:\n    hits[w] += 1")
    assert not passes(text, "work(1, hits, rows)\nThread(target=other)")


def test_a_helper_of_a_loop_passes() -> None:
    helper = worker("hits[w] += 1")
    assert passes(helper, "def run(self):\n    for row in rows:\n        work(self.w, hits, row)\n")
    assert not passes(helper, "def run(self):\n    work(self.w, hits, rows)\n")
