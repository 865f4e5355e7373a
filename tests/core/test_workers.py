"""Work done by copies of a process: what they make, how they end, and what is left of them."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

from tir import workers
from tir.outcome import Outcome, log_level
from tir.workers import each

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="processes are copied on Linux")
BEFORE = "import os, signal, sys, time\nfrom tir import workers\nworkers.cores = lambda: 3\n"


def started(code: str) -> subprocess.Popen:
    """A process of its own, since this one has threads."""
    return subprocess.Popen([sys.executable, "-c", BEFORE + code], stdout=subprocess.PIPE, text=True)


def printed(code: str) -> str:
    with started(code) as process:
        found = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    return found


def test_what_copies_make_comes_with_its_place():
    code = """
with workers.copied():
    made = {place: take() for place, take in workers.each(lambda n: (n * n, os.getpid()), list(range(40)))}
    print(sorted(made) == list(range(40)), all(made[n][0] == n * n for n in made), made[39][1] == os.getpid())
    print(len({pid for _, pid in made.values()}) <= 4, list(workers.each(abs, [])))
"""
    assert printed(code) == "True True True\nTrue []\n"


def test_a_process_is_copied_beside_threads_that_wait_for_nothing_of_ours():
    code = """
import threading, types
ours = types.ModuleType("tir.made")
exec("def waiting(event): event.wait()", ours.__dict__)
event, work = threading.Event(), True
def working():
    while work:
        pass
print(workers.is_single())
for target in (event.wait, lambda: ours.waiting(event), working):
    thread = threading.Thread(target=target)
    thread.start()
    time.sleep(0.2)
    print(workers.is_single())
    event.set()
    work = False
    thread.join()
    event.clear()
    work = True
"""
    assert printed(code) == "True\nTrue\nFalse\nFalse\n"


def test_without_leave_nothing_is_copied(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "fork", None)
    assert [(n, take()) for n, take in each(lambda n: -n, [5, 6, 7])] == [(2, -7), (0, -5), (1, -6)]


def test_the_first_error_is_raised_and_nothing_begun_after_it():
    code = """
def work(n):
    time.sleep(0.3 if n == 0 else 0.0)
    if n < 2:
        raise ValueError(n)
    return n
with workers.copied():
    try:
        for _, take in workers.each(work, list(range(3000))):
            take()
    except ValueError as error:
        print(error)
"""
    assert printed(code) == "0\n"


def test_a_copy_ends_with_its_process():
    code = """
def work(n):
    if n < 9:
        os.write(1, f"{os.getpid()}\\n".encode())
        time.sleep(1000)
with workers.copied():
    list(workers.each(work, [1, 2, 3, 9]))
"""
    with started(code) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(3)]
        process.kill()
    until = time.monotonic() + 30
    while any(map(is_running, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(is_running, pids))


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_is_not_taken_ends_the_copies():
    code = """
with workers.copied():
    found = workers.each(lambda n: n if n == 3 else time.sleep(1000), [1, 2, 3])
    next(found)
    found.close()
    found = workers.each(lambda n: n if n > 1 else time.sleep(1000), [1, 2, 3])
    print([next(found)[1]() for _ in range(2)])
    found.close()
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        print("none")
"""
    assert printed(code) == "[3, 2]\nnone\n"


def test_errors_that_cannot_be_pickled_keep_their_text():
    class Odd(Exception):
        def __init__(self, one, other):
            super().__init__(f"{one} and {other}")

    def work():
        raise Odd(1, 2) from KeyError("x")

    outcome = Outcome.unpickled(Outcome.of(work, 0).pickled())
    with pytest.raises(Exception, match="Odd: 1 and 2") as caught:
        outcome.take()
    assert isinstance(caught.value.__cause__, KeyError)


def test_log_records_are_given_out_where_they_are_wanted(caplog: pytest.LogCaptureFixture):
    def work():
        logging.getLogger("tir.odd").info("%s is odd", "one")

    outcome = Outcome.of(work, logging.INFO)
    caplog.clear()
    outcome.take()
    assert not caplog.messages and not Outcome.of(work, logging.WARNING).records
    with caplog.at_level(logging.INFO, "tir.odd"):
        assert log_level() <= logging.INFO
        outcome.take()
    assert caplog.messages == ["one is odd"]


def test_a_warning_about_what_cannot_be_pickled_is_given():
    def work():
        warnings.warn("left open", ResourceWarning, stacklevel=2, source=threading.Lock())
        warnings.warn(Odd(1, 2), stacklevel=2)

    class Odd(UserWarning):
        def __init__(self, first, second):
            super().__init__(f"{first} and {second}")

    outcome = Outcome.unpickled(Outcome.of(work, 0).pickled())
    with pytest.warns(ResourceWarning, match="left open"), pytest.warns(RuntimeWarning, match="Odd: 1 and 2"):
        outcome.take()


def test_an_exit_code_is_named():
    assert [workers.ending(code) for code in (3, -signal.SIGKILL, -200)] == ["exit status 3", "SIGKILL", "signal 200"]
