"""Worker processes that keep a file's troubles away from the run.

The parent hands out small batches and hears of every file as it is done.  A worker that
dies or hangs is replaced; the file that it was at gets one error, the rest of its batch is
handed out again.
"""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess

from memlint.late_dataclass import dataclass
from memlint.linter.file import FileResult, Job, Plan, failed

FILE_TIMEOUT = 60.0
_BATCH_BYTES = 200_000
_BATCH_FILES = 32
# Below this much work for each, a further worker costs more than it saves.
_BYTES_PER_WORKER = 60_000
_COLLECT_EVERY = 2_000_000
_WORKER_RECURSION_LIMIT = 3_000


def usable_cpus() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_method() -> str:
    """``fork`` where it is safe, as it costs milliseconds; else ``spawn``."""
    forks = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
    return "fork" if forks else "spawn"


def run_jobs(
    jobs: Sequence[Job],
    plans: Sequence[Plan],
    *,
    workers: int | None = None,
    method: str | None = None,
    timeout: float | None = None,
    on_result: Callable[[int, FileResult], None],
) -> None:
    """Lint every job and report each by its index, in whatever order they are done."""
    if not jobs:
        return
    context = multiprocessing.get_context(method or start_method())
    pool = _Pool(jobs, plans, context, timeout or FILE_TIMEOUT)
    pool.run(_worker_count(jobs, workers), on_result)


