"""Tensor maps: how the copy engine of Hopper sees a tensor in global memory, made at a launch of a kernel."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tir.arith import simplify
from tir.dtype import DType
from tir.errors import BuildError, RunError
from tir.expr import Call, Expr, IntImm, Var, const
from tir.op import string_arg
from tir.visit import free_vars, substitute

BYTES = 128
SWIZZLES = (0, 32, 64, 128)
# the driver's names of the types, without CU_TENSOR_MAP_DATA_TYPE_; other types go by their size
_NAMES = {"float16": "FLOAT16", "float32": "FLOAT32", "float64": "FLOAT64", "bfloat16": "BFLOAT16"}
_BY_SIZE = {1: "UINT8", 2: "UINT16", 4: "UINT32", 8: "UINT64"}


def type_name(dtype: str) -> str:
    """The driver's name of a type of elements."""
    return f"DATA_TYPE_{_NAMES.get(dtype) or _BY_SIZE[DType(dtype).bytes]}"


def swizzle_name(swizzle: int) -> str:
    """The driver's name of a swizzle of so many bytes."""
    return f"SWIZZLE_{swizzle}B" if swizzle else "SWIZZLE_NONE"


@dataclass(frozen=True)
class TensorMap:
    """A tensor of ``dtype``: its ``shape``, its ``strides`` in elements and the ``box`` that a copy moves, outermost axis
    first, and the ``swizzle`` of a box in shared memory, in bytes."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int

    def encoded(self, driver: Any, enum: Any) -> tuple[Any, ...]:
        """The arguments of ``cuTensorMapEncodeTiled`` but for the address, which is the third: innermost axis first, strides
        in bytes but for the innermost. ``driver`` has the integers of the driver, ``enum`` gives a member of an enumeration."""
        axes, element = range(len(self.shape) - 1, -1, -1), DType(self.dtype).bytes
        return (
            enum("DataType", type_name(self.dtype)),
            len(self.shape),
            [driver.cuuint64_t(self.shape[k]) for k in axes],
            [driver.cuuint64_t(self.strides[k] * element) for k in axes[1:]],
            [driver.cuuint32_t(self.box[k]) for k in axes],
            [driver.cuuint32_t(1) for _ in axes],
            enum("Interleave", "INTERLEAVE_NONE"),
            enum("Swizzle", swizzle_name(self.swizzle)),
            enum("L2promotion", "L2_PROMOTION_L2_128B"),
            enum("FloatOOBfill", "FLOAT_OOB_FILL_NONE"),
        )


def problem(
    dtype: str, shape: Sequence[int | None], strides: Sequence[int | None], box: Sequence[int], swizzle: int
) -> str:
    """What the copy engine does not take about a tensor, or nothing; sizes that are not yet known are None."""
    size, inner = DType(dtype).bytes, box[-1] * DType(dtype).bytes
    if len(shape) > 5:
        return f"it has {len(shape)} axes; at most 5"
    if DType(dtype).lanes > 1 or DType(dtype).bits % 8 or size not in _BY_SIZE:
        return f"its elements are {dtype}; they have 1, 2, 4 or 8 bytes"
    if swizzle not in SWIZZLES:
        return f"the swizzle is of {swizzle} bytes; it is one of {', '.join(map(str, SWIZZLES))}"
    if any(not 1 <= n <= 256 for n in box):
        return f"the box is {tuple(box)}; along each axis it has 1 to 256 elements"
    if inner % 16:
        return f"the box has {inner} bytes along the innermost axis; a multiple of 16 is copied"
    if swizzle and inner > swizzle:
        return (
            f"the box has {inner} bytes along the innermost axis; with a swizzle of {swizzle} bytes at most {swizzle}"
        )
    if strides[-1] not in (1, None):
        return f"the stride of the innermost axis is {strides[-1]}; it is 1: elements of a row lie side by side"
    for axis, stride in enumerate(strides[:-1]):
        if stride is not None and (stride * size % 16 or not 0 <= stride * size < 1 << 40):
            return f"the stride of axis {axis} is {stride * size} bytes; it is a multiple of 16, below 2 ** 40"
    wrong = [n for n in shape if n is not None and not 1 <= n <= 1 << 32]
    return f"an axis has {wrong[0]} elements; it has 1 to 2 ** 32" if wrong else ""


@dataclass(frozen=True)
class MapParameter:
    """A tensor map as a parameter of a kernel, after those of its function. The call ``source`` gives its shape and box, the
    kernel's parameter ``pointer`` its memory."""

    kernel: str
    pointer: Var
    source: Call = field(repr=False)

    @staticmethod
    def of(source: Call, kernel: str, parameters: Collection[Var]) -> MapParameter:
        """Raises ``BuildError`` for what the copy engine does not take, as far as it is known when a kernel is built."""
        pointer = source.args[0]
        made = f"{kernel}: the tensor map `{source!r}`"
        try:
            DType(string_arg(source.args[1]))
        except ValueError as error:
            raise BuildError(f"{made}: {error}") from error
        if not isinstance(pointer, Var) or pointer not in parameters:
            raise BuildError(
                f"{made} is made at the launch; its first argument is the pointer of a whole buffer, as A.data"
            )
        unknown = [v.name for v in free_vars(source) if v not in parameters]
        if unknown:
            raise BuildError(
                f"{made} is made at the launch, when `{unknown[0]}` is not known: use sizes of the function"
            )
        dtype, swizzle, shape, strides, box = _parts(source, {})
        if None in box or swizzle is None:
            raise BuildError(f"{made}: its box and its swizzle are constants")
        found = problem(dtype, shape, strides, [n for n in box if n is not None], swizzle)
        if found:
            raise BuildError(f"{made}: {found}")
        return MapParameter(kernel, pointer, source)

    @property
    def element(self) -> int:
        """The bytes of an element."""
        return DType(_parts(self.source, {})[0]).bytes

    @property
    def type_name(self) -> str:
        return type_name(_parts(self.source, {})[0])

    @property
    def swizzle_name(self) -> str:
        return swizzle_name(_parts(self.source, {})[1] or 0)

    @property
    def sizes(self) -> tuple[Sequence[Expr], Sequence[Expr], Sequence[Expr]]:
        """The shape, the strides and the box, in terms of the kernel's parameters."""
        numbers: Any = self.source.args[3:]
        rank = len(numbers) // 3
        return numbers[:rank], numbers[rank : 2 * rank], numbers[2 * rank :]

    def at(self, values: Mapping[Var, Any]) -> TensorMap:
        """The map for these values of the kernel's parameters. Raises ``RunError`` for what the copy engine does not take."""
        known = {v: const(int(x), v.dtype) for v, x in values.items() if v.dtype.is_int}
        dtype, swizzle, *sizes = _parts(self.source, known)
        shape, strides, box = (tuple(n for n in part if n is not None) for part in sizes)
        assert swizzle is not None
        found = problem(dtype, shape, strides, box, swizzle)
        if found:
            raise RunError(f"{self.kernel}: `{self.pointer.name}` cannot be copied by tensor maps: {found}")
        return TensorMap(dtype, shape, strides, box, swizzle)

    def check_address(self, address: int) -> None:
        if address % 16:
            raise RunError(
                f"{self.kernel}: `{self.pointer.name}` starts at an address that is not a multiple of 16 bytes, as tensor maps "
                "need: copy the tensor"
            )


Sizes = list["int | None"]


def _parts(source: Call, known: Mapping[Var, Expr]) -> tuple[str, int | None, Sizes, Sizes, Sizes]:
    """The type, the swizzle, shape, strides and box of a call of ``tensor_map``."""
    _, dtype, *numbers = source.args
    swizzle, *sizes = (_number(e, known) for e in numbers)
    rank = len(sizes) // 3
    return string_arg(dtype), swizzle, sizes[:rank], sizes[rank : 2 * rank], sizes[2 * rank :]


def _number(e: Any, known: Mapping[Var, Expr]) -> int | None:
    made = simplify(substitute(e, known) if known else e)
    return made.value if isinstance(made, IntImm) else None
