"""Options shared by the tests."""

import gc
import os

# workers share the cores: a thread that spins until another ends keeps the other from running
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write golden files from what the tests produce")
    parser.addoption("--need-gpu", action="store_true", help="fail, not skip, where there is no CUDA device")


def pytest_collection_finish(session):
    """The collector need not go through 24,000 collected tests again and again: a fifth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
