"""Golden cases of CUDA C: files of a program, a schedule, the C that comes of it, and what NumPy says it computes.

A file ``golden/cuda/<case>.txt`` has the sections ``before`` (a program in the dialect; ``before n=40`` gives symbolic
sizes for the run), ``steps`` (lines of Python on ``sch``; may be missing), ``numpy`` (assignments to the arguments that
the program writes, of arguments in float64 or int64) and ``cuda`` (the kernels as printed, without the common prelude).
To add a case write the first three and run ``pytest --update-golden``; read what it adds.

Of each case: NVRTC takes the kernels for two generations of chips and spills nothing; the simulator gives what NumPy
gives in several orders of threads, and finds nothing to report; the compiled kernels, executed as PTX, give the same.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_cases import read

import tir
from codegen.cuda import nvrtc
from codegen.cuda.kernel import KernelText, emit_kernel, source_of
from codegen.cuda.module import is_kernel
from codegen.cuda.prelude import functions_text
from codegen.ptx.module import PTXModule
from codegen.simulator import SimulatorModule
from tests.gpu_passes import ORDERS
from tir.dtype import DType
from tir.interp.numbers import decode_table, encode, is_small_float, storage_dtype
from tir.script import parse

GOLDEN = Path(__file__).parents[1] / "golden" / "cuda"
CASES = sorted(path.stem for path in GOLDEN.glob("*.txt"))
ARCHS = ("sm_80", "sm_90a")


@cache
def sections(case: str) -> dict[str, str]:
    return read(GOLDEN / f"{case}.txt")


def title(case: str) -> str:
    return next(t for t in sections(case) if t.split()[0] == "before")


@cache
def scheduled(case: str) -> tir.Schedule:
    sch = tir.Schedule(parse(sections(case)[title(case)]), seed=0, target="cuda")
    exec(sections(case).get("steps", ""), {"sch": sch, "tir": tir})
    return sch


@cache
def lowered(case: str) -> tir.IRModule:
    return tir.lower(scheduled(case).mod, target="cuda")


@cache
def kernels(case: str) -> list[KernelText]:
    """The kernels as C, under names that differ between cases."""
    found = [(n, f) for n, f in lowered(case).items() if is_kernel(f)]
    return [emit_kernel(f, re.sub("^main", case, n)) for n, f in found]


def printed(case: str) -> str:
    functions = dict(f for k in kernels(case) for f in k.functions)
    return "\n".join([functions_text(functions.values()), *(k.text for k in kernels(case))]).strip()


# ---------------------------------------------------------------- arguments


def arguments(case: str, seed: int = 0) -> dict[str, Any]:
    """Random arguments by name, in the types that NumPy stores them in."""
    rng = np.random.default_rng(seed)
    func = scheduled(case).mod["main"]
    sizes = {k: int(v) for k, v in (item.split("=") for item in title(case).split()[1:])}
    made: dict[str, Any] = {}
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            made[param.name] = sizes.get(param.name, 3)
            continue
        shape = [size(s, sizes) for s in buffer.shape]
        dtype = DType(buffer.dtype)
        if "tf32" in case:  # has 11 bits of a float's fraction: small integers are exact
            made[buffer.name] = rng.integers(-3, 4, shape).astype("float32")
        elif dtype.is_float and not is_small_float(dtype):
            made[buffer.name] = rng.standard_normal(shape).astype(storage_dtype(dtype))
        elif dtype.is_float:
            made[buffer.name] = encode(rng.integers(-4, 5, shape) / 2, dtype).astype(storage_dtype(dtype))
        else:
            low = 0 if dtype.code == "uint" else -7
            made[buffer.name] = rng.integers(low, 8, shape).astype(storage_dtype(dtype))
    return made


def size(e: Any, sizes: dict[str, int]) -> int:
    return int(e) if isinstance(e, (int, tir.IntImm)) else sizes[e.name]


def wide(case: str, values: dict[str, Any]) -> dict[str, Any]:
    """The arguments as NumPy computes with them: float64 or int64."""
    func = scheduled(case).mod["main"]
    types = {b.name: DType(b.dtype) for b in func.buffers()}
    out = {}
    for name, x in values.items():
        if name in types and is_small_float(types[name]):
            x = decode_table(types[name])[x]
        out[name] = x if not isinstance(x, np.ndarray) else x.astype("float64" if x.dtype.kind == "f" else "int64")
    return out


def judged(case: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Arguments for a run, and by NumPy what the outputs must be after it."""
    values = arguments(case)
    names = {"np": np, **wide(case, values)}
    before = {k: id(v) for k, v in names.items()}
    exec(sections(case)["numpy"], names)
    wanted = {k: v for k, v in names.items() if k in values and id(v) != before[k]}
    assert wanted, "the section numpy assigns to no argument"
    return values, wanted


