"""MetaSchedule on one program, run by a Python that has TVM: ``python tvm_tune.py TRIALS THREADS SEED CLOCK``.

Reads the program, its name and the shapes and types of its arrays as a line of JSON, tunes it, answers with a line of JSON;
then, for each line ``time``, the seconds of a call.
"""

import importlib
import json
import multiprocessing
import os
import runpy
import sys
import tempfile
import time

trials, threads, seed = (int(x) for x in sys.argv[1:4])
clock = getattr(time, sys.argv[4])
os.environ["TVM_NUM_THREADS"] = str(threads)
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what TVM logs must not look like an answer

import numpy as np  # noqa: E402
import tvm  # noqa: E402

try:
    from tvm.tir import Schedule  # noqa: F401

    dialect, renamed = "tir", {}
except ImportError:  # the newer spelling
    dialect = "tirx"
    renamed = {
        "T.block(": "T.sblock(",
        "T.alloc_buffer(": "T.sblock_alloc_buffer(",
        "@T.prim_func": "@T.prim_func(s_tir=True)",
    }
try:
    from tvm import meta_schedule as ms
except ImportError:
    from tvm.s_tir import meta_schedule as ms
try:
    from tvm.runtime.support import derived_object
except ImportError:
    from tvm.ir.utils import derived_object

local_builder = importlib.import_module(f"{ms.__name__}.builder.local_builder")

TIMEOUT = 60.0  # seconds of a build, and of a run


@derived_object
class ForkedBuilder(ms.builder.PyBuilder):
    """TVM's own build in children that are forks of this process.

    A worker of ``LocalBuilder`` is a new Python for each batch, which imports TVM's intrinsics for 20 CPU seconds before its
    first build; a fork has them.
    """

    def build(self, build_inputs):
        context = multiprocessing.get_context("fork")
        found = []
        for start in range(0, len(build_inputs), WORKERS):
            some = [Build(context, one) for one in build_inputs[start : start + WORKERS]]
            found.extend(one.result() for one in some)
        return found


class Build:
    """One build in a child."""

    def __init__(self, context, given):
        self.receiver, sender = context.Pipe(duplex=False)
        self.child = context.Process(target=_build, args=(given, sender), daemon=True)
        self.child.start()
        sender.close()

    def result(self):
        """The path of what was built, or the error; a child that takes too long is killed."""
        path, error = None, f"no answer in {TIMEOUT:.0f} s"
        try:
            if self.receiver.poll(TIMEOUT):
                path, error = self.receiver.recv()
        except EOFError:
            error = "the build died"
        self.child.kill()
        self.child.join()
        return ms.builder.BuilderResult(path, error)


WORKERS = os.cpu_count() or 1


def _build(given, sender):
    try:
        built = local_builder.default_build(given.mod, given.target, given.params)
        sender.send((local_builder.default_export(built), None))
    except Exception as error:
        sender.send((None, repr(error)))


def program(name, text):
    for ours, theirs in renamed.items():
        text = text.replace(ours, theirs)
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:  # TVM's parser needs the source on disk
        file.write(f"from tvm.script import {dialect} as T\n{text}")
        file.flush()
        func = runpy.run_path(file.name)[name]
    return func.with_attr(f"{dialect}.noalias", True)


def main():
    given = json.loads(sys.stdin.readline())
    func = program(given["name"], given["text"])
    target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": threads})
    tune = ms.tune_tir if hasattr(ms, "tune_tir") else ms.tir_integration.tune_tir
    compiled = ms.tir_integration.compile_tir
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = tune(
            mod=func,
            target=target,
            work_dir=folder,
            max_trials_global=trials,
            num_trials_per_iter=64 if trials >= 128 else trials // 2,
            strategy=ms.search_strategy.EvolutionarySearch(population_size=min(512, 4 * trials)),
            seed=seed,
            builder=ForkedBuilder(),
            runner=ms.runner.LocalRunner(timeout_sec=TIMEOUT),
        )
        took = time.perf_counter() - start
        if found is None or not any(r.run_secs for r in found.get_all_tuning_records()):
            print(
                json.dumps({"tvm_search_seconds": took, "tvm_failed": "no trial was measured"}),
                file=answers,
                flush=True,
            )
            return
        module = tvm.compile(compiled(found, func, target).mod, target=target)
        records = [r.run_secs for r in found.get_all_tuning_records() if r.run_secs]
    best = min(float(seconds) for run in records for seconds in run)
    print(json.dumps({"tvm_search_seconds": took, "tvm_best": best, "tvm_trials": trials}), file=answers, flush=True)
    arrays = []
    for shape, dtype in given["arrays"]:
        data = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
        arrays.append(tvm.runtime.tensor(data) if hasattr(tvm.runtime, "tensor") else tvm.nd.array(data))
    module["main"](*arrays)
    for _ in sys.stdin:
        module["main"](*arrays)
        start = clock()
        module["main"](*arrays)
        print(clock() - start, file=answers, flush=True)


if __name__ == "__main__":
    main()
