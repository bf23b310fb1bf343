"""What the programs of false-sharing cannot say: wording, severity, confidence, places."""

from __future__ import annotations

import pytest

from memlint.findings import Confidence, Severity
from tests.rules.linting import found, only

RULE = "false-sharing"

CHUNKS = """\
import numpy as np
from numba import njit, prange

@njit(parallel=True)
def count(values, limit, workers):
    hits = {made}
    share = values.size // workers
    for w in prange(workers):
        for k in range(w * share, (w + 1) * share):
            if values[k] > limit:
                hits[{index}] += 1
    return hits
"""

THREADS = """\
import threading
import numpy as np

{lock}
def work(rows, totals, slot):
    for row in rows:
        {store}

def run(parts):
    totals = np.zeros(8, dtype=np.int64)
    threads = []
    for slot in range(8):
        threads.append(threading.Thread(target=work, args=(parts[slot], totals, slot)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def chunks(made: str, index: str = "w") -> str:
    return CHUNKS.format(made=made, index=index)


def test_a_compiled_loop_is_a_warning() -> None:
    finding = only(chunks("np.zeros(workers, dtype=np.int64)"), RULE)
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.HIGH
    assert "`hits[w]`" in finding.message
    assert "8 bytes apart, so that up to 8 threads share" in finding.message
    assert "np.zeros((n, 8))[:, 0]" in finding.help
    assert [(r.location.line, r.message) for r in finding.related] == [
        (6, "`hits` is made here"),
        (8, "the workers start here"),
    ]
    assert finding.fix is None


def test_the_distance_is_that_of_the_elements() -> None:
    message = only(chunks("np.zeros((workers, 4), dtype=np.int16)", "w, k % 4"), RULE).message
    assert "8 bytes apart" in message
    message = only(chunks("np.zeros(2 * workers, dtype=np.float32)", "2 * w"), RULE).message
    assert "8 bytes apart" in message
    help_ = only(chunks("np.zeros(workers, dtype=np.float32)"), RULE).help
    assert "np.zeros((n, 16))[:, 0]" in help_


@pytest.mark.parametrize(
    ("made", "index"),
    [
        ("np.zeros((workers, 8))", "w, 0"),
        ("np.zeros((workers, 8))[:, 0]", "w"),
        ("np.zeros(8 * workers)", "8 * w"),
        ("np.zeros((8, 64 * workers))", "k % 8, 64 * w"),
        ("np.zeros((workers, 16), dtype=np.float32)", "w, k % 16"),
    ],
)
def test_a_line_between_slots_is_enough(made: str, index: str) -> None:
    assert found(chunks(made, index), RULE) == []


def test_a_parameter_is_less_certain() -> None:
    text = chunks("np.zeros(workers)").replace("    hits = np.zeros(workers)\n", "")
    finding = only(text.replace("(values, limit", "(hits, values, limit"), RULE)
    assert finding.confidence is Confidence.MEDIUM
    assert "with elements of 8 bytes" in finding.message


def test_python_threads_are_information() -> None:
    finding = only(THREADS.format(lock="", store="totals[slot] += len(row)"), RULE)
    assert finding.severity is Severity.INFO
    assert "where the GIL is released or absent" in finding.message


def test_a_held_lock_is_silent() -> None:
    store = "with guard:\n            totals[slot] += len(row)"
    unguarded = THREADS.format(lock="guard = open(__file__)", store=store)
    assert len(found(unguarded, RULE)) == 1
    assert found(unguarded.replace("guard", "lock"), RULE) == []


def test_a_compiled_kernel_that_keeps_the_gil_is_silent() -> None:
    text = THREADS.format(lock="", store="totals[slot] += row if row > 0 else 0")
    text = text.replace("import threading\n", "import threading\nfrom numba import njit\n")
    text = text.replace("        totals", "        if row > 1:\n            totals")
    released = text.replace("def work", "@njit(nogil=True)\ndef work")
    assert only(released, RULE).severity is Severity.WARNING
    assert found(text.replace("def work", "@njit\ndef work"), RULE) == []


def test_processes_share_only_what_is_shared() -> None:
    text = """\
from multiprocessing import Process, RawArray

def work(wins, index, games):
    for _ in range(games):
        wins[index] += 1

def run(games):
    wins = {made}
    for index in range(4):
        Process(target=work, args=(wins, index, games)).start()
"""
    finding = only(text.format(made='RawArray("i", 4)'), RULE)
    assert finding.severity is Severity.INFO
    assert "processes store into `wins[index]`" in finding.message
    assert "4 bytes apart" in finding.message
    assert found(text.format(made="[0] * 4"), RULE) == []


def test_what_a_worker_makes_itself_is_its_own() -> None:
    text = """\
import threading
import numpy as np

def work(rows, slot):
    own = np.zeros(8)
    for row in rows:
        own[slot] += row

def run(parts):
    for slot in range(8):
        threading.Thread(target=work, args=(parts[slot], slot)).start()
"""
    assert found(text, RULE) == []
    shared = text.replace("    own = np.zeros(8)\n", "").replace(
        "import numpy as np\n", "import numpy as np\n\nown = np.zeros(8)\n"
    )
    assert len(found(shared, RULE)) == 1


def test_two_arrays_are_two_findings() -> None:
    text = chunks("np.zeros(workers)").replace(
        "                hits[w] += 1\n",
        "                hits[w] += 1\n                last[w] = k\n                last[w] += 1\n",
    )
    text = text.replace("    share =", "    last = np.zeros(workers)\n    share =")
    assert [f.location.line for f in found(text, RULE)] == [12, 13]


def test_small_results_are_filled_once() -> None:
    text = """\
import numpy as np
from numba import njit, prange

@njit(parallel=True)
def distances(points, out):
    for i in prange(points.shape[0]):
        for j in range(i + 1, points.shape[0]):
            out[i, j] = abs(points[i] - points[j])

def run():
    return distances(np.zeros(5), np.zeros((5, 5), dtype=np.float32))
"""
    assert found(text, RULE) == []


@pytest.mark.parametrize(("jobs", "count"), [("1", 0), ("4", 1)])
def test_one_job_shares_with_nobody(jobs: str, count: int) -> None:
    text = (
        "import numpy as np\n"
        "from joblib import Parallel, delayed\n\n"
        "def tally(worker, rows, out):\n"
        "    for row in rows:\n"
        "        if row > 0:\n"
        "            out[worker] += 1\n\n"
        "def run(parts):\n"
        "    out = np.zeros(4, dtype=np.int64)\n"
        f"    Parallel(n_jobs={jobs}, require='sharedmem')(\n"
        "        delayed(tally)(k, parts[k], out) for k in range(4)\n"
        "    )\n"
        "    return out\n"
    )
    assert len(found(text, RULE)) == count
