"""The CUDA driver: the dozen calls that launching needs; failures are ``RunError``.

All other code reaches a device through this class, so that tests can replace it.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from tir.errors import RunError
from tir.extension import optional
from tir.target import Target

from .tensor_map import TensorMap

DEFAULT_ARCH = "sm_80"

NO_DEVICE = (
    'no CUDA device here: lowering, the CUDA source (`.source("cuda")`), the cubin and target "cuda-sim" still work; '
    "running a kernel needs a GPU"
)


class Driver:
    """One device, in its primary context, which torch and CuPy use too."""

    def __init__(self, device_id: int = 0, bindings: Any = None):
        needed = "running on CUDA needs the driver's bindings"
        driver = optional("cuda.bindings.driver", needed, "cuda", RunError) if bindings is None else bindings
        self.cu: Any = driver
        self.device_id = device_id
        try:
            (error,) = driver.cuInit(0)
        except RuntimeError as missing:  # no libcuda at all
            raise RunError(f"{NO_DEVICE} [{missing}]") from missing
        if int(error) != 0:
            raise RunError(f"{NO_DEVICE} [{_error_name(driver, error)}]")
        count = self._do("cuDeviceGetCount")
        if device_id >= count:
            raise RunError(NO_DEVICE if count == 0 else f"no CUDA device {device_id}: this machine has {count}")
        self.device = self._do("cuDeviceGet", device_id)
        self.context = self._do("cuDevicePrimaryCtxRetain", self.device)
        self._launch, self._current = driver.cuLaunchKernel, driver.cuCtxGetCurrent
        self._number = int(self.context)

    def _do(self, call: str, *args: Any) -> Any:
        error, *values = getattr(self.cu, call)(*args)
        if int(error) != 0:
            raise RunError(f"{call} failed: {_error_name(self.cu, error)}")
        return values[0] if len(values) == 1 else values

    def _in_context(self, call: str, *args: Any) -> Any:
        before = self.activate()
        try:
            return self._do(call, *args)
        finally:
            if before is not None:
                self.restore(before)

    # ---------------------------------------------------------- the device

    @functools.cached_property
    def name(self) -> str:
        raw = self._do("cuDeviceGetName", 256, self.device)
        return raw.rstrip(b"\0").decode()

    def attribute(self, name: str) -> int:
        """A device attribute, by its name without ``CU_DEVICE_ATTRIBUTE_``."""
        return self._do(
            "cuDeviceGetAttribute", getattr(self.cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), self.device
        )

    @functools.cached_property
    def arch(self) -> str:
        major, minor = self.attribute("COMPUTE_CAPABILITY_MAJOR"), self.attribute("COMPUTE_CAPABILITY_MINOR")
        return f"sm_{major}{minor}" + ("a" if major >= 9 else "")

    def activate(self) -> Any:
        """Make the context current on this host thread; returns the previous one, to be restored, if it was another."""
        error, current = self._current()
        if int(error) == 0 and int(current) == self._number:
            return None
        self._do("cuCtxSetCurrent", self.context)
        return current if int(current) else None

    def restore(self, context: Any) -> None:
        """Make ``context``, which another library had set, current again."""
        self._do("cuCtxSetCurrent", context)

    # ---------------------------------------------------------- code

    def load(self, cubin: bytes) -> Any:
        return self._in_context("cuModuleLoadData", cubin)

    def unload(self, module: Any) -> None:
        with contextlib.suppress(RunError):  # at exit the context may be gone
            self._in_context("cuModuleUnload", module)

    def function(self, module: Any, name: str, dynamic_shared: int) -> Any:
        """A kernel that may use ``dynamic_shared`` bytes of shared memory (more than 48 KiB in all need this opt-in)."""
        made = self._do("cuModuleGetFunction", module, name.encode())
        if dynamic_shared:
            attribute = self.cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._in_context("cuFuncSetAttribute", made, attribute, dynamic_shared)
        return made

    def launch(self, function: Any, grid: Any, block: Any, shared: int, stream: int, params: int) -> None:
        """Launch in the current context; ``params`` is the address of an array of addresses of the arguments."""
        (error,) = self._launch(function, *grid, *block, shared, stream, params, 0)
        if int(error) != 0:
            raise RunError(
                f"the launch of a kernel with grid {grid}, block {block} and {shared} bytes of dynamic shared memory "
                f"failed: {_error_name(self.cu, error)}"
            )

    def encode_tensor_map(self, described: TensorMap, address: int) -> bytes:
        """How the copy engine sees the tensor at ``address``: the 128 bytes of a kernel's argument."""

        def enum(kind: str, member: str) -> Any:
            return getattr(getattr(self.cu, f"CUtensorMap{kind}"), f"CU_TENSOR_MAP_{member}")

        kind, rank, *rest = described.encoded(self.cu, enum)
        made = self._do("cuTensorMapEncodeTiled", kind, rank, address, *rest)
        return b"".join(int(word).to_bytes(8, "little") for word in made.opaque)

    # ---------------------------------------------------------- memory

    def allocate(self, size: int) -> int:
        return int(self._in_context("cuMemAlloc", max(size, 1)))

    def free(self, address: int) -> None:
        with contextlib.suppress(RunError):  # at exit the context may be gone
            self._in_context("cuMemFree", address)

    def copy_in(self, address: int, host: int, size: int) -> None:
        self._in_context("cuMemcpyHtoD", address, host, size)

    def copy_out(self, host: int, address: int, size: int) -> None:
        self._in_context("cuMemcpyDtoH", host, address, size)

    # ---------------------------------------------------------- time

    def synchronize(self, stream: int = 0) -> None:
        self._in_context("cuStreamSynchronize", stream)

    def event(self) -> Any:
        return self._in_context("cuEventCreate", 0)

    def record(self, event: Any, stream: int) -> None:
        self._in_context("cuEventRecord", event, stream)

    def seconds_between(self, first: Any, last: Any) -> float:
        self._in_context("cuEventSynchronize", last)
        return self._in_context("cuEventElapsedTime", first, last) * 1e-3

    def destroy_event(self, event: Any) -> None:
        self._in_context("cuEventDestroy", event)


def _error_name(driver: Any, error: Any) -> str:
    status, text = driver.cuGetErrorString(error)
    name = getattr(error, "name", str(error))
    if int(status) != 0 or not text:
        return name
    return f"{name}: {text.decode() if isinstance(text, bytes) else text}"


@functools.cache
def driver(device_id: int = 0) -> Driver:
    """The device, opened once. Raises ``RunError`` if there is none."""
    return Driver(device_id)


def arch_of(target: Target) -> str:
    """The architecture to compile for: the target's, else this machine's, else sm_80."""
    if "arch" in target.attrs:
        return str(target.attrs["arch"])
    return driver(int(target.attrs.get("device_id", 0))).arch if has_device() else DEFAULT_ARCH


def has_device() -> bool:
    """Whether a CUDA device can be used here."""
    try:
        driver()
    except RunError:
        return False
    return True
