"""The calls to the CUDA driver, against the signatures of the bindings that are installed; a device that answers in the
test stands for the real one."""

from __future__ import annotations

import ctypes
import gc
import inspect
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tir
from codegen.cuda.driver import Driver
from tir import RunError
from tir.script import parse

real = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed", exc_type=ImportError)


class Bindings:
    """``cuda.bindings.driver`` with a device behind it whose memory is the host's. Every call must fit the real
    signature, and be made with the right context current."""

    CUdevice_attribute = real.CUdevice_attribute
    CUfunction_attribute = real.CUfunction_attribute
    FREE = (
        "cuInit",
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",
        "cuCtxGetCurrent",
        "cuDeviceGetAttribute",
        "cuDeviceGetName",
        "cuGetErrorString",
        "cuModuleGetFunction",
    )
    OURS, OTHER = 1000, 2000

    def __init__(self):
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.memory: dict[int, Any] = {}
        self.current = threading.local()
        self.fails: dict[str, Any] = {}
        self.launched: list[list[bytes]] = []
        self.sizes: list[int] = []  # of the arguments of a launch

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        signature = inspect.signature(getattr(real, name))

        def call(*args: Any) -> tuple[Any, ...]:
            signature.bind(*args)
            self.calls.append((name, args))
            if name not in self.FREE:
                assert self.context() == self.OURS, f"{name} is called with context {self.context()}"
            failure = self.fails.get(name)
            if failure is not None:
                return (failure, None) if name != "cuLaunchKernel" else (failure,)
            answer = getattr(self, f"_{name}", lambda *_: ())(*args)
            return (real.CUresult.CUDA_SUCCESS, *answer)

        return call

    def context(self) -> int:
        return getattr(self.current, "value", 0)

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [args for n, args in self.calls if n == name]

    def _cuDeviceGetCount(self):
        return (1,)

    def _cuDeviceGet(self, number):
        return (real.CUdevice(number),)

    def _cuDeviceGetName(self, length, device):
        return (b"A chip\0\0\0",)

    def _cuDevicePrimaryCtxRetain(self, device):
        return (real.CUcontext(self.OURS),)

    def _cuCtxGetCurrent(self):
        return (real.CUcontext(self.context()),)

    def _cuCtxSetCurrent(self, context):
        self.current.value = int(context)
        return ()

    def _cuDeviceGetAttribute(self, attribute, device):
        return ({"MAJOR": 9, "MINOR": 0}[attribute.name.rsplit("_", 1)[1]],)

    def _cuModuleLoadData(self, image):
        assert image[:4] == b"\x7fELF"
        return (real.CUmodule(5),)

    def _cuModuleGetFunction(self, module, name):
        assert isinstance(name, bytes)
        return (real.CUfunction(6),)

    def _cuMemAlloc(self, size):
        made = np.zeros(size + 256, np.uint8)
        address = -(-made.ctypes.data // 256) * 256
        self.memory[address] = made
        return (real.CUdeviceptr(address),)

    def _cuMemFree(self, address):
        del self.memory[int(address)]
        return ()

    def _cuMemcpyHtoD(self, target, source, size):
        ctypes.memmove(int(target), source, size)
        return ()

    def _cuMemcpyDtoH(self, target, source, size):
        ctypes.memmove(target, int(source), size)
        return ()

    def _cuEventCreate(self, flags):
        return (real.CUevent(7),)

    def _cuEventElapsedTime(self, first, last):
        return (2.0,)

    def _cuGetErrorString(self, error):
        return (b"an illegal memory access was encountered",)

    def _cuLaunchKernel(self, f, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
        assert all(isinstance(n, int) for n in (gx, gy, gz, bx, by, bz, shared, stream, params))
        slots = ctypes.cast(params, ctypes.POINTER(ctypes.c_void_p))
        self.launched.append([ctypes.string_at(slots[k], size) for k, size in enumerate(self.sizes)])
        return ()


@pytest.fixture
def bindings() -> Bindings:
    return Bindings()


MIXED = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), h: T.float16, b: T.bfloat16, n: T.int64, c: T.int8, f: T.float64):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("A"):
            v = T.axis.spatial(64, i)
            A[v] = T.cast(h, "float32") + T.cast(b, "float32") + T.cast(n, "float32") + T.cast(c, "float32") + T.cast(f, "float32")
