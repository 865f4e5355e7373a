"""On a real GPU: `make test-gpu`. Examples, golden cases, tensor-core intrinsics and users' programs on the device against
NumPy, the reference executor or torch; streams, events, graphs. Skipped where there is no device."""

from __future__ import annotations

import ctypes
import inspect

import numpy as np
import pytest

import tir
from codegen.cuda.device_arrays import DeviceArray
from codegen.cuda.driver import driver, has_device
from tests.cuda import test_golden_cuda as golden
from tests.cuda.test_cuda_intrin import CASES, MMA, mma_schedule, stored, wmma_schedule
from tests.gpu_examples import NAMES, architectures, arguments, is_near, load
from tests.interp.test_gpu_faults import GOOD, parse
from tests.user_programs import PROGRAMS, UserProgram, conv, dense, gpu, nn  # noqa: F401  (each registers its programs)
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


def test_a_model_computes_what_it_computes_on_the_cpu():
    from tests.graph.test_models_on_gpus import X, network

    model = tir.compile(network(), "cuda")
    there = model.module.array(X)
    for got, kept, want in zip(model(X), model(there), tir.compile(network())(X)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(kept.numpy(), got, rtol=1e-6)
    assert all(k.seconds > 0 for k in model.profile(X).kernels)


def skip_of_another_chip(sch):
    here = driver().arch
    if here not in architectures(sch, (here,)):
        pytest.skip(f"it is for {sch.target.attrs['arch']}, and this is {here}")


@pytest.mark.parametrize("name", NAMES)
def test_example_agrees_with_numpy(name: str):
    module = load(name)
    func, sch = module.small()
    skip_of_another_chip(sch)
    *given, out = arguments(module, func)
    tir.build(sch.mod, target="cuda").entry.on_copies(*given, out)
    is_near(module, out, given, 1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_example_at_its_full_size(name: str):
    """Against torch in float64 where that is here, else NumPy on some rows, which suffices to see a wrong index."""
    module = load(name)
    func, sch = module.full()
    skip_of_another_chip(sch)
    *given, out = arguments(module, func)
    mod = tir.build(sch.mod, target="cuda")
    mod.entry.on_copies(*given, out)
    want = reference(module, given)
    loose = 2e-2 if given[0].dtype == np.float16 else 2e-3
    np.testing.assert_allclose(
        out.astype("float64"), want, rtol=loose, atol=loose * max(1.0, float(np.abs(want).max()) / 50)
    )


def reference(module, given: list[np.ndarray]) -> np.ndarray:
    """The example's own reference, on float64; a product of large matrices by torch on the device, which takes no minute."""
    wide = [x.astype("float64") for x in given]
    if len(wide) == 2 and wide[0].ndim == wide[1].ndim == 2 and "gemm" in module.__name__:
        torch = pytest.importorskip("torch", reason="torch is not installed: tensors of another library")
        return (torch.from_numpy(wide[0]).cuda() @ torch.from_numpy(wide[1]).cuda()).cpu().numpy()
    return np.asarray(module.reference(*wide))


def supported(case: str) -> bool:
    from codegen.cuda.driver import driver

    return driver().arch in golden.NEWER.get(case, (driver().arch,)) or driver().arch >= "sm_90"


@pytest.mark.parametrize("case", golden.CASES)
def test_golden_case(case: str):
    if not supported(case):
        pytest.skip("needs a newer chip")
    values, wanted = golden.judged(case)
    tir.build(golden.scheduled(case).mod, target="cuda").entry.on_copies(*values.values())
    golden.compare(case, values, wanted)


UNFINISHED = ("tensor_core_tiles",)  # stops before its tensorize; lowering says so


def binds_threads(case: UserProgram) -> bool:
    return (
        case.name not in UNFINISHED
        and case.steps is not None
        and case.run
        and not case.gap
        and "bind(" in inspect.getsource(case.steps)
    )


GPU_PROGRAMS = [case for case in PROGRAMS if binds_threads(case)]


@pytest.mark.parametrize("case", GPU_PROGRAMS, ids=lambda c: c.name)
def test_user_program(case):
    """Programs that users schedule for GPUs, against the reference executor."""
    from tir.interp import run
    from tir.schedule.executed import awkward_inputs
    from tir.script import parse

    sch = tir.Schedule(parse(case.text), seed=1)
    name = next(iter(sch.mod))
    before = sch.mod
    case.steps(sch)
    wanted = awkward_inputs(before[name])
    got = [x.copy() if isinstance(x, np.ndarray) else x for x in wanted]
    run(before, *wanted, func=name)
    tir.build(sch.mod, target="cuda")[name].on_copies(*got)
    for one, other in zip(got, wanted):
        if isinstance(one, np.ndarray):
            np.testing.assert_allclose(one.astype("float64"), other.astype("float64"), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("good", list(GOOD), ids=lambda text: text.split("(")[0].split()[-1])
def test_kernels_of_the_planted_faults_without_their_fault(good: str):
    """On the device they compute what they do on the simulator."""
    from codegen.cuda.driver import driver
    from codegen.cuda.kernel import emit_kernel, source_of
    from codegen.cuda.nvrtc import compile_cubin
    from tir.interp.gpu import simulate

    kernel = parse(good)
    wanted = [a.copy() for a in GOOD[good].args]
    report = simulate(kernel, wanted)
    device, text = driver(), emit_kernel(kernel, kernel.name)
    module = device.load(compile_cubin(source_of([text]), device.arch).cubin)
    held = [DeviceArray.of(a, device) for a in GOOD[good].args]
    slots = [ctypes.c_uint64(a.address) for a in held]
    params = (ctypes.c_void_p * len(slots))(*(ctypes.addressof(s) for s in slots))
    function = device.function(module, text.name, text.dynamic)
    device.activate()
    device.launch(function, report.grid, report.block, text.dynamic, 0, ctypes.addressof(params))
    device.synchronize()
    for array, want in zip(held, wanted):
        np.testing.assert_allclose(array.numpy(), want, rtol=1e-3, atol=1e-3)
    device.unload(module)


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
    torch = pytest.importorskip("torch", reason="torch is not installed: tensors of another library")
    func, sch = load("vector_add").small()
    shapes = [tuple(int(s) for s in b.shape) for b in func.buffers()]
    a, b, c = (torch.rand(s, device="cuda") for s in shapes)
    mod = tir.build(sch.mod, target="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    mod(a, b, c, stream=stream)
    stream.synchronize()
    torch.testing.assert_close(c, a + b)


def test_a_graph_of_torch_takes_the_launches():
    torch = pytest.importorskip("torch", reason="torch is not installed: tensors of another library")
    mod = tir.build(golden.scheduled("several_kernels").mod, target="cuda")
    a, c = torch.rand(128, device="cuda"), torch.zeros(128, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    mod(a, c, stream=stream)  # memory between the kernels is made before the capture
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        mod(a, c, stream=stream)
    a.fill_(3.0)
    c.zero_()
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(c, torch.full_like(c, 8.0))


def test_timing_and_report():
    func, sch = load("vector_add").small()
    mod = tir.build(sch.mod, target="cuda")
    arrays = [mod.array(x) for x in inputs(func)]
    assert mod.time_evaluator(number=5, repeat=2)(*arrays).median > 0
