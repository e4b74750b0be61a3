import threading
from contextlib import nullcontext
from unittest.mock import Mock

import joblib
import numpy as np
import pytest

from crfkit._parallel import (
    BLOCK_CELLS,
    CHUNKS_EACH,
    LONG_TOKENS,
    Chunk,
    ThreadMap,
    even_chunks,
    free_cores,
    make_blocks,
    return_memory,
)


@pytest.mark.parametrize("n_jobs", [1, 2, 4, -1, None])
def test_results_come_in_order(n_jobs):
    with ThreadMap(n_jobs) as threads:
        for _ in range(2):
            assert threads(lambda i: i * i, range(50)) == [i * i for i in range(50)]


def test_work_runs_in_threads_even_inside_a_process_backend():
    seen = set()
    with joblib.parallel_config(backend="loky"), ThreadMap(2) as threads:
        threads(lambda i: seen.add(threading.get_ident()), range(20))
    assert seen


def test_zero_jobs_is_an_error():
    with pytest.raises(ValueError, match="n_jobs=0"):
        ThreadMap(0)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_of_several_errors_the_one_of_the_first_item_is_raised(n_jobs):
    later = threading.Event()

    def fail(i):
        if i == 3 and n_jobs > 1:
            assert later.wait(5)  # a later item fails before this one
        if i >= 3:
            later.set()
            raise ValueError(f"item {i}")

    with ThreadMap(n_jobs) as threads, pytest.raises(ValueError, match="item 3"):
        threads(fail, range(20))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_leaves_what_was_not_begun(n_jobs):
    done = []

    def fail(i):
        done.append(i)
        raise ValueError

    with ThreadMap(n_jobs) as threads, pytest.raises(ValueError):
        threads(fail, range(100))
    assert len(done) <= n_jobs


def test_control_c_goes_before_errors():
    begun, failed = threading.Event(), threading.Event()
    caller = threading.get_ident()

    def work(i):
        if threading.get_ident() == caller:
            begun.set()
            assert failed.wait(5)
            raise KeyboardInterrupt
        assert begun.wait(5)
        failed.set()
        raise ValueError

    with ThreadMap(2) as threads, pytest.raises(KeyboardInterrupt):
        threads(work, range(20))


def test_an_error_in_a_thread_reaches_the_caller():
    with ThreadMap(2) as threads, pytest.raises(ZeroDivisionError):
        threads(lambda i: 1 // (i - 7), range(20))


def chunks_of(count):
    return [Chunk(i, np.array([10 * i, 10 * i + 10])) for i in range(count)]


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_blocks_have_chunks_for_each_thread(n_threads):
    blocks = make_blocks(chunks_of(100), [90_000] * 100, n_threads)
    assert [chunk.first for block in blocks for chunk in block] == list(range(100))
    most = CHUNKS_EACH * n_threads if n_threads > 1 else 1
    assert {len(block) for block in blocks[:-1]} == {most} and len(blocks[-1]) <= most


def test_a_sequence_that_threads_share_is_a_block_of_its_own():
    chunks = chunks_of(4)
    chunks[2] = Chunk(2, np.array([20, 21 + LONG_TOKENS]))
    assert [len(block) for block in make_blocks(chunks, [9, 9, 9, 9], 4)] == [2, 1, 1]


@pytest.mark.parametrize("total", [1_000, 9_999, 10_001, 150_000])
def test_chunks_are_even_in_number_and_about_equal(rng, total):
    offsets = np.append(np.arange(0, total, 20), total)
    chunks = even_chunks(offsets, 10_000)
    sizes = [chunk.tokens.stop - chunk.tokens.start for chunk in chunks]
    assert sum(sizes) == total and max(sizes) <= 10_000
    if total == 1_000:  # not worth being cut
        assert len(chunks) == 1
    else:
        assert len(chunks) % 2 == 0 and min(sizes) > max(sizes) - 20 * (len(chunks) + 1)


def test_a_long_sequence_is_a_chunk_of_its_own_beside_even_ones():
    offsets = np.array([0, 10, 20, 500, 510, 520])
    assert [len(chunk.offsets) - 1 for chunk in even_chunks(offsets, 30)] == [2, 1, 2]
    assert even_chunks(np.zeros(1, np.int64), 30) == []


def test_large_chunks_still_share_a_block():
    blocks = make_blocks(chunks_of(20), [BLOCK_CELLS // 5] * 20, 4)
    assert {len(block) for block in blocks} == {5}


def test_the_largest_chunks_are_blocks_of_their_own():
    assert [len(block) for block in make_blocks(chunks_of(3), [BLOCK_CELLS] * 3, 2)] == [1, 1, 1]


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_a_fit_takes_the_cores_that_nobody_else_has(backend, monkeypatch):
    # The processes of loky, which all tests share, would be started anew for another environment.
    with nullcontext() if backend == "loky" else joblib.parallel_config(backend=backend):
        assert joblib.Parallel(2)([joblib.delayed(free_cores)()] * 2) == [None, None]
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert free_cores() == joblib.cpu_count()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert free_cores() == 1
    with joblib.parallel_config(n_jobs=3):
        assert free_cores() is None and ThreadMap(None).n_workers == 3


@pytest.mark.parametrize("error", [None, OSError, AttributeError])
def test_memory_is_given_back_or_not_but_nothing_else_changes(monkeypatch, error):
    if error is not None:
        monkeypatch.setattr("ctypes.CDLL", Mock(side_effect=error))
    kept = np.arange(1 << 20)
    return_memory(kept.nbytes)
    assert (kept == np.arange(1 << 20)).all()