"""


def built(text: str, bindings: Bindings) -> Any:
    mod = tir.build(parse(text), target="cuda -arch=sm_80")
    return mod.use_driver(Driver(0, bindings))


def test_what_the_device_is(bindings):
    driver = Driver(0, bindings)
    assert driver.arch == "sm_90a" and driver.name == "A chip"
    assert len(bindings.named("cuDevicePrimaryCtxRetain")) == 1


def test_arguments_lie_as_the_kernel_reads_them(bindings):
    mod = built(MIXED, bindings)
    (text,) = mod.texts.values()
    bindings.sizes = [8 if d.is_handle else d.bytes for d in text.params]
    a = mod.array(np.zeros(64, "float32"))
    mod(a, 1.5, -2.0, -(2**40), -3, 0.1)
    (given,) = bindings.launched
    found = {str(d): x for d, x in zip(text.params, given)}
    assert found["float16"] == np.float16(1.5).tobytes() and found["bfloat16"] == b"\x00\xc0"
    assert found["int64"] == np.int64(-(2**40)).tobytes() and found["int8"] == np.int8(-3).tobytes()
    assert found["float64"] == np.float64(0.1).tobytes()
    assert found["handle"] == np.uint64(a.address).tobytes()


def test_copies_events_and_streams_fit_the_bindings(bindings):
    mod = built(MIXED, bindings)
    a = mod.array(np.arange(64, dtype="float32"))
    assert (a.numpy() == np.arange(64)).all()
    assert mod.time_evaluator(number=2, repeat=1)(a, 0.0, 0.0, 0, 0, 0.0).results == (1e-3,)
    mod.synchronize()
    mod.entry(a, 0.0, 0.0, 0, 0, 0.0, stream=SimpleNamespace(cuda_stream=88))
    assert bindings.named("cuLaunchKernel")[-1][8] == 88
    assert len(bindings.named("cuEventDestroy")) == 2


def test_the_context_of_another_library_is_given_back(bindings):
    mod = built(MIXED, bindings)
    a = mod.array(np.zeros(64, "float32"))
    bindings.current.value = Bindings.OTHER
    mod(a, 0.0, 0.0, 0, 0, 0.0)
    a.numpy()
    assert bindings.context() == Bindings.OTHER


def test_a_call_from_another_thread_finds_the_context(bindings):
    mod = built(MIXED, bindings)
    a = mod.array(np.zeros(64, "float32"))
    faults: list[BaseException] = []

    def work():
        try:
            mod(a, 0.0, 0.0, 0, 0, 0.0)
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not faults and len(bindings.launched) == 1


def test_code_is_unloaded_with_its_module(bindings):
    mod = built(MIXED, bindings)
    mod(mod.array(np.zeros(64, "float32")), 0.0, 0.0, 0, 0, 0.0)
    assert len(bindings.named("cuModuleLoadData")) == 1 and not bindings.named("cuModuleUnload")
    del mod
    gc.collect()
    assert len(bindings.named("cuModuleUnload")) == 1


def test_dynamic_shared_memory_is_allowed_before_the_launch(bindings):
    mod = built(
        """
@T.prim_func
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32")):
    S = T.alloc_buffer((128, 128), "float32", scope="shared.dyn")
    for i in range(128):
        for j in T.thread_binding(128, thread="threadIdx.x"):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = A[vi, vj]
    for i in range(128):
        for j in T.thread_binding(128, thread="threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = S[vj, vi]
""".replace(
            '    for i in range(128):\n        for j in T.thread_binding(128, thread="threadIdx.x"):\n            with T.block("S")',
            '    for b in T.thread_binding(1, thread="blockIdx.x"):\n        for i in range(128):\n          for j in T.thread_binding(128, thread="threadIdx.x"):\n            with T.block("S")',
        ).replace(
            '    for i in range(128):\n        for j in T.thread_binding(128, thread="threadIdx.x"):\n            with T.block("B")',
            '        for i in range(128):\n          for j in T.thread_binding(128, thread="threadIdx.x"):\n            with T.block("B")',
        ),
        bindings,
    )
    mod(mod.array(np.zeros((128, 128), "float32")), mod.array(np.zeros((128, 128), "float32")))
    ((_, attribute, size),) = bindings.named("cuFuncSetAttribute")
    assert attribute == real.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES and size == 65536
    assert bindings.named("cuLaunchKernel")[0][7] == 65536


def test_a_failing_launch_and_a_fault_of_a_kernel_are_sentences(bindings):
    mod = built(MIXED, bindings)
    a = mod.array(np.zeros(64, "float32"))
    bindings.fails["cuLaunchKernel"] = real.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    with pytest.raises(
        RunError, match=r"the launch of a kernel with grid .* failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
    ):
        mod(a, 0.0, 0.0, 0, 0, 0.0)
    bindings.fails = {"cuStreamSynchronize": real.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS}
    with pytest.raises(
        RunError, match="cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access"
    ):
        mod.synchronize()


def test_no_device_and_a_number_too_high(bindings):
    bindings._cuDeviceGetCount = lambda: (0,)
    with pytest.raises(RunError, match="no CUDA device here"):
        Driver(0, bindings)
    bindings._cuDeviceGetCount = lambda: (2,)
    with pytest.raises(RunError, match="no CUDA device 3: this machine has 2"):
        Driver(3, bindings)