def compare(case: str, values: dict[str, Any], wanted: dict[str, np.ndarray], note: str = "") -> None:
    got = wide(case, values)
    func = scheduled(case).mod["main"]
    bits = {b.name: DType(b.dtype) for b in func.buffers()}
    for name, want in wanted.items():
        dtype = bits[name]
        if not dtype.is_float:
            np.testing.assert_array_equal(got[name], want, err_msg=f"{name} {note}")
            continue
        exact = {64: 1e-12, 32: 2e-5, 16: 4e-3 if str(dtype) == "float16" else 2e-2, 8: 0.1}[dtype.bits]
        np.testing.assert_allclose(got[name], want, rtol=exact, atol=exact, err_msg=f"{name} {note}")


# ---------------------------------------------------------------- tests


@pytest.mark.parametrize("case", CASES)
def test_text(case: str, request):
    text = printed(case)
    if request.config.getoption("--update-golden"):
        kept = [(t, s) for t, s in sections(case).items() if t != "cuda"]
        body = "\n".join(f"== {t}\n{s}\n" for t, s in [*kept, ("cuda", text)])
        (GOLDEN / f"{case}.txt").write_text(body, encoding="utf-8")
        return
    assert "cuda" in sections(case), f"{case} does not say what is printed: run pytest --update-golden and read it"
    assert text == sections(case)["cuda"]


@pytest.mark.parametrize("case", CASES)
def test_simulator_agrees_with_numpy(case: str):
    values, wanted = judged(case)
    mod = SimulatorModule(scheduled(case).mod, tir.Target("cuda-sim"), lowered(case))
    for order in ORDERS:
        mod.order = order
        mine = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in values.items()}
        mod(*mine.values())
        assert all(report.ok for report in mod.last_report), str(mod.last_report)
        compare(case, mine, wanted, order)


def executed(case: str, order: str, ptx: str | None = None) -> None:
    """The kernels as PTX on the executor, compared with NumPy; ``ptx``: instead of that of the program's CUDA C."""
    values, wanted = judged(case)
    arch = NEWER.get(case, ARCHS)[0]
    mod = PTXModule(scheduled(case).mod, tir.Target(f"cuda-ptx -arch={arch} -order={order}"), lowered(case), ptx)
    mod(*values.values())
    compare(case, values, wanted, order)


@pytest.mark.parametrize("case", CASES)
def test_compiled_kernels_agree_with_numpy(case: str):
    executed(case, "forward")
    executed(case, "reverse")


NEWER = {"mma_float8": ("sm_90a",)}  # cases for chips from a generation on


@pytest.mark.parametrize("arch", ARCHS)
def test_nvrtc_takes_them_all(arch: str):
    """Together, as one text: that takes NVRTC a tenth of the time. Nothing spills; no array is outside of registers."""
    here = [k for case in CASES if arch in NEWER.get(case, ARCHS) for k in kernels(case)]
    made = nvrtc.compile_cubin(source_of(here), arch)
    assert {r.name for r in made.resources} == {k.name for k in here}
    bad = [r for r in made.resources if r.spill_stores or r.spill_loads or r.stack]
    assert not bad, bad


def test_there_are_many_and_each_is_its_own():
    assert len(CASES) >= 45
    keys = [(sections(case)[title(case)], sections(case).get("steps")) for case in CASES]
    assert len(set(keys)) == len(keys)
