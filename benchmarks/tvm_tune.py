"""MetaSchedule on one program, run by a Python that has TVM: ``python tvm_tune.py TRIALS THREADS SEED``.

Reads the program as a line of JSON, tunes it, answers with a line of JSON; then, for each line ``time``, the seconds of a
call.
"""

import json
import os
import runpy
import sys
import tempfile
import time

trials, threads, seed = (int(x) for x in sys.argv[1:4])
os.environ["TVM_NUM_THREADS"] = str(threads)
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what TVM logs must not look like an answer

import numpy as np  # noqa: E402
import tvm  # noqa: E402

try:
    from tvm.tir import Schedule  # noqa: F401

    dialect, block, flag = "tir", "block", ""
except ImportError:  # the newer spelling
    dialect, block, flag = "tirx", "sblock", "(s_tir=True)"
try:
    from tvm import meta_schedule as ms
except ImportError:
    from tvm.s_tir import meta_schedule as ms


TIMEOUT = 600.0  # seconds of a build: the first of a worker imports TVM, which takes minutes where the machine is busy


def program(text):
    text = text.replace("T.block(", f"T.{block}(").replace("@T.prim_func", f"@T.prim_func{flag}")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:  # TVM's parser needs the source on disk
        file.write(f"from tvm.script import {dialect} as T\n{text}")
        file.flush()
        return runpy.run_path(file.name)["main"]


def main():
    func = program(json.loads(sys.stdin.readline()))
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
            num_trials_per_iter=64 if trials >= 128 else 16,
            seed=seed,
            builder=ms.builder.LocalBuilder(timeout_sec=TIMEOUT),
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
    for param in func.params:
        shape = [int(s) for s in func.buffer_map[param].shape]
        data = np.random.default_rng(0).integers(-3, 4, shape).astype("float32")
        arrays.append(tvm.runtime.tensor(data) if hasattr(tvm.runtime, "tensor") else tvm.nd.array(data))
    module["main"](*arrays)
    for _ in sys.stdin:
        start = time.perf_counter()
        module["main"](*arrays)
        print(time.perf_counter() - start, file=answers, flush=True)


if __name__ == "__main__":
    main()
