"""``target="cuda"``: the module that launches kernels on a device."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codegen.calls import Function, span_of
from codegen.host_program import HostProgram
from codegen.module import Module, Timing, repeated
from tir.aliases import shares_memory
from tir.analysis.effects import effects
from tir.buffer import Buffer
from tir.errors import BuildError, RunError
from tir.expr import Call, Var
from tir.function import IRModule, PrimFunc
from tir.interp.arguments import bind_arguments, overlap_error
from tir.interp.dlpack import is_array
from tir.interp.named_arguments import in_order, parameter_names
from tir.interp.numbers import storage_dtype
from tir.launches import place_of
from tir.node import frozendict
from tir.op import string_arg
from tir.target import Target
from tir.visit import walk

from . import cuda_files, launcher, nvrtc
from .device_arrays import DeviceArray, as_shadow, device_number, where_is
from .driver import Driver, arch_of, driver
from .kernel import KernelText, emit_kernel, source_of
from .plan import Address, Plan
from .report import Report, check_limits


def build_cuda(mod: IRModule, target: Target) -> CUDAModule:
    """``mod`` lowered, written as CUDA C and compiled. No device is needed. Raises ``BuildError``."""
    from tir.transform.pipeline import lower

    from ..bounds_check import check_bounds

    check_bounds(mod)
    return CUDAModule(mod, target, lower(mod, target=target))


def is_kernel(func: PrimFunc) -> bool:
    return func.attrs.get("calling_conv") == "device_kernel"


class CUDAModule(Module):
    """Functions whose kernels run on a GPU.

    Arguments are tensors on the device: torch, CuPy, anything with DLPack or ``__cuda_array_interface__``, and
    ``mod.array(x)``, a copy of a NumPy array. They are used in place. ``mod["f"].on_copies(a, b, c)`` takes NumPy
    arrays, copies all to the device, and copies the written ones back. ``stream=`` takes a stream of torch or CuPy, or
    its number; the default is the current default stream. A call returns when the kernels are enqueued.

    Raises ``RunError`` for an array in host memory, and if there is no device.
    """

    source_kinds = ("tir", "lowered", "cuda", "ptx", "sass")
    code_kind = "cuda"
    function_type: type[CUDAFunction]
    path: Path | None = None  # of the file that it was read from, whose description is `about`
    about: Mapping[str, Any] = frozendict()

    def __init__(
        self,
        source: IRModule,
        target: Target,
        lowered: IRModule,
        loaded: tuple[nvrtc.Binary | None, str | None] | None = None,
    ):
        """``loaded``: the machine code and the PTX of a module that was written to a file."""
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
        self._binary, self._ptx = (None, None) if loaded is None else loaded
        self._loaded: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self.launching = threading.Lock()
        self.plans: dict[Any, Plan] = {}  # by function and the shapes of its arguments
        self._memory: dict[int, list[DeviceArray]] = {}
        hosts = {n: f for n, f in lowered.items() if n not in self.kernels}
        super().__init__(source, target, {n: self.function_type(self, n, f) for n, f in hosts.items()})
        check_limits(self)
        self._compile()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with its machine code, so that what reads it needs no compiler."""
        loaded = None if self._binary is None else (self._binary, self._ptx)
        return CUDAModule, (self.ir, self.target, self.lowered, loaded)

    # ---------------------------------------------------------- code

    def _compile(self) -> None:
        """Errors of the compiler belong to building; where there is none, the source alone is made."""
        if _nvrtc_is_here():
            self.binary  # noqa: B018

    @property
    def arch(self) -> str:
        """The architecture to compile for: the target's, else this machine's, else sm_80."""
        if self._binary is not None:
            return self._binary.arch
        if not self._arch:
            self._arch = self._injected.arch if self._injected else arch_of(self.target)
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

    def _image(self, arch: str) -> bytes:
        """What to load on a device: machine code, or from a file that was saved for another architecture, PTX."""
        if self._ptx is None or arch.rstrip("af") == self.arch.rstrip("af"):
            return self.cubin()
        return self._ptx.encode() + b"\0"

    def save(self, path: str | Path, header: str | Path | None = None) -> None:
        """Write a ``.zip`` with the program, its CUDA source, PTX and machine code. :func:`tir.load` reads it, and needs
        neither NVRTC nor a device for that. Or write a ``.c`` with the machine code, the PTX and functions that launch the
        kernels by the driver's API, and its ``header``, by default beside it.

        On a GPU of another architecture the driver compiles the PTX (which works from the saved architecture upwards,
        and for names like sm_90a on that one only). Raises ``BuildError`` for another suffix, or without NVRTC.
        """
        if Path(path).suffix == launcher.SUFFIX:
            launcher.write(Path(path), None if header is None else Path(header), self)
        elif header is not None:
            raise BuildError(f"a header is for what C compiles, a {launcher.SUFFIX}, and not for {Path(path).name!r}")
        else:
            cuda_files.write(Path(path), self)

    @property
    def report(self) -> Report:
        """What each kernel uses: registers, spills, shared memory, threads, and how many blocks fit an SM."""
        return Report.of(self)

    def _source(self, kind: str) -> str:
        if kind == "lowered":
            return self.lowered.script()
        if kind == "cuda":
            return self.code
        if kind == "ptx" and self._ptx is not None:
            return self._ptx
        if kind == "ptx":
            return nvrtc.compile_ptx(self.code, self.arch, self._file, self._options)
        if kind == "sass":
            return disassemble(self.cubin())
        return self.ir.script()

    # ---------------------------------------------------------- device

    def __call__(self, *args: Any, stream: Any = None, **named: Any) -> None:
        """The entry function, on ``stream``."""
        functions = self.functions
        function = next(iter(functions.values())) if len(functions) == 1 else self.entry
        assert isinstance(function, CUDAFunction)
        function(*args, stream=stream, **named)

    @property
    def device(self) -> Driver:
        """The device that kernels run on. Raises ``RunError`` if there is none."""
        return self._injected if self._injected is not None else driver(self.device_id)

    def use_driver(self, made: Any) -> CUDAModule:
        """Use ``made`` instead of the CUDA driver (for tests, or another way to reach a device)."""
        self._injected, self._loaded = made, None
        self.plans.clear()
        self._memory.clear()
        return self

    def workspace(self, stream: int, plan: Plan) -> int:
        """The address of memory for the buffers between the kernels of ``plan``, one piece per stream: calls on a stream
        run in order, so they can share it.

        When it grows the old memory is kept, since a captured graph may still use it.
        """
        size = plan.temporary
        held = self._memory.setdefault(stream, [])
        if not held or held[-1].nbytes < size:
            grown = max(size, 2 * held[-1].nbytes if held else 0)
            held.append(DeviceArray((grown,), np.uint8, self.device))
        return held[-1].address

    def array(self, host: Any) -> DeviceArray:
        """A copy of a NumPy array on the device."""
        return DeviceArray.of(host, self.device)

    def synchronize(self) -> None:
        """Wait until the default stream is done; raises ``RunError`` for a fault of a kernel."""
        self.device.synchronize()

    def kernel_handle(self, name: str) -> Any:
        if self._loaded is None:
            with self._lock:
                device = self.device
                module = device.load(self._image(device.arch))
                weakref.finalize(self, device.unload, module).atexit = False
                self._loaded = {n: device.function(module, t.name, t.dynamic) for n, t in self.texts.items()}
        return self._loaded[name]

    @property
    def imported_modules(self) -> tuple[CUDAModule]:
        """The module itself. (In TVM the device code is a module inside the host's.)"""
        return (self,)

    def time_evaluator(
        self,
        func_name: str | None = None,
        dev: Any = None,
        number: int = 10,
        repeat: int = 3,
        min_repeat_ms: float = 0.0,
    ) -> Callable[..., Timing]:
        """As for every module, but timed by events on the device; the launches of one repeat run back to back."""
        function = self.entry if func_name is None else self[func_name]

        def evaluate(*args: Any, stream: Any = None, **named: Any) -> Timing:
            assert isinstance(function, CUDAFunction)
            args = in_order(function.func, args, named)
            return function.measure(args, number, repeat, min_repeat_ms, stream)

        return evaluate


