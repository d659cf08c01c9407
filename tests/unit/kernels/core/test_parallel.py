"""Threads: how jobs are shared out, run at once or in turn, and which data they share."""

import multiprocessing
import os
import threading
import time

import numpy as np
import pytest

from tertulia.kernels import lda
from tertulia.kernels.core import parallel
from tertulia.kernels.core.atomics import barrier_wait, fetch_add
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import blocked
from tertulia.kernels.lda.counts import counts


def test_cuts_cover_every_item_once_and_balance_the_weight():
    offsets = np.concatenate([[0], np.cumsum(np.random.default_rng(1).integers(0, 9, size=500))])
    for parts in (1, 2, 3, 7, 900):
        ranges = parallel.cuts(offsets, parts)
        assert [i for a, b in ranges for i in range(a, b)] == list(range(500))
        assert max(offsets[b] - offsets[a] for a, b in ranges) <= offsets[-1] / parts + 9


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_results_come_in_the_order_of_the_jobs(threads):
    """With two threads and more, the first job ends after all the others."""
    others = threading.Event()
    done = []

    def job(i):
        if i == 0 and threads > 1:
            assert others.wait(10)
        done.append(i)
        if len(done) == 6:
            others.set()
        return i * i

    assert parallel.run(job, [(i,) for i in range(7)], threads) == [i * i for i in range(7)]
    assert done[-1] == (0 if threads > 1 else 6)
    assert parallel.run(job, [], threads) == []


def test_no_more_jobs_at_a_time_than_threads():
    now, most, lock, three = set(), [], threading.Lock(), threading.Barrier(3)

    def job(i):
        with lock:
            now.add(i)
            most.append(len(now))
        three.wait(10)  # all three are at work, or this is an error
        with lock:
            now.discard(i)
        three.wait(10)

    parallel.run(job, [(i,) for i in range(12)], 3)
    assert max(most) == 3


def test_a_job_that_calls_run_does_so_alone():
    def inner(_):
        return threading.current_thread()

    def outer(_):
        return set(parallel.run(inner, [(i,) for i in range(4)], 2)), threading.current_thread()

    found = parallel.run(outer, [(0,), (1,)], 2)
    assert all(threads == {own} for threads, own in found)
    assert parallel.threads_allowed(2) == 2


@pytest.mark.parametrize("broken", [0, 3])
def test_an_error_of_a_job_is_raised_when_all_have_stopped(broken):
    begun, ended, failed = set(), set(), threading.Event()

    def job(i):
        begun.add(i)
        if i == broken:
            failed.set()
            raise ValueError(f"job {i}")
        if i == 1 and broken == 0:
            assert failed.wait(10)  # so it is still at work when the other fails
        ended.add(i)

    with pytest.raises(ValueError, match=f"job {broken}"):
        parallel.run(job, [(i,) for i in range(4)], 2)
    assert ended == begun - {broken}
    assert parallel.run(lambda i: i, [(1,), (2,)], 2) == [1, 2]  # its threads are still good


def test_callers_at_the_same_time_do_not_wait_for_each_other():
    """Tasks that meet need threads of their own, however many callers there are."""
    meetings = []

    def call():
        both = threading.Barrier(2)
        parallel.run_at_once([lambda: meetings.append(both.wait(10))] * 2)

    callers = [threading.Thread(target=call) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)
    assert sorted(meetings) == [0] * 6 + [1] * 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    parallel.run(time.sleep, [(0.001,)] * 4, 3)
    child = multiprocessing.get_context("fork").Process(target=parallel.run, args=(time.sleep, [(0.001,)] * 4, 3))
    child.start()
    child.join(20)
    assert child.exitcode == 0


@kernel
def add_many(total, places):
    for place in places:  # read from memory: sums known beforehand would be added in one go, and none could get lost
        fetch_add(total, place, 1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_no_addition_is_lost(dtype):
    total, places = np.zeros(4, dtype=dtype), np.random.default_rng(1).integers(0, 4, size=500_000)
    parallel.run(add_many, [(total, places)] * 4, 4)
    assert np.array_equal(total, 4 * np.bincount(places))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_sweep_of_threads_keeps_counts_up_to_date(threads):
    generator = np.random.default_rng(3)
    words = freeze(generator.integers(0, 40, size=20_000), np.int32)
    documents = freeze(np.arange(0, 20_001, 50), np.int64)
    state = lda.init(words, documents, 40, 7, 0.1, 0.01, 1)
    z, counted = state.z.copy(), blocked.count(words, state.z, 40, 7)
    found = blocked.sweep(words, documents, z, counted, np.full(7, 0.1), 0.01, derive(5), threads=threads)
    assert found.changed == (z != state.z).sum() > 0
    assert np.array_equal(counted.cells[:, :7], counts(words, z, 40, 7))
    assert np.array_equal(counted.topics, np.bincount(z, minlength=7))


@kernel
def pass_on(barrier, thread, threads, numbers, rounds):
    """In turn, each thread writes down what the one before it wrote, plus one; all of them wait for each."""
    for r in range(rounds):
        if r % threads == thread:
            numbers[r + 1] = numbers[r] + 1
        if not barrier_wait(barrier, threads):
            return False
    return True


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_meet(threads):
    """Each sees what the others wrote before, also where there are more threads than cores."""
    numbers = np.zeros(301, dtype=np.int64)
    jobs = [(thread, threads, numbers, 300) for thread in range(threads)]
    assert parallel.run_with_barrier(pass_on, jobs) == [True] * threads
    assert numbers.tolist() == list(range(301))


def test_to_look_in_vain_makes_patience_shorter():
    """Who waits for a thread that comes late looks for a quarter of the time when they meet again."""
    barriers = []

    def job(barrier, thread, seconds, rounds):
        barriers.append(barrier)
        if thread == 1:
            time.sleep(seconds)
        return pass_on(barrier, thread, 2, np.zeros(rounds + 1, dtype=np.int64), rounds)

    parallel.run_with_barrier(pass_on, [(thread, 2, np.zeros(2, np.int64), 1) for thread in range(2)])  # compiles
    parallel.run_with_barrier(job, [(0, 0.2, 1), (1, 0.2, 1)])
    assert barriers[0][2] == 2


def test_nobody_waits_for_a_thread_that_failed():
    numbers = np.zeros(301, dtype=np.int64)

    def job(barrier, thread):
        if thread == 1:
            raise ZeroDivisionError("of one thread")
        return pass_on(barrier, thread, 2, numbers, 300)

    with pytest.raises(ZeroDivisionError, match="of one thread"):
        parallel.run_with_barrier(job, [(0,), (1,)])
    assert parallel.run_with_barrier(pass_on, [(thread, 2, numbers, 300) for thread in range(2)]) == [True, True]


def test_threads_that_began_end_where_another_cannot_be_had(monkeypatch):
    """A machine may refuse to start a thread."""
    submit, begun = parallel._pool.submit, []

    def refuse(*given):
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(submit(*given))
        return begun[0]

    monkeypatch.setattr(parallel._pool, "submit", refuse)
    numbers = np.zeros(301, dtype=np.int64)
    with pytest.raises(RuntimeError, match="new thread"):
        parallel.run_with_barrier(pass_on, [(thread, 3, numbers, 300) for thread in range(3)])
    begun[0].result(timeout=10)
