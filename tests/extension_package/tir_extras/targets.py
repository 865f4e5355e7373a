"""A target: programs lowered as for a CPU, run by the reference executor, each call counted."""

from tir.interp import run
from tir.target import register_target
from tir.transform import cpu_pipeline, find


class CountingModule:
    """What ``tir.build(func, "counting")`` returns: ``module["main"](*arrays)``, and ``module.calls``."""

    def __init__(self, lowered):
        self.lowered = lowered
        self.calls = 0

    def __getitem__(self, name):
        def call(*args):
            self.calls += 1
            run(self.lowered, *args, func=name)

        return call


def _passes(target):
    return [find("doubling"), *cpu_pipeline()]


def _build(lowered, target):
    return CountingModule(lowered)


register_target("counting", _passes, _build, {"num_cores": 1})