def _nvrtc_is_here() -> bool:
    try:
        nvrtc.library()
    except BuildError:
        return False
    return True


def disassemble(cubin: bytes) -> str:
    """SASS by nvdisasm. Raises ``BuildError`` if nvdisasm is not installed (no dependency includes it)."""
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


class CUDAFunction(Function):
    """A host function whose kernels run on the device; see :class:`CUDAModule`."""

    def __init__(self, module: CUDAModule, name: str, host: PrimFunc):
        self.module, self.name, self.func = module, name, host
        self.program = HostProgram(host, module.kernels)
        self.written = self._written()
        self._pairs = self._may_overlap()
        self.alignments = self._needed_alignments()

    def _written(self) -> set[Var]:
        """The pointers that some kernel writes through."""
        found: set[Var] = set()
        for name, call in self._launches():
            kernel = self.module.kernels[name]
            inside = effects(kernel.body).writes
            found.update(place_of(a)[0] for a, p in zip(call.args[1:], kernel.params) if p in inside)
        return found

    def __call__(self, *args: Any, stream: Any = None, **named: Any) -> Any:
        plan, addresses = self._plan(in_order(self.func, args, named) if named else args)
        self._run(plan, addresses, stream_number(stream))
        return plan.result

    def outputs(self) -> frozenset[int]:
        buffers = [self.func.buffer_map.get(p) for p in self.func.params]
        return frozenset(k for k, b in enumerate(buffers) if b is not None and shares_memory(b, self.written))

    def _seen(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        names = parameter_names(self.func)
        return {n: self._shadow(names.index(n), a) if n in names else a for n, a in given.items()}

    def _zeros(self, shape: Sequence[int], buffer: Buffer) -> DeviceArray:
        return DeviceArray.of(np.zeros(shape, storage_dtype(buffer.dtype)), self.module.device)

    def prepared(self, *args: Any, stream: Any = None) -> Callable[[], None]:
        """The call, its arguments checked once in advance."""
        plan, addresses = self._plan(args)
        number = stream_number(stream)

        def call(held: Any = args) -> None:
            self._run(plan, addresses, number)

        return call

    def copies(self, args: Sequence[Any]) -> list[Any]:
        device = self.module.device
        is_array = [p in self.func.buffer_map for p in self.func.params]
        held = [DeviceArray.of(a, device) if b and isinstance(a, np.ndarray) else a for a, b in zip(args, is_array)]
        return [*held, *args[len(held) :]]  # too many arguments: the call refuses them

    def on_copies(self, *args: Any) -> Any:
        held = self.copies(args)
        result = self(*held)
        self.module.synchronize()
        for k in self.outputs():
            made = held[k]
            if isinstance(made, DeviceArray):
                np.copyto(args[k], made.numpy())
        return result

    # ---------------------------------------------------------- arguments

    def _shadow(self, k: int, arg: Any) -> Any:
        buffer = self.func.buffer_map.get(self.func.params[k]) if k < len(self.func.params) else None
        if buffer is None:
            return arg
        try:
            seen = as_shadow(arg, buffer.dtype)
        except RunError as error:
            raise RunError(f"argument {k + 1} `{buffer.name}` of {self.func.name}: {error}") from error
        if seen is not None and device_number(arg) not in (None, self.module.device_id):
            raise RunError(
                f"argument {k + 1} `{buffer.name}` of {self.func.name} is on cuda:{device_number(arg)}; {self.func.name} was built for "
                f"cuda:{self.module.device_id}: move the tensor, or build with the target's option "
                f"device_id={device_number(arg)}"
            )
        if seen is not None:
            is_bytes = buffer.dtype.is_bool and seen.dtype == np.uint8  # as some libraries describe their bools
            return seen.view(np.bool_) if is_bytes else seen
        if is_array(arg):
            raise RunError(
                f"argument {k + 1} `{buffer.name}` of {self.func.name} is on {where_is(arg)}; {self.func.name} was built for "
                f"cuda:{self.module.device_id}: copy it with mod.array(x), or torch's x.cuda(), or call "
                f"mod[{self.name!r}].on_copies(...) to copy in and out"
            )
        return arg

    def _plan(self, args: Sequence[Any]) -> tuple[Plan, list[int]]:
        """The launches for arguments of these shapes, and the addresses of the arrays."""
        key: list[Any] = [self.name]
        addresses: list[int] = []
        for k, arg in enumerate(args):
            if type(arg) is DeviceArray:
                address = arg.address
                key += (arg.kind, address & 63)
            elif hasattr(arg, "data_ptr"):  # a tensor of torch
                address = arg.data_ptr()
                key += (arg.dtype, arg.device, arg.shape, arg.stride(), address & 63)
            else:
                seen = self._shadow(k, arg)
                if isinstance(seen, np.ndarray) and seen.ndim == 0 and not self._is_buffer(k):
                    seen = seen.item()
                if isinstance(seen, np.ndarray):
                    address = seen.ctypes.data
                    key += (seen.shape, seen.strides, seen.dtype.str, seen.flags.writeable, address & 63)
                elif type(seen).__hash__ is None:
                    return self._make_plan(args), addresses  # raises the error
                else:
                    address = 0
                    key += (type(seen), seen)
            addresses.append(address)
        known = self.module.plans.get(tuple(key))
        if known is None:
            known = self._make_plan(args)
            if len(self.module.plans) > 256:
                self.module.plans.clear()
            self.module.plans[tuple(key)] = known
        for first, second in self._pairs:
            low, high = addresses[first], addresses[second]
            if low < high + known.sizes[second] and high < low + known.sizes[first]:
                raise overlap_error(self.func, first, second)
        return known, addresses

    def _is_buffer(self, k: int) -> bool:
        return k < len(self.func.params) and self.func.params[k] in self.func.buffer_map

    def _make_plan(self, args: Sequence[Any]) -> Plan:
        """The arguments checked against the signature, and the host function's launches for them."""
        arrays = [self._shadow(k, a) for k, a in enumerate(args)]
        values, _ = bind_arguments(self.func, arrays, self.outputs())
        values = dict(values)
        for number, (param, array) in enumerate(zip(self.func.params, arrays)):
            buffer = self.func.buffer_map.get(param)
            if buffer is not None:
                self._check_alignment(buffer, array.ctypes.data)
                values[buffer.data] = values[param] = Address.of(number)
        plan = Plan(self.program, values, self.module)
        plan.sizes = [span_of(a)[1] if isinstance(a, np.ndarray) else 0 for a in arrays]
        return plan

    def _launches(self) -> Iterator[tuple[str, Call]]:
        for node in walk(self.func.body):
            if isinstance(node, Call) and node.op == "tvm_call_packed":
                yield string_arg(node.args[0]), node

    def _needed_alignments(self) -> dict[Var, tuple[int, str]]:
        """For each pointer, the bytes to which its address must be aligned, and the kernel whose accesses need it."""
        found: dict[Var, tuple[int, str]] = {}
        for name, call in self._launches():
            for arg, need in zip(call.args[1:], self.module.texts[name].alignments):
                memory = place_of(arg)[0] if need > 1 else None
                if memory is not None and need > found.get(memory, (1, ""))[0]:
                    found[memory] = (need, name)
        return found

    def _check_alignment(self, buffer: Buffer, address: int) -> None:
        need, kernel = self.alignments.get(buffer.data, (1, ""))
        if address % need:
            raise RunError(
                f"`{buffer.name}` of {kernel} starts at an address that is not a multiple of {need} bytes, as its vector "
                "accesses need: copy the tensor, or do not vectorize that access"
            )

    def _may_overlap(self) -> list[tuple[int, int]]:
        """Pairs of arguments, the first of which is written, that must not overlap."""
        if not self.func.attrs.get("tir.noalias", True):
            return []
        buffers = [(k, self.func.buffer_map[p]) for k, p in enumerate(self.func.params) if p in self.func.buffer_map]
        return [
            (k, n)
            for k, one in buffers
            if shares_memory(one, self.written)
            for n, other in buffers
            if not shares_memory(other, one) and (k < n or not shares_memory(other, self.written))
        ]

    # ---------------------------------------------------------- launching

    def _run(self, plan: Plan, addresses: Sequence[int], stream: int) -> None:
        module = self.module
        device = module.device
        with module.launching:  # a plan's packed arguments and the workspace serve one call at a time
            before = device.activate()
            try:
                base = module.workspace(stream, plan) if plan.temporary else 0
                plan.run(addresses, stream, base, device.launch)
            finally:
                if before is not None:
                    device.restore(before)

    def measure(self, args: Any, number: int, repeat: int, min_repeat_ms: float, stream: Any) -> Timing:
        """Seconds of one call by events, the mean over ``number`` calls, ``repeat`` times."""
        run, at, device = self.prepared(*args, stream=stream), stream_number(stream), self.module.device
        first, last = device.event(), device.event()

        def seconds(number: int) -> float:
            device.record(first, at)
            for _ in range(number):
                run()
            device.record(last, at)
            return device.seconds_between(first, last)

        timing = repeated(seconds, number, repeat, min_repeat_ms)
        device.destroy_event(first)
        device.destroy_event(last)
        return timing


CUDAModule.function_type = CUDAFunction


__all__ = ["CUDAFunction", "CUDAModule", "build_cuda"]
