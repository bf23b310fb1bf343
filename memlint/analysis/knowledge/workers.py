"""Classes that start threads and processes, by what they start."""

from __future__ import annotations

POOLS = {
    "concurrent.futures.ThreadPoolExecutor": "thread",
    "concurrent.futures.ProcessPoolExecutor": "process",
    "multiprocessing.pool.ThreadPool": "thread",
    "multiprocessing.dummy.Pool": "thread",
    "multiprocessing.Pool": "process",
    "torch.multiprocessing.Pool": "process",
}
