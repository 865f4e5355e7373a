"""Other libraries, each in its own process, which answers requests for one timing at a time."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence

from tir.tune.space import Env

WORKER = pathlib.Path(__file__).with_name("peer_worker.py")
# name in the table: (library, environment variables); the second NumPy makes OpenBLAS use AVX-512
KNOWN = {
    "NumPy": ("numpy", {}),
    "OpenBLAS SkylakeX": ("numpy", {"OPENBLAS_CORETYPE": "SkylakeX"}),
    "torch": ("torch", {}),
    "numba": ("numba", {}),
    "Halide": ("halide", {}),
}
PRODUCTS = ("gemm", "gemv", "batched_gemm", "attention")  # the works in which OpenBLAS takes part


def clock(threads: int) -> str:
    """The clock to use: for one thread its CPU time, which other load disturbs less; for several, wall-clock time."""
    return "thread_time" if threads == 1 else "perf_counter"


class Peer:
    """One library at a number of threads; its process starts on first use."""

    def __init__(self, name: str, python: str, threads: int):
        library, variables = KNOWN[name]
        count = str(threads)
        counts = {f"{lib}_NUM_THREADS": count for lib in ("OMP", "OPENBLAS", "MKL", "NUMBA", "HL")}
        self.name = name
        command = [python, str(WORKER), library, clock(threads), count]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env={**os.environ, **counts, **variables}, stdin=pipe, stdout=pipe, text=True
        )
        self._process_ready()

    def _process_ready(self) -> None:
        assert self._process.stdout
        if self._process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{self.name} could not be started: exit status {self._process.wait()}")

    def seconds(self, kind: str, sizes: Sequence[int], number: int) -> float | None:
        """Seconds per call, the mean of ``number`` calls; None if the library has no such operation."""
        if self.name == "OpenBLAS SkylakeX" and kind not in PRODUCTS:
            return None
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([kind, list(sizes), number]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} ended at {kind} {list(sizes)}: exit status {self._process.wait()}")
        return json.loads(answer)

    def close(self) -> None:
        self._process.communicate()


def available(python: str | None) -> dict[str, str]:
    """The Python for each known peer: this one, or ``python`` for libraries that only that one has."""
    found: dict[str, str] = {}
    for candidate in dict.fromkeys((sys.executable, python or sys.executable)):
        probe = "import importlib.util as u, sys; print(*[n for n in sys.argv[1:] if u.find_spec(n)])"
        libraries = sorted({library for library, _ in KNOWN.values()})
        done = subprocess.run([candidate, "-c", probe, *libraries], capture_output=True, text=True, check=True)
        for name, (library, _) in KNOWN.items():
            if library in done.stdout.split():
                found.setdefault(name, candidate)
    if not Env.of("llvm").has("avx512f"):
        found.pop("OpenBLAS SkylakeX", None)  # its code would die of an illegal instruction
    return {name: found[name] for name in KNOWN if name in found}
