"""``target="cuda"``: the module that launches kernels on a device."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from codegen.host import HostProgram
from codegen.module import Module, Timing
from tir.dtype import DType
from tir.errors import BuildError, RunError
from tir.expr import Call, Var
from tir.function import IRModule, PrimFunc
from tir.interp.arguments import bind_arguments
from tir.interp.numbers import encode, is_small_float, storage_dtype
from tir.op import string_arg
from tir.target import Target
from tir.visit import walk

from . import nvrtc
from .arrays import DeviceArray, as_shadow, shadow, where_is
from .driver import Driver, driver, has_device
from .kernel import KernelText, emit_kernel, source_of
from .report import Report, check_limits
from .writes import written_pointers

_OPTIONS = ("arch", "device_id", "fast_math", "max_threads_per_block", "max_shared_memory_per_block",
            "thread_warp_size", "max_num_threads", "keys", "tag", "max_registers")  # fmt: skip


def build_cuda(mod: IRModule, target: Target) -> CUDAModule:
    """``mod`` lowered, written as CUDA C and compiled. No device is needed. Raises ``BuildError``."""
    from tir.transform.pipeline import lower

    return CUDAModule(mod, target, lower(mod, target=target))


def is_kernel(func: PrimFunc) -> bool:
    return func.attrs.get("calling_conv") == "device_kernel"


class CUDAModule(Module):
    """Functions whose kernels run on a GPU.

    Arguments are tensors on the device: torch, CuPy, anything with DLPack or ``__cuda_array_interface__``, and
    ``mod.array(x)``, a copy of a NumPy array. They are used in place. ``mod["f"].on_copies(a, b, c)`` takes NumPy
    arrays: it copies all in, and those that are written out again. ``stream=`` takes a stream of torch or CuPy, or its
    number; without one the current default stream is used. A call returns when the kernels are enqueued.

    Raises ``RunError`` for an array in host memory, and where there is no device.
    """

    source_kinds = ("tir", "lowered", "cuda", "ptx", "sass")

    def __init__(self, source: IRModule, target: Target, lowered: IRModule):
        unknown = [name for name in target.attrs if name not in _OPTIONS]
        if unknown:
            raise BuildError(f"target cuda has no option {unknown[0]!r}; it has {', '.join(_OPTIONS)}")
        self.lowered = lowered
        self.kernels = {name: f for name, f in lowered.items() if is_kernel(f)}
        fast = bool(target.attrs.get("fast_math", False))
        self.texts: dict[str, KernelText] = {n: emit_kernel(f, n, fast) for n, f in self.kernels.items()}
        self.code = source_of(list(self.texts.values()))
        self._options = ("--use_fast_math",) if fast else ()
        if "max_registers" in target.attrs:
            self._options += (f"--maxrregcount={int(target.attrs['max_registers'])}",)
        self.device_id = int(target.attrs.get("device_id", 0))
        self._injected: Driver | None = None
        self._arch = str(target.attrs.get("arch", ""))
        self._binary: nvrtc.Binary | None = None
        self._loaded: dict[str, Any] | None = None
        self._lock = threading.Lock()
        hosts = {n: f for n, f in lowered.items() if n not in self.kernels}
        super().__init__(source, target, {n: CUDAFunction(self, n, f) for n, f in hosts.items()})
        check_limits(self)
        if _nvrtc_is_here():
            self.binary  # noqa: B018  errors of the compiler belong to building

    # ---------------------------------------------------------- code

    @property
    def arch(self) -> str:
        """The architecture that is compiled for: the target's, else this machine's, else sm_80."""
        if not self._arch:
            self._arch = self.device.arch if self._injected or has_device() else nvrtc.DEFAULT_ARCH
        return self._arch

    @property
    def binary(self) -> nvrtc.Binary:
        if self._binary is None:
            self._binary = nvrtc.compile_cubin(self.code, self.arch, self._file, self._options)
        return self._binary

    @property
    def _file(self) -> str:
        return next(iter(self.functions), "kernel")

    def cubin(self) -> bytes:
        """The machine code of all kernels."""
        return self.binary.cubin

    def report(self) -> Report:
        """What each kernel takes: registers, spills, shared memory, threads, and how many blocks fit an SM."""
        return Report.of(self)

    def _source(self, kind: str) -> str:
        if kind == "lowered":
            return self.lowered.script()
        if kind == "cuda":
            return self.code
        if kind == "ptx":
            return nvrtc.compile_ptx(self.code, self.arch, self._file, self._options)
        if kind == "sass":
            return disassemble(self.cubin())
        return self.ir.script()

    # ---------------------------------------------------------- device

    @property
    def device(self) -> Driver:
        """The device that kernels run on. Raises ``RunError`` where there is none."""
        return self._injected if self._injected is not None else driver(self.device_id)

    def use_driver(self, made: Any) -> CUDAModule:
        """Talk to ``made`` instead of the CUDA driver (tests; another way to reach a device)."""
        self._injected, self._loaded = made, None
        return self

    def array(self, host: Any) -> DeviceArray:
        """A copy of a NumPy array on the device."""
        return DeviceArray.of(host, self.device)

    def synchronize(self) -> None:
        """Wait until the default stream is done; a fault of a kernel is raised here."""
        self.device.synchronize()

    def kernel_handle(self, name: str) -> Any:
        if self._loaded is None:
            with self._lock:
                device = self.device
                device.activate()
                module = device.load(self.cubin())
                self._loaded = {
                    n: device.function(module, t.name, t.dynamic) for n, t in self.texts.items()
                }  # fmt: skip
        return self._loaded[name]

    def time_evaluator(
        self, name: str | None = None, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0.0
    ) -> Callable[..., Timing]:
        """As for every module, timed by events on the device: launches of one repeat follow each other."""
        function = self.entry if name is None else self[name]

        def evaluate(*args: Any, stream: Any = None) -> Timing:
            assert isinstance(function, CUDAFunction)
            return function.measure(args, number, repeat, min_repeat_ms, stream)

        return evaluate


def _nvrtc_is_here() -> bool:
    try:
        nvrtc.library()
    except BuildError:
        return False
    return True


def disassemble(cubin: bytes) -> str:
    """SASS by nvdisasm. Raises ``BuildError`` where that is not installed: it is in no wheel that we need."""
    tool = shutil.which("nvdisasm")
    if tool is None:
        raise BuildError("SASS needs nvdisasm of the CUDA toolkit on PATH; `mod.cubin()` has the machine code itself")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([tool, file.name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"nvdisasm failed: {done.stderr.strip()}")
    return done.stdout


def stream_number(stream: Any) -> int:
    """The driver's number of a stream of torch, CuPy, cuda.core, or a number."""
    if stream is None:
        return 0
    for attribute in ("cuda_stream", "ptr", "handle"):
        found = getattr(stream, attribute, None)
        if found is not None:
            return int(found)
    return int(stream)


