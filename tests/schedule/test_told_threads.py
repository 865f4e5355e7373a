"""Where elements tell the threads that use them, no exact sets are built, which would have the same answer."""

from __future__ import annotations

import pytest

from tests.gpu_examples import NAMES, load
from tir.poly import Undecided, decide
from tir.schedule.invariants import shared_writes, thread_memory

TOLD = ("mma_gemm", "conv2d", "tensor_core_gemm")


@pytest.mark.parametrize("name", NAMES)
def test_sets_agree_that_threads_read_and_write_elements_of_their_own(name, monkeypatch):
    kernels, read, written = thread_memory._Kernels, [], []
    reads, determined = kernels._reads_its_own, shared_writes._determined

    def compared_reads(self, buffer, users):
        found = reads(self, buffer, users)
        if found:
            read.append(buffer)
            assert isinstance(decide(self._foreign_value, buffer, users), (Undecided, type(None)))
        return found

    def compared_writes(stores, unit, access, other):
        found = determined(stores, unit, access, other)
        written.extend(found)
        for thread in found:
            assert not shared_writes._at_once(stores, unit, access, other, thread)
        return found

    monkeypatch.setattr(kernels, "_reads_its_own", compared_reads)
    monkeypatch.setattr(shared_writes, "_determined", compared_writes)
    load(name).small()
    assert (read and written) or name not in TOLD


def test_a_kernel_of_fragments_needs_no_sets_for_its_threads(monkeypatch):
    def asked(*_):
        raise AssertionError

    monkeypatch.setattr(thread_memory._Kernels, "_flows", asked)
    monkeypatch.setattr(shared_writes, "_met", asked)
    load("mma_gemm").small()
