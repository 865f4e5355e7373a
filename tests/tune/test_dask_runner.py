"""Measuring through Dask: on a local cluster, one of whose workers is killed in the middle."""

from __future__ import annotations

import os
import signal

import pytest
from test_runner import COPY, OFF_BY_ONE, crashing, jobs

import tir
from tir.script import parse
from tir.target import Target
from tir.tune.runner import Problem

distributed = pytest.importorskip("distributed", reason="the package distributed (extra dask) is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_killed_worker_loses_no_trial(tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        runner = tir.tune.DaskRunner(client, retries=3)
        problem = Problem(tir.IRModule.of(parse(COPY)), Target.of("llvm"))
        first = runner.measure(problem, jobs(COPY, OFF_BY_ONE, crashing()))
        assert [m.status for m in first] == ["ok", "wrong", "crashed"] and [m.number for m in first] == [0, 1, 2]
        pids = client.run(os.getpid)
        client.loop.call_later(0.3, os.kill, next(iter(pids.values())), signal.SIGKILL)
        found = runner.measure(problem, jobs(*[COPY] * 6))
        assert [m.number for m in found] == list(range(6)) and {m.status for m in found} == {"ok"}


def test_without_the_package_it_is_named(monkeypatch):
    import importlib

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    from tir.tune.dask_runner import DaskRunner

    with pytest.raises(tir.TirError, match=r"tensorir\[dask\]"):
        DaskRunner(None)