_C = {
    "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32, "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float, "float64": ctypes.c_double, "bool": ctypes.c_bool, "handle": ctypes.c_uint64,
}  # fmt: skip


def pack(value: Any, dtype: DType) -> Any:
    """A kernel's argument as the C value whose address the driver takes."""
    if is_small_float(dtype):
        bits = int(encode(float(value), dtype))
        return ctypes.c_uint16(bits) if dtype.bits == 16 else ctypes.c_uint8(bits)
    if str(dtype) == "float16":
        return ctypes.c_uint16(int(np.float16(value).view(np.uint16)))
    return _C[str(dtype)](value)


class CUDAFunction:
    """A host function whose kernels run on the device; see :class:`CUDAModule`."""

    def __init__(self, module: CUDAModule, name: str, host: PrimFunc):
        self.module, self.name, self.func = module, name, host
        self.program = HostProgram(host, module.kernels)
        self.written = self._written()
        self._known: dict[Any, dict[Var, Any]] = {}

    def _written(self) -> set[Var]:
        """The pointers that some kernel writes through."""
        found: set[Var] = set()
        for node in walk(self.func.body):
            if isinstance(node, Call) and node.op == "tvm_call_packed":
                kernel = self.module.kernels[string_arg(node.args[0])]
                inside = written_pointers(kernel)
                found.update(a for a, p in zip(node.args[1:], kernel.params) if p in inside and isinstance(a, Var))
        return found

    def __call__(self, *args: Any, stream: Any = None) -> None:
        self._run(self._bind(args), stream_number(stream))

    def prepared(self, *args: Any, stream: Any = None) -> Callable[[], None]:
        """The call with its arguments checked once."""
        values, number = self._bind(args), stream_number(stream)
        return lambda: self._run(values, number)

    def on_copies(self, *args: Any) -> None:
        """Run on NumPy arrays: every array is copied to the device, and what is written copied back."""
        device = self.module.device
        held = [DeviceArray.of(a, device) if isinstance(a, np.ndarray) and a.ndim else a for a in args]
        self(*held)
        device.synchronize()
        for param, host, made in zip(self.func.params, args, held):
            buffer = self.func.buffer_map.get(param)
            if isinstance(made, DeviceArray) and buffer is not None and buffer.data in self.written:
                np.copyto(host, made.numpy())

    # ---------------------------------------------------------- arguments

    def _shadow(self, k: int, arg: Any) -> Any:
        buffer = self.func.buffer_map.get(self.func.params[k]) if k < len(self.func.params) else None
        if buffer is None:
            return arg
        seen = as_shadow(arg)
        if seen is not None:
            want = storage_dtype(buffer.dtype)
            return seen.view(want) if seen.dtype != want and seen.dtype.itemsize == want.itemsize == 1 else seen
        if isinstance(arg, np.ndarray) or hasattr(arg, "__dlpack__"):
            raise RunError(
                f"argument {k + 1} `{buffer.name}` of {self.name} is on {where_is(arg)}; {self.name} was built for "
                f"cuda:{self.module.device_id}: copy it with mod.array(x), or torch's x.cuda(), or call "
                f"mod[{self.name!r}].on_copies(...) to copy in and out"
            )
        return arg

    def _bind(self, args: Sequence[Any]) -> dict[Var, Any]:
        """Values of all variables; pointers as addresses. What depends on shapes only is looked up."""
        arrays = [self._shadow(k, a) for k, a in enumerate(args)]
        key = tuple(
            (a.shape, a.strides, a.dtype.str, a.flags.writeable, a.ctypes.data % 64)
            if isinstance(a, np.ndarray)
            else (type(a), a)
            for a in arrays
        )
        values = self._known.get(key)
        if values is None:
            found, _ = bind_arguments(self.func, arrays)
            values = dict(found)
            if len(self._known) > 256:
                self._known.clear()
            self._known[key] = values
        values = dict(values)
        spans = []
        for param, array in zip(self.func.params, arrays):
            buffer = self.func.buffer_map.get(param)
            if buffer is not None:
                values[buffer.data] = values[param] = array.ctypes.data
                spans.append((buffer, array.ctypes.data, array.ctypes.data + _extent(array)))
        self._check_overlap(spans)
        return values

    def _check_overlap(self, spans: list[Any]) -> None:
        if not self.func.attrs.get("tir.noalias", True):
            return
        for buffer, first, last in spans:
            if buffer.data not in self.written:
                continue
            for other, low, high in spans:
                if other is not buffer and other.data is not buffer.data and first < high and low < last:
                    raise RunError(
                        f"`{buffer.name}` of {self.name} is written and overlaps `{other.name}` in memory: copy one, or "
                        'give the function the attribute "tir.noalias": False'
                    )

    # ---------------------------------------------------------- launching

    def _run(self, values: dict[Var, Any], stream: int) -> None:
        module = self.module
        device = module.device
        held: list[Any] = []

        def allocate(dtype: DType, count: int) -> int:
            made = DeviceArray((count,), np.dtype(("V", max(1, dtype.bytes))), device)
            held.append(made)
            return made.address

        def launch(name: str, args: Sequence[Any], grid: Any, block: Any, shared: int) -> None:
            text = module.texts[name]
            self._check_launch(name, grid, block, shared)
            packed = [pack(value, dtype) for value, dtype in zip(args, text.params)]
            for value, dtype, need, param in zip(args, text.params, text.alignments, module.kernels[name].params):
                if dtype.is_handle and value % need:
                    raise RunError(
                        f"`{param.name}` of {name} starts at an address that is not a multiple of {need} bytes, as its "
                        "vector accesses need: copy the tensor, or do not vectorize that access"
                    )
            params = (ctypes.c_void_p * max(1, len(packed)))(*(ctypes.addressof(p) for p in packed))
            device.launch(module.kernel_handle(name), grid, block, shared, stream, ctypes.addressof(params))

        self.program.run(values, launch, allocate)
        if held:  # memory between launches is freed when its kernels are done
            device.synchronize(stream)

    def _check_launch(self, name: str, grid: Any, block: Any, shared: int) -> None:
        threads = block[0] * block[1] * block[2]
        most = self.module.target.limit("max_threads_per_block") or 1024
        if threads > most or block[2] > 64:
            raise RunError(f"{name}: a block of {block} has {threads} threads; at most {most}, and 64 along z")
        if grid[0] > 2**31 - 1 or grid[1] > 65535 or grid[2] > 65535:
            raise RunError(f"{name}: a grid of {grid} blocks; at most 2147483647 along x, 65535 along y and z")

    def measure(self, args: Any, number: int, repeat: int, min_repeat_ms: float, stream: Any) -> Timing:
        """Seconds of one call by events, the mean over ``number`` calls, ``repeat`` times."""
        if number < 1 or repeat < 1:
            raise ValueError(f"number and repeat must be at least 1, got {number} and {repeat}")
        run, at, device = self.prepared(*args, stream=stream), stream_number(stream), self.module.device
        run()
        first, last = device.event(), device.event()
        results: list[float] = []
        while len(results) < repeat:
            device.record(first, at)
            for _ in range(number):
                run()
            device.record(last, at)
            took = device.seconds_between(first, last)
            if took * 1e3 < min_repeat_ms:
                number = int(number * min(10.0, max(1.2, min_repeat_ms * 1e-3 / max(took, 1e-9)))) + 1
                continue
            results.append(took / number)
        device.destroy_event(first)
        device.destroy_event(last)
        return Timing(tuple(results))

    def __repr__(self) -> str:
        return f"<CUDA function {self.name}>"


def _extent(array: np.ndarray) -> int:
    """Bytes from the first element to the end of the last."""
    if not array.size:
        return 0
    return sum((n - 1) * s for n, s in zip(array.shape, array.strides)) + array.itemsize


__all__ = ["CUDAFunction", "CUDAModule", "build_cuda", "shadow"]
