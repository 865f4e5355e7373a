"""On a real GPU: `make test-gpu`. Every example against NumPy, on the device; skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from codegen.cuda.driver import has_device
from tests.gpu_examples import NAMES, load
from tests.test_cuda_intrin import CASES, MMA, mma_schedule, stored, wmma_schedule
from tir.dtype import DType
from tir.interp.numbers import storage_dtype


@pytest.fixture(autouse=True)
def device(request):
    if not has_device():
        if request.config.getoption("--need-gpu"):
            pytest.fail("make test-gpu needs a CUDA device, and there is none")
        pytest.skip("no CUDA device")


def inputs(func: tir.PrimFunc, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    made = []
    for b in func.buffers():
        shape = tuple(int(s) for s in b.shape)  # type: ignore[call-overload]
        if DType(b.dtype).is_float:
            made.append(rng.standard_normal(shape).astype(storage_dtype(b.dtype)))
        else:
            made.append(rng.integers(-4, 5, shape).astype(storage_dtype(b.dtype)))
    return made


@pytest.mark.parametrize("name", NAMES)
def test_example_agrees_with_numpy(name: str):
    module = load(name)
    func, sch = module.small()
    *given, out = inputs(func)
    tir.build(sch.mod, target="cuda").entry.on_copies(*given, out)
    want = module.reference(*(x.astype("float64") for x in given))
    np.testing.assert_allclose(out.astype("float64"), want, rtol=2e-2 if out.dtype == np.float16 else 1e-4, atol=1e-3)


@pytest.mark.parametrize("trans", [False, True], ids=["rows", "transposed"])
@pytest.mark.parametrize(("kind", "out"), CASES)
def test_wmma_on_the_device(kind: str, out: str, trans: bool):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (32, 32)), rng.integers(-3, 4, (32, 32))
    c = np.zeros((32, 32), out)
    mod = tir.build(wmma_schedule(kind, out, trans).mod, target="cuda")
    mod.entry.on_copies(stored(a, kind), stored(b, kind), c)
    np.testing.assert_array_equal(c, a @ (b.T if trans else b))


@pytest.mark.parametrize(("kind", "out", "trans"), MMA)
def test_mma_on_the_device(kind: str, out: str, trans: bool):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (32, 32)), rng.integers(-3, 4, (32, 32))
    c = np.zeros((32, 32), out)
    mod = tir.build(mma_schedule(kind, out, trans).mod, target="cuda")
    mod.entry.on_copies(stored(a, kind), stored(b, kind), c)
    np.testing.assert_array_equal(c, a @ (b.T if trans else b))


def test_torch_tensors_in_place():
    torch = pytest.importorskip("torch")
    func, sch = load("vector_add").small()
    shapes = [tuple(int(s) for s in b.shape) for b in func.buffers()]
    a, b, c = (torch.rand(s, device="cuda") for s in shapes)
    mod = tir.build(sch.mod, target="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    mod(a, b, c, stream=stream)
    stream.synchronize()
    torch.testing.assert_close(c, a + b)


def test_timing_and_report():
    func, sch = load("vector_add").small()
    mod = tir.build(sch.mod, target="cuda")
    arrays = [mod.array(x) for x in inputs(func)]
    assert mod.time_evaluator(number=5, repeat=2)(*arrays).median > 0