def _worker_count(jobs: Sequence[Job], asked: int | None) -> int:
    total = sum(job.size for job in jobs)
    useful = max(1, min(len(jobs), total // _BYTES_PER_WORKER + 1))
    return min(useful, asked or usable_cpus())


def _batches(jobs: Sequence[Job]) -> deque[list[int]]:
    """The jobs' indices in batches, large files first, so that no worker is left with one."""
    batches: deque[list[int]] = deque()
    batch: list[int] = []
    size = 0
    for index in sorted(range(len(jobs)), key=lambda i: -jobs[i].size):
        batch.append(index)
        size += jobs[index].size
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            batches.append(batch)
            batch, size = [], 0
    if batch:
        batches.append(batch)
    return batches


@dataclass(slots=True, eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    pending: deque[int] = field(default_factory=deque)
    since: float = 0.0


class _Pool:
    def __init__(
        self, jobs: Sequence[Job], plans: Sequence[Plan], context: BaseContext, timeout: float
    ) -> None:
        self._jobs, self._plans = jobs, plans
        self._context = context
        self._timeout = timeout
        self._batches = _batches(jobs)
        self._workers: dict[Connection, _Worker] = {}

    def run(self, count: int, on_result: Callable[[int, FileResult], None]) -> None:
        # What exists now is shared with the workers; the collector must not copy its pages.
        gc.freeze()
        try:
            for _ in range(min(count, len(self._batches))):
                self._hire()
            while self._workers:
                for index, result in self._next_results():
                    on_result(index, result)
        finally:
            gc.unfreeze()
            self._dismiss_all()

    def _hire(self) -> None:
        ours, theirs = self._context.Pipe()
        # A forked process holds the parent's ends too; unless it closes them, no worker
        # would ever hear that the parent has hung up.
        forked = self._context.get_start_method() == "fork"
        inherited = [ours, *self._workers] if forked else []
        # The process class of a concrete context; typeshed knows it only there.
        process = self._context.Process(  # type: ignore[attr-defined]
            target=_work, args=(theirs, inherited, self._jobs, self._plans), daemon=True
        )
        with _interrupts_held_back():
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers[ours] = worker
        self._hand_out(worker)

    def _hand_out(self, worker: _Worker) -> None:
        if not self._batches:
            self._dismiss(worker)
            return
        batch = self._batches.popleft()
        worker.pending.extend(batch)
        worker.since = time.monotonic()
        try:
            worker.connection.send(batch)
        except OSError:
            # It died between two batches; its end is noticed, and dealt with, by the reader.
            return

    def _next_results(self) -> Iterator[tuple[int, FileResult]]:
        oldest = min(worker.since for worker in self._workers.values())
        patience = max(0.0, oldest + self._timeout - time.monotonic())
        for connection in wait(list(self._workers), patience):
            assert isinstance(connection, Connection)
            yield from self._hear(self._workers[connection])
        now = time.monotonic()
        for worker in list(self._workers.values()):
            if now - worker.since > self._timeout:
                message = f"took longer than {self._timeout:g} seconds and was given up"
                yield from self._replace(worker, message)

    def _hear(self, worker: _Worker) -> Iterator[tuple[int, FileResult]]:
        try:
            index, result = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join()
            yield from self._replace(worker, _obituary(worker.process.exitcode))
            return
        worker.pending.remove(index)
        worker.since = time.monotonic()
        yield index, result
        if not worker.pending:
            self._hand_out(worker)

    def _replace(self, worker: _Worker, message: str) -> Iterator[tuple[int, FileResult]]:
        culprit = worker.pending.popleft()
        if worker.pending:
            self._batches.appendleft(list(worker.pending))
        self._dismiss(worker, force=True)
        yield culprit, failed(self._jobs[culprit].path, message)
        if self._batches:
            self._hire()

    def _dismiss(self, worker: _Worker, force: bool = False) -> None:
        del self._workers[worker.connection]
        worker.connection.close()
        if force:
            worker.process.kill()
        worker.process.join()

    def _dismiss_all(self) -> None:
        for worker in list(self._workers.values()):
            self._dismiss(worker, force=True)


def _obituary(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        try:
            cause = signal.Signals(-exitcode).name
        except ValueError:
            cause = f"signal {-exitcode}"
    else:
        cause = f"exit status {exitcode}"
    return f"the process that checked this file died ({cause}); the file was not checked"


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Keep Ctrl-C waiting until a new process can tell it to be meant for its parent."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(
    connection: Connection,
    inherited: Sequence[Connection],
    jobs: Sequence[Job],
    plans: Sequence[Plan],
) -> None:
    """The life of a worker: it ends when the parent closes the line, or is gone."""
    for other in inherited:
        other.close()
    _settle_in()
    collected = 0
    while True:
        try:
            batch = connection.recv()
        except (EOFError, OSError):
            return
        for index in batch:
            job = jobs[index]
            message = _packed(index, _guarded(plans[job.plan], job), job)
            try:
                connection.send_bytes(message)
            except OSError:
                return
            collected += job.size
            if collected > _COLLECT_EVERY:
                gc.collect()
                collected = 0


def _guarded(plan: Plan, job: Job) -> FileResult:
    try:
        return plan.run(job)
    except MemoryError:
        return failed(job.path, "could not be checked: not enough memory")
    except RecursionError:
        return failed(job.path, "could not be checked: nested too deeply")
    except BaseException as error:  # the last net under one file; the next goes on
        return failed(job.path, f"internal error of memlint: {type(error).__name__}: {error}")


def _packed(index: int, result: FileResult, job: Job) -> bytes:
    try:
        return pickle.dumps((index, result))
    except Exception as error:  # a rule put something into a finding that cannot be sent
        return pickle.dumps((index, failed(job.path, f"findings cannot be passed on: {error}")))


def _settle_in() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    warnings.simplefilter("ignore")
    # Trees and values are freed by reference counts; cycles are collected now and then.
    gc.disable()
    sys.setrecursionlimit(_WORKER_RECURSION_LIMIT)
    _keep_standard_output_clean()
    _die_quietly()


def _keep_standard_output_clean() -> None:
    """What a rule prints must not end up in the middle of a JSON report."""
    sys.stdout = sys.stderr
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed: then there is nowhere to send it
        return


def _die_quietly() -> None:
    """The parent says what became of a worker; no stack and no core need to."""
    faulthandler.disable()
    try:
        import resource
    except ImportError:  # not on this platform
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
