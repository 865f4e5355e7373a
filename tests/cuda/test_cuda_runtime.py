"""What happens around a launch: arguments, sizes of the launch, streams, copies. A driver in the test takes the calls."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from foreign_tensors import Foreign

import tir
from codegen import container
from codegen.cuda import nvrtc
from codegen.cuda.device_arrays import DeviceArray, as_shadow
from codegen.cuda.driver import has_device
from codegen.cuda.module import CUDAModule, disassemble, stream_number
from codegen.cuda.plan import pack
from tir import BuildError, RunError
from tir.dtype import DType
from tir.script import parse

SCALE = """
@T.prim_func
def scale(a: T.handle, b: T.handle, factor: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n, 64), "float32")
    B = T.match_buffer(b, (n, 64), "float32")
    for i in T.thread_binding(n, thread="blockIdx.x"):
        for j in T.thread_binding(16, thread="threadIdx.x"):
            for v in T.vectorized(4):
                with T.block("B"):
                    vi = T.axis.spatial(n, i)
                    vj = T.axis.spatial(64, j * 4 + v)
                    B[vi, vj] = A[vi, vj] * factor
"""

TWO = """
@T.prim_func
def two(A: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    B = T.alloc_buffer((128,), "float32")
    for i in T.thread_binding(128, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(128, i)
            B[vi] = A[vi] + T.float32(1)
    for i in T.thread_binding(128, thread="threadIdx.x"):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = B[127 - vi] * T.float32(2)
"""


class RecordingDriver:
    """Stands for a device: memory is host memory, launches are kept, nothing runs."""

    arch = "sm_80"
    device_id = 0

    def __init__(self):
        self.launches: list[dict[str, Any]] = []
        self.memory: dict[int, Any] = {}
        self.calls: list[str] = []
        self.param_types: dict[str, tuple[DType, ...]] = {}

    def activate(self):
        self.calls.append("activate")

    def unload(self, module):
        self.calls.append("unload")

    def load(self, cubin: bytes) -> str:
        assert cubin[:4] == b"\x7fELF"
        return "module"

    def function(self, module: str, name: str, dynamic: int) -> str:
        return name

    def launch(self, function, grid, block, shared, stream, params):
        slots = ctypes.cast(params, ctypes.POINTER(ctypes.c_void_p))
        formats = {"handle": ctypes.c_uint64, "int32": ctypes.c_int32, "float32": ctypes.c_float}
        values = [
            formats[str(d)].from_address(slots[k]).value for k, d in enumerate(self.param_types.get(function, ()))
        ]
        self.launches.append(
            {"name": function, "grid": grid, "block": block, "shared": shared, "stream": stream, "values": values}
        )

    def allocate(self, size: int) -> int:
        made = np.zeros(size + 256, np.uint8)
        address = -(-made.ctypes.data // 256) * 256
        self.memory[address] = made
        return address

    def free(self, address: int) -> None:
        del self.memory[address]

    def copy_in(self, address: int, host: int, size: int) -> None:
        ctypes.memmove(address, host, size)

    copy_out = copy_in

    def synchronize(self, stream: int = 0) -> None:
        self.calls.append("synchronize")

    def event(self) -> list[float]:
        return [0.0]

    def record(self, event, stream):
        event[0] = float(len(self.launches))

    def seconds_between(self, first, last) -> float:
        return (last[0] - first[0]) * 1e-3

    def destroy_event(self, event):
        self.calls.append("destroy")


def built(text: str) -> tuple[CUDAModule, RecordingDriver]:
    mod = tir.build(parse(text), target="cuda -arch=sm_80")
    fake = RecordingDriver()
    fake.param_types = {n: t.params for n, t in mod.texts.items()}
    return mod.use_driver(fake), fake


class OnDevice:
    """A tensor of another library, in device memory, seen through ``__cuda_array_interface__``."""

    def __init__(self, array: np.ndarray, address: int | None = None):
        self.held = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "version": 3,
            "strides": array.strides,
            "data": (array.ctypes.data if address is None else address, False),
        }


def test_a_launch_gets_sizes_and_arguments():
    mod, fake = built(SCALE)
    a, b = mod.array(np.ones((5, 64), "float32")), mod.array(np.zeros((5, 64), "float32"))
    mod(a, b, 2.5)
    (launch,) = fake.launches
    assert launch["grid"] == (5, 1, 1) and launch["block"] == (16, 1, 1) and launch["shared"] == 0
    assert {a.address, b.address, 2.5} <= set(launch["values"])


def test_streams_by_number_and_by_object():
    mod, fake = built(SCALE)
    a, b = mod.array(np.ones((5, 64), "float32")), mod.array(np.zeros((5, 64), "float32"))

    class TorchStream:
        cuda_stream = 77

    mod["main" if "main" in mod else "scale"](a, b, 1.0, stream=TorchStream())
    assert fake.launches[0]["stream"] == 77
    assert stream_number(5) == 5 and stream_number(None) == 0


def test_tensors_of_other_libraries_are_used_in_place():
    mod, fake = built(SCALE)
    x, y = np.ones((4, 64), "float32"), np.zeros((4, 64), "float32")
    fine = -(-x.ctypes.data // 64) * 64
    mod(OnDevice(x, fine), OnDevice(y, fine + 4096), 1.0)
    assert {fine, fine + 4096} <= set(fake.launches[0]["values"])


def test_host_array_is_refused_with_the_way_out():
    mod, _ = built(SCALE)
    with pytest.raises(RunError, match=r"argument 1 `A` of \w+ is on the cpu; \w+ was built for cuda:0: copy it with"):
        mod(np.ones((5, 64), "float32"), np.ones((5, 64), "float32"), 1.0)


def test_on_copies_copies_in_and_out():
    mod, fake = built(TWO)
    a, c = np.ones(128, "float32"), np.full(128, 7, "float32")
    mod.entry.on_copies(a, c)
    assert [x["name"] for x in fake.launches] == list(mod.kernels)
    assert (c == 7).all()  # no kernel ran: what was copied in came out
    assert "synchronize" in fake.calls


def test_memory_between_kernels_is_the_same_for_both():
    mod, fake = built(TWO)
    a, c = mod.array(np.ones(128, "float32")), mod.array(np.zeros(128, "float32"))
    mod(a, c)
    first, second = (set(x["values"]) - {a.address, c.address} for x in fake.launches)
    assert len(first) == 1 and first == second


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((5, 63), "float32", r"`A` of \w+: expected shape \(5, 64\)"),
        ((5, 64), "float64", r"`A` of \w+: expected dtype float32, got float64"),
        ((5,), "float32", r"`A` of \w+: expected 2 dimensions"),
    ],
)
def test_arguments_that_do_not_fit(shape, dtype, message):
    mod, fake = built(SCALE)
    with pytest.raises(RunError, match=message):
        mod(mod.array(np.zeros(shape, dtype)), mod.array(np.zeros((5, 64), "float32")), 1.0)
    assert not fake.launches


def test_strides_are_checked():
    mod, _ = built(SCALE)
    x = np.zeros((5, 128), "float32")[:, ::2]
    with pytest.raises(RunError, match="compact row-major"):
        mod(OnDevice(x), mod.array(np.zeros((5, 64), "float32")), 1.0)


def test_addresses_that_vector_accesses_need_aligned():
    mod, _ = built(SCALE)
    x = np.zeros((5, 64), "float32")
    odd = -(-x.ctypes.data // 64) * 64 + 4
    with pytest.raises(RunError, match="not a multiple of 16 bytes"):
        mod(OnDevice(x, odd), mod.array(np.zeros((5, 64), "float32")), 1.0)


def test_overlap_is_refused():
    mod, _ = built(SCALE)
    a = mod.array(np.zeros((5, 64), "float32"))
    with pytest.raises(RunError, match="`B` of .* is written and overlaps argument 1"):
        mod(a, a, 1.0)


def test_no_thread_is_no_launch():
    mod, fake = built(SCALE)
    mod(mod.array(np.zeros((0, 64), "float32")), mod.array(np.zeros((0, 64), "float32")), 1.0)
    assert not fake.launches


def test_timing_counts_what_the_events_saw():
    mod, fake = built(SCALE)
    a, b = mod.array(np.ones((5, 64), "float32")), mod.array(np.zeros((5, 64), "float32"))
    timing = mod.time_evaluator(number=4, repeat=3)(a, b, 1.0)
    assert timing.results == (1e-3, 1e-3, 1e-3)  # a launch is a millisecond of this driver
    assert len(fake.launches) == 1 + 4 * 3 and fake.calls.count("destroy") == 2


def test_no_device_is_said_when_a_kernel_runs(monkeypatch):
    if has_device():
        pytest.skip("this machine has a CUDA device")
    mod = tir.build(parse(SCALE), target="cuda")
    assert mod.cubin()[:4] == b"\x7fELF" and mod.arch == "sm_80"
    with pytest.raises(
        RunError, match='no CUDA device here: lowering, the CUDA source .* target "cuda-sim" still work'
    ):
        mod.array(np.zeros(4))


def test_a_missing_nvrtc_is_a_sentence(monkeypatch):
    from codegen.cuda import nvrtc

    def missing():
        raise BuildError("compiling for CUDA needs NVRTC, which is not installed here: pip install 'tensorir[cuda]'")

    monkeypatch.setattr(nvrtc, "library", missing)
    monkeypatch.setenv("TIR_CACHE", "0")
    mod = tir.build(parse(SCALE), target="cuda")
    assert "__global__" in mod.source("cuda")
    with pytest.raises(BuildError, match=r"pip install 'tensorir\[cuda\]'"):
        mod.cubin()


def test_sources_and_report():
    mod, _ = built(SCALE)
    assert ".entry" in mod.source("ptx") and ".target sm_80" in mod.source("ptx")
    assert "T.launch_thread" in mod.source("lowered")
    assert "T.block" in mod.source("tir") and "__global__" in mod.source("cuda")
    report = mod.report()
    assert report.arch == "sm_80" and "registers" in str(report)
    (row,) = report
    assert row.threads == 16 and row.registers > 0 and row.spills == 0
    with pytest.raises(ValueError, match="no source 'llvm'; this module has tir, lowered, cuda, ptx, sass"):
        mod.source("llvm")


def test_too_large_a_block_is_refused_when_built():
    text = """
@T.prim_func
def f(A: T.Buffer((2048,), "float32")):
    for i in T.thread_binding(2048, thread="threadIdx.x"):
        with T.block("A"):
            vi = T.axis.spatial(2048, i)
            A[vi] = T.float32(0)
"""
    with pytest.raises(BuildError, match="2048"):
        tir.build(parse(text), target="cuda")


def test_too_much_shared_memory_is_refused_when_built():
    text = """
@T.prim_func
def f(A: T.Buffer((16384,), "float32"), B: T.Buffer((16384,), "float32")):
    S = T.alloc_buffer((16384,), "float32", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(128, thread="threadIdx.x"):
            for k in range(128):
                with T.block("S"):
                    vi = T.axis.spatial(16384, k * 128 + i)
                    S[vi] = A[vi]
        for i in T.thread_binding(128, thread="threadIdx.x"):
            for k in range(128):
                with T.block("B"):
                    vi = T.axis.spatial(16384, k * 128 + i)
                    B[vi] = S[16383 - vi]
"""
    with pytest.raises(BuildError, match="65536 B"):
        tir.build(parse(text), target="cuda")


def test_packing_of_small_types():
    assert pack(1.0, DType("float16")).value == 0x3C00
    assert pack(1.0, DType("bfloat16")).value == 0x3F80
    assert pack(-1, DType("int8")).value == -1
    assert pack(2**40, DType("int64")).value == 2**40


def test_dlpack_capsule_is_read_without_copying():
    class Tensor:
        """A NumPy array whose DLPack says that it is on the device."""

        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    x = np.arange(12, dtype="float16").reshape(3, 4)
    seen = as_shadow(Tensor(x), DType("float16"))
    assert seen is not None
    assert seen.shape == (3, 4) and seen.dtype == np.float16 and seen.ctypes.data == x.ctypes.data
    assert as_shadow(x, DType("float16")) is None


def test_device_tensors_of_small_floats_are_checked_by_their_type_not_their_size():
    mod, fake = built(
        SCALE.replace('"float32")\n    B', '"bfloat16")\n    B').replace(
            "A[vi, vj] *", 'T.Cast("float32", A[vi, vj]) *'
        )
    )
    a, b = Foreign(np.ones((8, 64), "uint16"), 4, device=2), Foreign(np.ones((8, 64), "float32"), 2, device=2)
    mod(a, b, 2.0)
    assert len(fake.launches) == 1
    mod(Foreign(a.held, 1, device=2), b, 2.0)  # the bits themselves
    for code, bits in ((2, a.held.view("float16")), (0, a.held), (10, np.ones((8, 64), "uint8"))):
        with pytest.raises(RunError, match="argument 1 `A` of .*bfloat16"):
            mod(Foreign(bits, code, device=2), b, 2.0)
    assert len(fake.launches) == 2


def test_device_tensors_of_bytes_are_not_taken_for_other_bytes():
    mod, _ = built(
        SCALE.replace('(n, 64), "float32")\n    B', '(n, 64), "int8")\n    B').replace(
            "A[vi, vj] *", 'T.Cast("float32", A[vi, vj]) *'
        )
    )
    b = Foreign(np.ones((8, 64), "float32"), 2, device=2)
    mod(Foreign(np.ones((8, 64), "int8"), 0, device=2), b, 2.0)
    for code in (1, 10, 12):
        with pytest.raises(RunError, match="argument 1 `A` of .*int8"):
            mod(Foreign(np.ones((8, 64), "uint8"), code, device=2), b, 2.0)


def test_device_arrays_free_their_memory():
    fake = RecordingDriver()
    made = DeviceArray.of(np.arange(10), fake)
    assert (made.numpy() == np.arange(10)).all() and len(fake.memory) == 1
    del made
    assert not fake.memory


# ---------------------------------------------------------------- calls after the first


def test_memory_between_kernels_is_made_once_and_nothing_waits():
    mod, fake = built(TWO)
    a, c = mod.array(np.ones(128, "float32")), mod.array(np.zeros(128, "float32"))
    mod(a, c)
    held = len(fake.memory)
    for _ in range(3):
        mod(a, c)
    assert len(fake.memory) == held and "synchronize" not in fake.calls


def test_streams_have_their_own_memory_between_kernels():
    mod, fake = built(TWO)
    a, c = mod.array(np.ones(128, "float32")), mod.array(np.zeros(128, "float32"))
    for stream in (0, 5, 0):
        mod(a, c, stream=stream)
    inner = [(set(x["values"]) - {a.address, c.address}).pop() for x in fake.launches]
    assert inner[0] == inner[1] == inner[4] == inner[5] and inner[2] == inner[3] != inner[0]


def test_the_next_call_has_its_own_arguments():
    mod, fake = built(SCALE)
    x, y = mod.array(np.ones((5, 64), "float32")), mod.array(np.ones((5, 64), "float32"))
    small = mod.array(np.ones((3, 64), "float32"))
    target, low = mod.array(np.zeros((5, 64), "float32")), mod.array(np.zeros((3, 64), "float32"))
    mod(x, target, 2.0)
    mod(y, target, 2.0)
    mod(small, low, 2.0)
    mod(y, target, 3.0)
    first, second, third, fourth = fake.launches
    assert x.address in first["values"] and y.address in second["values"] and x.address not in second["values"]
    assert third["grid"] == (3, 1, 1) and small.address in third["values"]
    assert 3.0 in fourth["values"] and y.address in fourth["values"]


class Tensor:
    """What calls ask of a tensor of torch."""

    device, dtype = "cuda:0", "torch.float32"

    def __init__(self, array: np.ndarray, offset: int = 0, number: int = 0):
        self.held, self.offset, self.number = array, offset, number

    @property
    def shape(self):
        return self.held.shape

    def stride(self):
        return tuple(s // 4 for s in self.held.strides)

    def data_ptr(self):
        return self.held.ctypes.data + self.offset

    def __dlpack_device__(self):
        return (2, self.number)

    def __dlpack__(self, stream=None):
        return self.held.__dlpack__()


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    made = np.zeros(int(np.prod(shape)) + 64, "float32")
    first = -made.ctypes.data % 64 // 4
    return made[first : first + int(np.prod(shape))].reshape(shape)


def test_tensors_of_torch_by_their_pointer():
    mod, fake = built(SCALE)
    a, b, c = (Tensor(aligned((4, 64))) for _ in range(3))
    mod(a, b, 1.0)
    mod(c, b, 1.0)
    assert {c.data_ptr(), b.data_ptr()} <= set(fake.launches[1]["values"])
    with pytest.raises(RunError, match="overlaps"):
        mod(b, b, 1.0)
    with pytest.raises(
        RunError, match=r"argument 1 `A` of scale is on cuda:1; scale was built for cuda:0: move the tensor"
    ):
        built(SCALE)[0](Tensor(aligned((4, 64)), number=1), b, 1.0)


def test_a_prepared_call_keeps_its_arrays():
    mod, fake = built(SCALE)
    call = mod.entry.prepared(
        mod.array(np.ones((5, 64), "float32")), mod.array(np.ones((5, 64), "float32")), 1.0
    )  # nobody else holds them
    assert len(fake.memory) == 2
    call()
    assert len(fake.launches) == 1 and set(fake.memory) <= set(fake.launches[0]["values"])


def test_what_is_no_argument_at_all():
    mod, _ = built(SCALE)
    with pytest.raises((RunError, TypeError), match="factor"):
        mod(mod.array(np.ones((5, 64), "float32")), mod.array(np.ones((5, 64), "float32")), [1.0])


def test_figures_of_chips_come_from_the_target():
    from codegen.cuda.report import chip

    for arch in ("sm_75", "sm_80", "sm_86", "sm_90a", "sm_120"):
        target = tir.Target("cuda", arch=arch)
        block, whole, threads, blocks = chip(arch)
        assert block == target.limit("max_dynamic_shared_memory_per_block") and whole - block in (0, 1024)
        assert threads == target.limit("max_threads_per_multiprocessor")
        assert blocks == target.limit("max_blocks_per_multiprocessor")
    assert chip("sm_90a") == (227 * 1024, 228 * 1024, 2048, 32) and chip("sm_1") == chip("sm_80")


SUM = """
@T.prim_func
def total(A: T.Buffer((64,), "float32"), factor: T.Buffer((), "float32"), B: T.Buffer((), "float32")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.reduce(64, i)
            with T.init():
                B[()] = T.float32(0)
            B[()] += A[vi] * factor[()]
"""


def test_arrays_without_axes_are_arguments():
    mod, driver = built(SUM)
    arrays = [mod.array(np.ones(shape, np.float32)) for shape in ((64,), (), ())]
    mod(*arrays)
    assert driver.launches[0]["values"] == [x.address for x in arrays] and arrays[2].numpy().shape == ()
    a, out = np.arange(64, dtype=np.float32), np.zeros((), np.float32)
    tir.build(parse(SUM), target="cuda-sim")(a, np.array(2, np.float32), out)
    assert out == 2 * a.sum()


def test_a_saved_module_loads_without_compiler_and_device(tmp_path, monkeypatch):
    pytest.importorskip("cuda.bindings.nvrtc")
    mod = tir.build(parse(SCALE), target=tir.Target("cuda", arch="sm_80", host="llvm"))
    mod.save(tmp_path / "scale.zip")

    def missing():
        raise BuildError("NVRTC is not installed")

    monkeypatch.setattr(nvrtc, "library", missing)
    loaded = tir.load(tmp_path / "scale.zip")
    assert isinstance(loaded, CUDAModule)
    for kind in ("tir", "lowered", "cuda"):
        assert loaded.source(kind) == mod.source(kind)
    assert loaded.cubin() == mod.cubin() and loaded.arch == "sm_80" and ".target sm_80" in loaded.source("ptx")
    assert str(loaded.report()).splitlines()[1:] == str(mod.report()).splitlines()[1:]
    tir.assert_structural_equal(loaded.lowered, mod.lowered)
    fake = RecordingDriver()
    fake.param_types = {n: t.params for n, t in loaded.texts.items()}
    a, b = (Foreign(np.ones((8, 64), "float32"), 2, device=2) for _ in range(2))
    loaded.use_driver(fake)(a, b, 2.0)
    assert len(fake.launches) == 1
    images = []
    fake.arch, fake.load = "sm_90a", lambda image: images.append(image)
    loaded.use_driver(fake)(a, b, 2.0)
    assert images == [loaded.source("ptx").encode() + b"\0"]  # the driver compiles it
    if not has_device():
        with pytest.raises(RunError, match="CUDA|device|driver"):
            tir.load(tmp_path / "scale.zip")(a, b, 2.0)


def test_a_kernel_by_default_rules_is_read_as_it_was_saved(tmp_path):
    """Its pipeline allocates one variable at two places, which are two variables when it is read."""
    pytest.importorskip("cuda.bindings.nvrtc")
    a, b = tir.te.placeholder((64, 64), name="a"), tir.te.placeholder((64, 64), name="b")
    k = tir.te.reduce_axis((0, 64), "k")
    c = tir.te.compute((64, 64), lambda i, j: tir.te.sum(a[i, k] * b[k, j], axis=k), name="c")
    target = "cuda -arch=sm_80"
    mod = tir.build(tir.tune.default(tir.te.create_prim_func([a, b, c]), target).mod, target)
    mod.save(tmp_path / "product.zip")
    loaded = tir.load(tmp_path / "product.zip")
    assert loaded.source("cuda") == mod.source("cuda") and loaded.cubin() == mod.cubin()
    assert loaded.about["arch"] == "sm_80" and loaded.path == (tmp_path / "product.zip").resolve()


def test_files_that_are_no_saved_modules_are_refused(tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    mod = tir.build(parse(SCALE), target="cuda -arch=sm_80")
    with pytest.raises(BuildError, match="must end in .zip"):
        mod.save(tmp_path / "scale.so")
    mod.save(tmp_path / "good.zip")
    data = (tmp_path / "good.zip").read_bytes()
    for name, content in {"cut.zip": data[:-100], "empty.zip": b"", "text.zip": b"hello"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BuildError, match=f"{name} is no whole file of Module.save"):
            tir.load(tmp_path / name)
    with pytest.raises(BuildError, match="no file"):
        tir.load(tmp_path / "none.zip")
    good = container.read(tmp_path / "good.zip")
    for launches in ([], [["scale_kernel", ["handle"], [1], 0, [1, 1, 1], 0]]):
        container.write(tmp_path / "other.zip", "cuda", good.code, {**good.about, "launches": launches})
        with pytest.raises(BuildError, match="launches kernels in another way"):
            tir.load(tmp_path / "other.zip")
    with pytest.raises(BuildError, match="no code to save"):
        tir.build(parse(SCALE), target="cuda-sim").save(tmp_path / "sim.zip")


def test_all_of_the_machine_code_reaches_the_disassembler(tmp_path, monkeypatch):
    tool = tmp_path / "nvdisasm"
    tool.write_text('#!/bin/sh\nwc -c < "$1"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert disassemble(b"x" * 12345).strip() == "12345"
    mod, _ = built(SCALE)
    assert mod.source("sass").strip() == str(len(mod.cubin()))
