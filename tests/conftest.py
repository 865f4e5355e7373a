"""Options shared by the tests, and what is told of a worker that died."""

import contextlib
import faulthandler
import gc
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from tir.workers import ending

# workers share the cores: a thread that spins until another ends keeps the other from running
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


# no test asserts a time, its own on a loaded machine included
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write golden files from what the tests produce")
    parser.addoption("--need-gpu", action="store_true", help="fail, not skip, where there is no CUDA device")


def pytest_collection(session):
    """Each of several workers imports a share of the test files before it collects them all: in a fresh checkout each is then
    rewritten and compiled by one worker, not by all at once. What is collected stays: the collector need not look for garbage in it."""
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    folders = [session.config.invocation_params.dir / arg for arg in session.config.args]
    files = sorted(file for folder in folders if folder.is_dir() for file in folder.glob("**/test_*.py"))
    for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        if not (file.parent / "__init__.py").exists():  # collected by this name
            sys.path.insert(0, str(file.parent))
            with contextlib.suppress(Exception, pytest.skip.Exception):  # collecting says what it is
                importlib.import_module(file.stem)
            sys.path.pop(0)


def pytest_collection_finish(session):
    """The collector need not go through 24,000 collected tests again and again: a fifth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_runtest_protocol(item, nextitem):
    """A worker tells of a test once: of a setup and a teardown that pass it says nothing, unless they took long or printed. Each
    word costs both processes more than many a test."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.sections or report.duration > SHORT:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


SHORT = 0.005  # seconds: pytest lists no shorter ones
_RUNNERS = ("/_pytest/", "/pluggy/", "/xdist/", "/execnet/")  # in the paths of frames that say nothing


def _last_words(worker: dict) -> Path:
    return Path(tempfile.gettempdir()) / f"tir-{worker['testrunuid']}-{worker['workerid']}.fault"


def _stack(process: subprocess.Popen) -> str:
    """The functions of C that a process was in when it died, where the system left its memory here and there is a debugger."""
    for core in (Path("core"), Path(f"core.{process.pid}")):
        if core.is_file() and shutil.which("gdb"):
            command = ["gdb", "-batch", "-ex", "bt 30", sys.executable, core]
            lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
            if f"[New LWP {process.pid}]" in lines:  # not of another that died
                return "\n".join(["", *(line[:160] for line in lines if line.startswith("#"))])
    return ""


@pytest.hookimpl(trylast=True)  # after pytest's own, which writes to a stream that is lost in what others print
def pytest_configure(config):
    if hasattr(config, "workerinput"):
        config.last_words = _last_words(config.workerinput).open("w")
        faulthandler.enable(config.last_words)


def pytest_unconfigure(config):
    if hasattr(config, "workerinput"):
        faulthandler.enable()
        config.last_words.close()
        _last_words(config.workerinput).unlink(missing_ok=True)


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report):
    """Where a worker dies, its test's failure says how it ended, and where each of its threads was."""
    process = getattr(report.node.gateway._io, "popen", None)
    if process is not None:
        try:
            ended = f"it ended by {ending(process.wait(timeout=60))}"
        except subprocess.TimeoutExpired:
            ended = "its process lives on"
        report.longrepr += f"\n{ended}{_stack(process)}"
    words = _last_words(report.node.workerinput)
    if words.exists():
        lines = words.read_text(errors="replace").splitlines()
        report.longrepr += "\n".join(["", *(line for line in lines if not any(map(line.__contains__, _RUNNERS)))])
        words.unlink()


@pytest.fixture(scope="session")
def kept_programs(tmp_path_factory):
    """A folder for tests of what is done with programs, not of how they are compiled: what one has compiled the next one loads."""
    return tmp_path_factory.mktemp("kept_programs")


@pytest.fixture
def kept(kept_programs, monkeypatch):
    """Programs are compiled once for all tests that ask for this."""
    monkeypatch.setenv("TIR_CACHE_DIR", str(kept_programs))
