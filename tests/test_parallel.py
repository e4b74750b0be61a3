import threading

import joblib
import pytest

from crfkit._parallel import ThreadMap


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


def test_an_error_in_a_thread_reaches_the_caller():
    with ThreadMap(2) as threads, pytest.raises(ZeroDivisionError):
        threads(lambda i: 1 // (i - 7), range(20))
