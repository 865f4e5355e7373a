"""Made by ``python -m tir.ops._stubs``; do not edit."""

# ruff: noqa
# fmt: off
from collections.abc import Sequence
from typing import Any

from tir import te
from tir.ops.operands import Operand
from tir.ops.reduction import Axes
from tir.te import Tensor

from .check import check as check
from .classes import Pattern as Pattern
from .classes import function_of as function_of
from .classes import pattern as pattern
from .classes import schedule as schedule
from .registry import Argument as Argument
from .registry import Case as Case
from .registry import Operator as Operator
from .registry import arg as arg
from .registry import attributes as attributes
from .registry import case as case
from .registry import find as find
from .registry import load_files as load_files
from .registry import operator as operator
from .registry import operators as operators
from . import nn as nn

def abs(x: te.Tensor) -> te.Tensor:
    """The size of a number; the least signed integer keeps its sign.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.abs(te.placeholder((4, 3), "float32"))
    Tensor(abs, (4, 3), float32)"""

def acos(x: te.Tensor) -> te.Tensor:
    """The angle between 0 and pi whose cosine is ``x``: nan where there is none.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.acos(te.placeholder((4, 3), "float32"))
    Tensor(acos, (4, 3), float32)"""

def acosh(x: te.Tensor) -> te.Tensor:
    """The inverse of ``cosh``: nan below 1.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.acosh(te.placeholder((4, 3), "float32"))
    Tensor(acosh, (4, 3), float32)"""

def add(x: Operand, y: Operand) -> Tensor:
    """``x + y``.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.add(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(add, (4, 3), float32)"""
broadcast_add = add

def add_n(tensors: Sequence[te.Tensor]) -> te.Tensor:
    """The sum of tensors that broadcast, in their common type.

    >>> from tir import ops, te
    >>> x = te.placeholder((4,))
    >>> ops.add_n([x, x, x])
    Tensor(add_n, (4,), float32)"""
elemwise_sum = add_n

def adv_index(x: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """``x[indices[0], indices[1], …]`` as in NumPy: indices of the first axes, which broadcast.

    >>> from tir import ops, te
    >>> rows, columns = te.placeholder((2, 1), "int64", name="rows"), te.placeholder((5,), "int64", name="columns")
    >>> ops.adv_index(te.placeholder((3, 4), name="x"), [rows, columns]).shape
    (2, 5)"""
index_tensor = adv_index

def all(x: te.Tensor, axis: Axes = ..., keepdims: bool = ...) -> te.Tensor:
    """Whether all elements over ``axis`` are true, or not 0; of no elements true.

    >>> from tir import ops, te
    >>> ops.all(te.placeholder((4, 3), "bool"), axis=0)
    Tensor(all, (3,), bool)"""

def any(x: te.Tensor, axis: Axes = ..., keepdims: bool = ...) -> te.Tensor:
    """Whether some element over ``axis`` is true, or not 0; of no elements false.

    >>> from tir import ops, te
    >>> ops.any(te.placeholder((4, 3), "float32"))
    Tensor(any, (), bool)"""

def arange(start: Any, stop: Any = ..., step: Any = ..., dtype: Any = ...) -> Tensor:
    """The numbers from ``start`` (0, where one bound alone is given) up to ``stop``, which is not among them, by ``step``.

    Bounds may be scalar expressions of integers. Without ``dtype``, integers are int32 and floats float32. Raises
    ``TensorExpressionError`` for a step of 0.

    >>> from tir import ops
    >>> ops.arange(2, 11, 3)
    Tensor(arange, (3,), int32)"""

def argmax(x: te.Tensor, axis: int | None = ..., keepdims: bool = ..., select_last_index: bool = ..., dtype: Any = ...) -> te.Tensor:
    """The position of the largest element along ``axis``; of None that in the flattened tensor. nan is the largest.

    Of equal elements it is the first, or the last. Of no elements it is an error.

    >>> from tir import ops, te
    >>> ops.argmax(te.placeholder((4, 3)), axis=-1)
    Tensor(argmax, (4,), int64)"""

def argmin(x: te.Tensor, axis: int | None = ..., keepdims: bool = ..., select_last_index: bool = ..., dtype: Any = ...) -> te.Tensor:
    """The position of the least element along ``axis``, as ``argmax`` gives that of the largest. nan is the least.

    >>> from tir import ops, te
    >>> ops.argmin(te.placeholder((4, 3)), axis=0, dtype="int32")
    Tensor(argmin_v0, (3,), int32)"""

def argsort(x: Tensor, valid_count: Tensor | None = ..., axis: int = ..., is_ascend: Any = ..., dtype: Any = ..., *, descending: bool = ..., stable: bool = ...) -> Tensor:
    """The indices along ``axis`` at which the elements of ``x`` are in order; equal elements keep theirs.

    With ``valid_count``, a tensor of the shape without ``axis``, only so many elements of each row are ordered.

    >>> from tir import ops, te
    >>> ops.argsort(te.placeholder((2, 17), name="x"), axis=0).dtype
    'int64'"""

def argwhere(output_shape: Any, condition: Tensor) -> Tensor:
    """The indices of the elements that are not 0, a row for each: the first of them, where ``output_shape`` (rows, dimensions)
    has fewer rows, and zeros after the last. See :func:`nonzero`, which counts them.

    >>> from tir import ops, te
    >>> ops.argwhere((5, 2), te.placeholder((3, 4), "bool", name="x"))
    Tensor(argwhere, (5, 2), int32)"""

def asin(x: te.Tensor) -> te.Tensor:
    """The angle between -pi/2 and pi/2 whose sine is ``x``: nan where there is none.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.asin(te.placeholder((4, 3), "float32"))
    Tensor(asin, (4, 3), float32)"""

def asinh(x: te.Tensor) -> te.Tensor:
    """The inverse of ``sinh``.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.asinh(te.placeholder((4, 3), "float32"))
    Tensor(asinh, (4, 3), float32)"""

def astype(x: te.Tensor, dtype: Any) -> te.Tensor:
    """``x`` converted to ``dtype``.

    Floats become integers toward 0, and integers wrap around; a float that is out of the integer's range has no defined
    value. What is not 0 is true, nan included.

    >>> from tir import ops, te
    >>> ops.astype(te.placeholder((4,), "float32"), "int8")
    Tensor(astype, (4,), int8)"""
cast = astype

def atan(x: te.Tensor) -> te.Tensor:
    """The angle between -pi/2 and pi/2 whose tangent is ``x``.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.atan(te.placeholder((4, 3), "float32"))
    Tensor(atan, (4, 3), float32)"""

def atan2(x: Operand, y: Operand) -> Tensor:
    """The angle of the point at ``(y, x)``, between -pi and pi: ``atan(x / y)`` in the right quadrant.

    Operands broadcast, are promoted to a common type, and are floats.

    >>> from tir import ops, te
    >>> ops.atan2(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(atan2, (4, 3), float32)"""

def atanh(x: te.Tensor) -> te.Tensor:
    """The inverse of ``tanh``: infinite at -1 and 1, nan beyond.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.atanh(te.placeholder((4, 3), "float32"))
    Tensor(atanh, (4, 3), float32)"""

def bitwise_and(x: Operand, y: Operand) -> Tensor:
    """The bits that both have.

    Operands broadcast, are promoted to a common type, and are bools or integers.

    >>> from tir import ops, te
    >>> ops.bitwise_and(te.placeholder((4, 1), "int32"), te.placeholder((3,), "int32"))
    Tensor(bitwise_and, (4, 3), int32)"""

def bitwise_invert(x: te.Tensor) -> te.Tensor:
    """The bits that it has not.

    The tensor is bools or integers.

    >>> from tir import ops, te
    >>> ops.bitwise_invert(te.placeholder((4, 3), "int32"))
    Tensor(bitwise_invert, (4, 3), int32)"""
bitwise_not = bitwise_invert

def bitwise_left_shift(x: Operand, y: Operand) -> Tensor:
    """``x`` with its bits moved up by ``y``, which is not negative. Moved by all its bits or more, it is 0.

    Operands broadcast, are promoted to a common type, and are integers.

    >>> from tir import ops, te
    >>> ops.bitwise_left_shift(te.placeholder((4, 1), "int32"), te.placeholder((3,), "int32"))
    Tensor(bitwise_left_shift, (4, 3), int32)"""
left_shift = bitwise_left_shift

def bitwise_or(x: Operand, y: Operand) -> Tensor:
    """The bits that one has.

    Operands broadcast, are promoted to a common type, and are bools or integers.

    >>> from tir import ops, te
    >>> ops.bitwise_or(te.placeholder((4, 1), "int32"), te.placeholder((3,), "int32"))
    Tensor(bitwise_or, (4, 3), int32)"""

def bitwise_right_shift(x: Operand, y: Operand) -> Tensor:
    """``x`` with its bits moved down by ``y``, which is not negative: ``x`` divided by ``2 ** y``, rounded down.

    Moved by all its bits or more, it is 0, and -1 if it is negative.

    Operands broadcast, are promoted to a common type, and are integers.

    >>> from tir import ops, te
    >>> ops.bitwise_right_shift(te.placeholder((4, 1), "int32"), te.placeholder((3,), "int32"))
    Tensor(bitwise_right_shift, (4, 3), int32)"""
right_shift = bitwise_right_shift

def bitwise_xor(x: Operand, y: Operand) -> Tensor:
    """The bits that just one has.

    Operands broadcast, are promoted to a common type, and are bools or integers.

    >>> from tir import ops, te
    >>> ops.bitwise_xor(te.placeholder((4, 1), "int32"), te.placeholder((3,), "int32"))
    Tensor(bitwise_xor, (4, 3), int32)"""

def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The tensors ``arrays``, each of the shape that they have together and of its own type.

    Raises ``TensorExpressionError`` for shapes that do not broadcast, and for no tensors.

    >>> from tir import ops, te
    >>> x, y = te.placeholder((3, 1), name="x"), te.placeholder((4,), "int8", name="y")
    >>> [(t.shape, t.dtype) for t in ops.broadcast_arrays(x, y)]
    [((3, 4), 'float32'), ((3, 4), 'int8')]"""

def broadcast_to(x: Tensor, shape: Any) -> Tensor:
    """``x`` repeated along dimensions of extent 1 and new leading ones.

    Raises ``TensorExpressionError`` where an extent is neither 1 nor that of ``shape``.

    >>> from tir import ops, te
    >>> ops.broadcast_to(te.placeholder((3, 1), name="x"), (2, 3, 4)).shape
    (2, 3, 4)"""

def ceil(x: te.Tensor) -> te.Tensor:
    """The least integer not below ``x``, in its type.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.ceil(te.placeholder((4, 3), "float32"))
    Tensor(ceil, (4, 3), float32)"""

def clip(x: te.Tensor, min: Operand | None = ..., max: Operand | None = ...) -> te.Tensor:
    """``x`` with values below ``min`` and above ``max`` replaced by them; nan stays.

    The limits are numbers, or tensors that broadcast with ``x``; None is no limit. Where ``min`` is above ``max``, it is
    ``max``.

    >>> from tir import ops, te
    >>> ops.clip(te.placeholder((4,)), 0, 6)
    Tensor(clip, (4,), float32)"""

def collapse_sum(data: te.Tensor, target_shape: Any) -> te.Tensor:
    """The sum of ``data`` over all axes along which a tensor of ``target_shape`` would be broadcast to its shape.

    Raises ``TensorExpressionError`` where it would not.

    >>> from tir import ops, te
    >>> ops.collapse_sum(te.placeholder((2, 3, 4), name="x"), (3, 1)).shape
    (3, 1)"""

def concatenate(arrays: Sequence[Tensor], axis: int | None = ...) -> Tensor:
    """The tensors ``arrays`` one after another along ``axis``; all their elements in one dimension for None.

    Types are promoted. Raises ``TensorExpressionError`` where numbers of dimensions or other extents differ.

    >>> from tir import ops, te
    >>> ops.concatenate([te.placeholder((2, 3), name="x"), te.placeholder((4, 3), name="y")]).shape
    (6, 3)"""
concat = concatenate

def copysign(x: Operand, y: Operand) -> Tensor:
    """``x`` with the sign of ``y``.

    Operands broadcast, are promoted to a common type, and are floats.

    >>> from tir import ops, te
    >>> ops.copysign(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(copysign, (4, 3), float32)"""

def cos(x: te.Tensor) -> te.Tensor:
    """The cosine of an angle in radians.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.cos(te.placeholder((4, 3), "float32"))
    Tensor(cos, (4, 3), float32)"""

def cosh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic cosine.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.cosh(te.placeholder((4, 3), "float32"))
    Tensor(cosh, (4, 3), float32)"""

def count_nonzero(x: te.Tensor, axis: Axes = ..., keepdims: bool = ...) -> te.Tensor:
    """How many elements over ``axis`` (one, several, all for None) are true, or not 0; nan is not 0. The type is int64.

    >>> from tir import ops, te
    >>> ops.count_nonzero(te.placeholder((4, 3), "float32"), axis=-1)
    Tensor(count_nonzero, (4,), int64)"""

def cumprod(x: te.Tensor, axis: int | None = ..., exclusive: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The products of the elements up to each along ``axis``, as ``cumsum`` gives the sums.

    >>> from tir import ops, te
    >>> ops.cumprod(te.placeholder((4, 3), "int32"))
    Tensor(cumprod, (12,), int64)"""
cumulative_prod = cumprod

def cumsum(x: te.Tensor, axis: int | None = ..., exclusive: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The sums of the elements up to each along ``axis``; of None those of the flattened tensor.

    ``exclusive`` leaves the element itself out: the first sum is 0. For types see ``sum``.

    >>> from tir import ops, te
    >>> ops.cumsum(te.placeholder((4, 3)), axis=1)
    Tensor(cumsum, (4, 3), float32)"""
cumulative_sum = cumsum

def dft(re_data: Tensor, im_data: Tensor, inverse: bool = ...) -> list[Tensor]:
    """The Fourier transform along the last axis of complex numbers, given and taken as real and imaginary parts.

    The inverse is divided by the number of elements. The steps for an element are about the sum of the factors of n; some hundreds
    where n has large prime factors; n where n is not known.

    >>> from tir import ops, te
    >>> real, imaginary = ops.dft(te.placeholder((2, 6), name="re"), te.placeholder((2, 6), name="im"))
    >>> real.shape
    (2, 6)"""

def diff(x: Tensor, n: int = ..., axis: int = ..., prepend: Operand | None = ..., append: Operand | None = ...) -> Tensor:
    """The differences ``x[i + 1] - x[i]`` of neighbours along ``axis``, taken ``n`` times: each time there is one fewer.

    ``prepend`` and ``append`` are put before and behind ``x`` first: tensors, whose types are promoted with that of
    ``x``, or numbers. Integers wrap around. Raises ``TensorExpressionError`` for a negative ``n``, for tensors of no
    dimensions, and for bools.

    >>> from tir import ops, te
    >>> ops.diff(te.placeholder((4, 5), name="x"), n=2).shape
    (4, 3)"""

def divide(x: Operand, y: Operand) -> Tensor:
    """``x / y`` of floats; of integers see ``floor_divide`` and ``trunc_divide``.

    Operands broadcast, are promoted to a common type, and are floats.

    >>> from tir import ops, te
    >>> ops.divide(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(divide, (4, 3), float32)"""
broadcast_div = divide
div = divide

def dynamic_strided_slice(x: Tensor, begin: Tensor, end: Tensor, strides: Tensor, output_shape: Any) -> Tensor:
    """:func:`strided_slice` of places that are known when the program runs: tensors of integers, one for each axis.

    The caller says the shape of the result; elements of it beyond the slice are the nearest of ``x``.

    >>> from tir import ops, te
    >>> begin, end, strides = (te.placeholder((1,), "int64", name=n) for n in ("begin", "end", "strides"))
    >>> ops.dynamic_strided_slice(te.placeholder((5, 6), name="x"), begin, end, strides, (3, 6)).shape
    (3, 6)"""

def einsum(subscripts: str, *operands: Tensor, out_dtype: Any = ...) -> Tensor:
    """Einstein's summation in NumPy's notation: ``einsum("ij,jk->ik", a, b)`` sums products over ``j``.

    A letter names an axis of each operand that has it; without ``->``, the result has the letters that occur once, in
    alphabetical order; an ellipsis stands for axes that broadcast. More than two operands are contracted from the left.
    Elements are converted to ``out_dtype``, or to their common type, before they are multiplied.

    Raises ``TensorExpressionError`` for subscripts that are none of the operands', and for extents that differ.

    >>> from tir import ops, te
    >>> ops.einsum("bij,bjk->bik", te.placeholder((2, 3, 4), name="a"), te.placeholder((2, 4, 5), name="b")).shape
    (2, 3, 5)"""

def equal(x: Operand, y: Operand) -> Tensor:
    """Whether ``x`` is ``y``; nan equals nothing.

    Operands broadcast, are promoted to a common type, and are bools or integers or floats.

    >>> from tir import ops, te
    >>> ops.equal(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(equal, (4, 3), bool)"""

def erf(x: te.Tensor) -> te.Tensor:
    """The error function.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.erf(te.placeholder((4, 3), "float32"))
    Tensor(erf, (4, 3), float32)"""
fast_erf = erf

def erfc(x: te.Tensor) -> te.Tensor:
    """``1 - erf(x)``, accurate for large ``x``.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.erfc(te.placeholder((4, 3), "float32"))
    Tensor(erfc, (4, 3), float32)"""

def exp(x: te.Tensor) -> te.Tensor:
    """e to the power of ``x``.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.exp(te.placeholder((4, 3), "float32"))
    Tensor(exp, (4, 3), float32)"""
fast_exp = exp

def exp10(x: te.Tensor) -> te.Tensor:
    """10 to the power of ``x``.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.exp10(te.placeholder((4, 3), "float32"))
    Tensor(exp10, (4, 3), float32)"""

def exp2(x: te.Tensor) -> te.Tensor:
    """2 to the power of ``x``.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.exp2(te.placeholder((4, 3), "float32"))
    Tensor(exp2, (4, 3), float32)"""

def expand_dims(x: Tensor, axis: Any = ..., num_newaxis: int = ...) -> Tensor:
    """``x`` with new dimensions of extent 1: ``num_newaxis`` at ``axis``, or one at each of a tuple of places.

    >>> from tir import ops, te
    >>> ops.expand_dims(te.placeholder((2, 3), name="x"), -1).shape
    (2, 3, 1)"""

def expand_like(x: Tensor, shape_like: Tensor, axis: Any) -> Tensor:
    """``x`` with new dimensions at ``axis`` of ``shape_like``, and repeated along them.

    >>> from tir import ops, te
    >>> ops.expand_like(te.placeholder((3,), name="x"), te.placeholder((2, 3, 4)), (0, 2)).shape
    (2, 3, 4)"""

def expm1(x: te.Tensor) -> te.Tensor:
    """``exp(x) - 1``, accurate near 0.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.expm1(te.placeholder((4, 3), "float32"))
    Tensor(expm1, (4, 3), float32)"""

def eye(n: Any, m: Any = ..., k: int = ..., dtype: Any = ...) -> Tensor:
    """``n`` rows and ``m`` (as many, for None) columns of zeros with ones on diagonal ``k``, above the main one where positive.

    >>> from tir import ops
    >>> ops.eye(2, 4, 1)
    Tensor(eye, (2, 4), float32)"""

def fixed_point_multiply(x: te.Tensor, multiplier: int, shift: int) -> te.Tensor:
    """``x * multiplier * 2 ** (shift - 31)`` of int32, rounded, halves up: a product with a number in fixed point.

    >>> from tir import ops, te
    >>> ops.fixed_point_multiply(te.placeholder((4,), "int32", name="x"), 1 << 30, -2)
    Tensor(fixed_point_multiply, (4,), int32)"""

def flip(x: Tensor, axis: Any = ...) -> Tensor:
    """``x`` with the order of elements along ``axis`` reversed; along all axes for None.

    >>> from tir import ops, te
    >>> ops.flip(te.placeholder((2, 3), name="x"), -1).shape
    (2, 3)"""
reverse = flip

def floor(x: te.Tensor) -> te.Tensor:
    """The greatest integer not above ``x``, in its type.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.floor(te.placeholder((4, 3), "float32"))
    Tensor(floor, (4, 3), float32)"""

def floor_divide(x: Operand, y: Operand) -> Tensor:
    """The greatest integer that is not above ``x / y``. An integer divided by 0 is an error of the run.

    Of floats it is exact: ``1.0 // 0.1`` is 9. Of an infinite ``x`` it is nan.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.floor_divide(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(floor_divide, (4, 3), float32)"""
floordiv = floor_divide

def fmod(x: Operand, y: Operand) -> Tensor:
    """What ``trunc_divide`` leaves, with the sign of ``x``: ``x % y`` of C.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.fmod(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(fmod, (4, 3), float32)"""
mod = fmod
trunc_mod = fmod
truncmod = fmod

def full(shape: Any, fill_value: Any, dtype: Any = ...) -> Tensor:
    """A tensor of ``shape`` with ``fill_value`` everywhere. The order ``full(shape, dtype, fill_value)`` is taken too.

    >>> from tir import ops
    >>> ops.full((2, 3), 7, "int8")
    Tensor(full, (2, 3), int8)"""

def full_like(x: te.Tensor, value: Operand, dtype: Any = ...) -> te.Tensor:
    """A tensor of the shape of ``x``, and of its type or ``dtype``, with ``value`` everywhere.

    >>> from tir import ops, te
    >>> ops.full_like(te.placeholder((4, 3)), 2, "int32")
    Tensor(full_like, (4, 3), int32)"""

def gather(x: Tensor, axis: int, indices: Tensor) -> Tensor:
    """The elements of ``x`` whose index along ``axis`` is ``indices[…]``: as :func:`take_along_axis`, but other dimensions of
    ``indices`` may be shorter than those of ``x``, and do not broadcast.

    >>> from tir import ops, te
    >>> ops.gather(te.placeholder((3, 4), name="x"), 0, te.placeholder((5, 2), "int64", name="at")).shape
    (5, 2)"""
gather_elements = gather

def gather_nd(x: Tensor, indices: Tensor, batch_dims: int = ...) -> Tensor:
    """The parts of ``x`` at ``indices[0, …], indices[1, …] …``, which are the first indices after ``batch_dims`` of a batch.

    >>> from tir import ops, te
    >>> ops.gather_nd(te.placeholder((3, 4, 6), name="x"), te.placeholder((2, 5), "int32", name="at")).shape
    (5, 6)"""

def greater(x: Operand, y: Operand) -> Tensor:
    """``x > y``; false where one is nan.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.greater(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(greater, (4, 3), bool)"""

def greater_equal(x: Operand, y: Operand) -> Tensor:
    """``x >= y``; false where one is nan.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.greater_equal(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(greater_equal, (4, 3), bool)"""

def hamming_window(window_size: int, periodic: bool, alpha: float, beta: float, dtype: Any) -> Tensor:
    """``alpha - beta * cos(2 * pi * n / count)`` for ``n`` below ``window_size``: a window of signals, as ``stft`` takes one.

    ``count`` is ``window_size`` where the window is ``periodic``, else one less, which makes it symmetric.

    >>> from tir import ops
    >>> ops.hamming_window(8, True, 0.54, 0.46, "float32")
    Tensor(hamming_window, (8,), float32)"""

def hypot(x: Operand, y: Operand) -> Tensor:
    """``sqrt(x * x + y * y)`` without overflow.

    Operands broadcast, are promoted to a common type, and are floats.

    >>> from tir import ops, te
    >>> ops.hypot(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(hypot, (4, 3), float32)"""

def index_put(x: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = ...) -> Tensor:
    """``x`` after ``x[indices[0], indices[1], …] = values``, or with ``accumulate`` after ``+=`` for each index.

    Indices are of the first axes and broadcast, and ``values`` broadcasts with what they choose.

    >>> from tir import ops, te
    >>> at, values = te.placeholder((5,), "int64", name="at"), te.placeholder((5, 4), name="values")
    >>> ops.index_put(te.placeholder((3, 4), name="x"), [at], values, accumulate=True).shape
    (3, 4)"""

def isfinite(x: te.Tensor) -> te.Tensor:
    """Whether it is a number that is not infinite.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.isfinite(te.placeholder((4, 3), "float32"))
    Tensor(isfinite, (4, 3), bool)"""

def isinf(x: te.Tensor) -> te.Tensor:
    """Whether it is infinite, of either sign.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.isinf(te.placeholder((4, 3), "float32"))
    Tensor(isinf, (4, 3), bool)"""

def isnan(x: te.Tensor) -> te.Tensor:
    """Whether it is nan.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.isnan(te.placeholder((4, 3), "float32"))
    Tensor(isnan, (4, 3), bool)"""

def layout_transform(x: Tensor, src_layout: str, dst_layout: str, schedule_rule: str = ...) -> Tensor:
    """``x`` of ``src_layout`` in ``dst_layout``: ``"NCHW"`` as ``"NHWC"``, or ``"NCHW16c"``, channels in blocks of 16.

    Capitals are dimensions; a small letter after its factor is the inner part of one. Raises ``TensorExpressionError``
    for layouts of other letters, and where a factor does not divide an extent.

    >>> from tir import ops, te
    >>> ops.layout_transform(te.placeholder((1, 32, 7, 7), name="x"), "NCHW", "NCHW16c").shape
    (1, 2, 7, 7, 16)"""

def less(x: Operand, y: Operand) -> Tensor:
    """``x < y``; false where one is nan.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.less(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(less, (4, 3), bool)"""

def less_equal(x: Operand, y: Operand) -> Tensor:
    """``x <= y``; false where one is nan.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.less_equal(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(less_equal, (4, 3), bool)"""

def linspace(start: float, stop: float, num: int = ..., dtype: Any = ..., endpoint: bool = ...) -> Tensor:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which is the last, or with ``endpoint=False`` is left
    out.

    Raises ``TensorExpressionError`` for a negative number of them, and for a type that is not one of floats.

    >>> from tir import ops
    >>> ops.linspace(0, 1, 5)
    Tensor(linspace, (5,), float32)"""

def log(x: te.Tensor) -> te.Tensor:
    """The natural logarithm: -inf at 0, nan below.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.log(te.placeholder((4, 3), "float32"))
    Tensor(log, (4, 3), float32)"""

def log10(x: te.Tensor) -> te.Tensor:
    """The logarithm to base 10.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.log10(te.placeholder((4, 3), "float32"))
    Tensor(log10, (4, 3), float32)"""

def log1p(x: te.Tensor) -> te.Tensor:
    """``log(1 + x)``, accurate near 0.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.log1p(te.placeholder((4, 3), "float32"))
    Tensor(log1p, (4, 3), float32)"""

def log2(x: te.Tensor) -> te.Tensor:
    """The logarithm to base 2.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.log2(te.placeholder((4, 3), "float32"))
    Tensor(log2, (4, 3), float32)"""

def logaddexp(x: Operand, y: Operand) -> Tensor:
    """``log(exp(x) + exp(y))`` without overflow.

    Operands broadcast, are promoted to a common type, and are floats.

    >>> from tir import ops, te
    >>> ops.logaddexp(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(logaddexp, (4, 3), float32)"""
log_add_exp = logaddexp

def logical_and(x: Operand, y: Operand) -> Tensor:
    """Whether both are true. Of numbers say ``not_equal(x, 0)``.

    Operands broadcast, are promoted to a common type, and are bools.

    >>> from tir import ops, te
    >>> ops.logical_and(te.placeholder((4, 1), "bool"), te.placeholder((3,), "bool"))
    Tensor(logical_and, (4, 3), bool)"""

def logical_not(x: te.Tensor) -> te.Tensor:
    """Whether it is false.

    The tensor is bools.

    >>> from tir import ops, te
    >>> ops.logical_not(te.placeholder((4, 3), "bool"))
    Tensor(logical_not, (4, 3), bool)"""

def logical_or(x: Operand, y: Operand) -> Tensor:
    """Whether one is true.

    Operands broadcast, are promoted to a common type, and are bools.

    >>> from tir import ops, te
    >>> ops.logical_or(te.placeholder((4, 1), "bool"), te.placeholder((3,), "bool"))
    Tensor(logical_or, (4, 3), bool)"""

def logical_xor(x: Operand, y: Operand) -> Tensor:
    """Whether just one is true.

    Operands broadcast, are promoted to a common type, and are bools.

    >>> from tir import ops, te
    >>> ops.logical_xor(te.placeholder((4, 1), "bool"), te.placeholder((3,), "bool"))
    Tensor(logical_xor, (4, 3), bool)"""

def logsumexp(x: te.Tensor, axis: Axes = ..., keepdims: bool = ...) -> te.Tensor:
    """The logarithm of the sum of exponentials over ``axis``, without overflow.

    >>> from tir import ops, te
    >>> ops.logsumexp(te.placeholder((4, 3)), axis=-1)
    Tensor(logsumexp, (4,), float32)"""

def matmul(a: Tensor, b: Tensor, transp_a: bool = ..., transp_b: bool = ...) -> Tensor:
    """The product as in NumPy: ``(…, M, K)`` by ``(…, K, N)``, batches broadcast; one dimension is a row or a column.

    ``transp_a`` and ``transp_b`` say that the last two dimensions of an operand are exchanged. Types are promoted; with
    an accumulator of another type or a bias it is ``nn.matmul``. Raises ``TensorExpressionError`` where shapes do not
    agree, for tensors of no dimensions, and for bools.

    >>> from tir import ops, te
    >>> ops.matmul(te.placeholder((2, 3, 8), name="a"), te.placeholder((4, 8), name="b"), transp_b=True)
    Tensor(matmul, (2, 3, 4), float32)"""

def matrix_set_diag(x: Tensor, diagonal: Tensor, k: Any = ..., align: str = ...) -> Tensor:
    """The matrices ``x`` with other diagonals: number ``k``, above the main one where positive, or from ``k[0]`` to ``k[1]``.

    ``diagonal`` has the last dimension of the longest; of several, a dimension before that for each, from ``k[1]`` down.
    ``align`` says for those above and below the main one where shorter ones stand: ``"RIGHT_LEFT"``, ``"LEFT_RIGHT"`` ….

    Raises ``TensorExpressionError`` where ``diagonal`` has another shape or type.

    >>> from tir import ops, te
    >>> ops.matrix_set_diag(te.placeholder((3, 4), name="x"), te.placeholder((3,), name="d")).shape
    (3, 4)"""

def matrix_transpose(x: Tensor) -> Tensor:
    """``x`` with its last two dimensions exchanged. Raises ``TensorExpressionError`` where there are fewer.

    >>> from tir import ops, te
    >>> ops.matrix_transpose(te.placeholder((2, 3, 4), name="x")).shape
    (2, 4, 3)"""

def max(x: te.Tensor, axis: Axes = ..., keepdims: bool = ...) -> te.Tensor:
    """The largest element over ``axis`` (one, several, all for None); nan if one is nan. Of no elements an error.

    >>> from tir import ops, te
    >>> ops.max(te.placeholder((4, 3), "int8"))
    Tensor(max, (), int8)"""

def maximum(x: Operand, y: Operand) -> Tensor:
    """The larger of two values; nan if either is nan.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.maximum(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(maximum, (4, 3), float32)"""

def mean(x: te.Tensor, axis: Axes = ..., keepdims: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The mean over ``axis`` (one, several, all for None), a float of ``dtype``, by default that of ``x``; of no elements nan.

    >>> from tir import ops, te
    >>> ops.mean(te.placeholder((4, 3)), axis=0)
    Tensor(mean, (3,), float32)"""

def meshgrid(*arrays: Any, indexing: str = ...) -> list[Tensor]:
    """Grids of the coordinates in ``arrays``, tensors of one dimension: one grid each, of as many dimensions.

    With ``indexing="ij"`` dimension ``n`` is that of array ``n``; with ``"xy"`` the first two are exchanged. Also called
    as ``meshgrid([x, y], "ij")``.

    >>> from tir import ops, te
    >>> x, y = te.placeholder((3,), name="x"), te.placeholder((2,), name="y")
    >>> [grid.shape for grid in ops.meshgrid(x, y, indexing="ij")]
    [(3, 2), (3, 2)]"""

def min(x: te.Tensor, axis: Axes = ..., keepdims: bool = ...) -> te.Tensor:
    """The least element over ``axis`` (one, several, all for None); nan if one is nan. Of no elements an error.

    >>> from tir import ops, te
    >>> ops.min(te.placeholder((4, 3), "int8"), axis=1)
    Tensor(min, (4,), int8)"""

def minimum(x: Operand, y: Operand) -> Tensor:
    """The smaller of two values; nan if either is nan.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.minimum(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(minimum, (4, 3), float32)"""

def moveaxis(x: Tensor, source: Any, destination: Any) -> Tensor:
    """``x`` with its dimensions ``source`` at the places ``destination``, the others in their order.

    >>> from tir import ops, te
    >>> ops.moveaxis(te.placeholder((2, 3, 4), name="x"), 0, -1).shape
    (3, 4, 2)"""

def multiply(x: Operand, y: Operand) -> Tensor:
    """``x * y``.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.multiply(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(multiply, (4, 3), float32)"""
broadcast_mul = multiply

def ndarray_size(x: Tensor, dtype: Any = ...) -> Tensor:
    """The number of elements of ``x`` as a tensor without dimensions.

    >>> from tir import ops, te
    >>> ops.ndarray_size(te.placeholder((2, 3), name="x"))
    Tensor(size, (), int32)"""
tensor_size = ndarray_size

def negative(x: te.Tensor) -> te.Tensor:
    """``-x``; of an unsigned integer modulo its range.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.negative(te.placeholder((4, 3), "float32"))
    Tensor(negative, (4, 3), float32)"""

def nextafter(x: Operand, y: Operand) -> Tensor:
    """The number of the type that is next to ``x`` on the way to ``y``; ``y`` where both are equal, nan if either is nan.

    Operands broadcast, are promoted to a common type, and are floats.

    >>> from tir import ops, te
    >>> ops.nextafter(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(nextafter, (4, 3), float32)"""

def nonzero(x: Tensor) -> list[Tensor]:
    """The indices (dimensions, size of ``x``) of the elements that are not 0, in order, and (1,) how many they are.

    Indices are int64 and zeros beyond that number.

    >>> from tir import ops, te
    >>> indices, count = ops.nonzero(te.placeholder((3, 4), "bool", name="x"))
    >>> indices.shape, count.shape
    ((2, 12), (1,))"""

def not_equal(x: Operand, y: Operand) -> Tensor:
    """Whether ``x`` is not ``y``; nan differs from everything.

    Operands broadcast, are promoted to a common type, and are bools or integers or floats.

    >>> from tir import ops, te
    >>> ops.not_equal(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(not_equal, (4, 3), bool)"""

def one_hot(indices: Tensor, on_value: Any, off_value: Any, depth: Any, axis: int = ..., dtype: Any = ...) -> Tensor:
    """``on_value`` at place ``indices[…]`` of a new dimension ``axis`` of extent ``depth``, and ``off_value`` elsewhere.

    An index outside has ``off_value`` everywhere. Raises ``TensorExpressionError`` for indices that are no integers.

    >>> from tir import ops, te
    >>> ops.one_hot(te.placeholder((2, 3), "int32", name="at"), 1.0, 0.0, 10).shape
    (2, 3, 10)"""

def ones(shape: Any, dtype: Any = ...) -> Tensor:
    """A tensor of ones.

    >>> from tir import ops
    >>> ops.ones((2, 3), "int8")
    Tensor(ones, (2, 3), int8)"""

def ones_like(x: te.Tensor, dtype: Any = ...) -> te.Tensor:
    """A tensor of the shape of ``x``, and of its type or ``dtype``, with 1 everywhere.

    >>> from tir import ops, te
    >>> ops.ones_like(te.placeholder((4, 3)))
    Tensor(ones_like, (4, 3), float32)"""

def pad(x: Tensor, pad_width: Any, mode: str = ..., constant_values: Any = ...) -> Tensor:
    """``x`` with elements around it: ``pad_width`` is ``((before, after), …)`` for each axis, one pair, or one number.

    ``mode`` is ``"constant"`` (of ``constant_values``, one number), ``"edge"`` (the outermost element), ``"reflect"`` (mirrored at the
    outermost element), ``"symmetric"`` (with the outermost element twice), or ``"wrap"`` (from the other end), with the
    meaning that they have in ``numpy.pad``.

    Raises ``TensorExpressionError`` for negative widths, for those that are not of all axes, and for a mode that takes
    elements of an axis that has none.

    >>> from tir import ops, te
    >>> ops.pad(te.placeholder((3, 2), name="x"), ((1, 1), (0, 2)), mode="reflect").shape
    (5, 4)"""

def popcount(x: te.Tensor) -> te.Tensor:
    """How many bits are set, in the type of ``x``; of a negative number those of its two's complement.

    The tensor is integers.

    >>> from tir import ops, te
    >>> ops.popcount(te.placeholder((4, 3), "int32"))
    Tensor(popcount, (4, 3), int32)"""

def positive(x: te.Tensor) -> te.Tensor:
    """A copy.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.positive(te.placeholder((4, 3), "float32"))
    Tensor(positive, (4, 3), float32)"""
identity = positive

def pow(x: Operand, y: Operand) -> Tensor:
    """``x`` to the power of ``y``. A negative power of integers has no defined value.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.pow(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(pow, (4, 3), float32)"""
power = pow
broadcast_power = pow

def prod(x: te.Tensor, axis: Axes = ..., keepdims: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The product over ``axis`` (one, several, all for None); of no elements 1. For types see ``sum``.

    >>> from tir import ops, te
    >>> ops.prod(te.placeholder((4, 3), "int8"), axis=0, keepdims=True)
    Tensor(prod, (1, 3), int64)"""

def ravel(x: Tensor) -> Tensor:
    """All elements of ``x`` in one dimension, in row-major order.

    >>> from tir import ops, te
    >>> ops.ravel(te.placeholder((2, 3), name="x")).shape
    (6,)"""

def reciprocal(x: te.Tensor) -> te.Tensor:
    """``1 / x``.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.reciprocal(te.placeholder((4, 3), "float32"))
    Tensor(reciprocal, (4, 3), float32)"""

def reinterpret(x: te.Tensor, dtype: Any) -> te.Tensor:
    """The bits of ``x`` as numbers of ``dtype``, which is as wide.

    >>> from tir import ops, te
    >>> ops.reinterpret(te.placeholder((4,), "float32"), "uint32")
    Tensor(reinterpret, (4,), uint32)"""
view = reinterpret

def remainder(x: Operand, y: Operand) -> Tensor:
    """What ``floor_divide`` leaves, with the sign of ``y``: ``x % y`` of Python.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.remainder(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(remainder, (4, 3), float32)"""
floor_mod = remainder
floormod = remainder
broadcast_mod = remainder

def repeat(x: Tensor, repeats: Any, axis: int | None = ...) -> Tensor:
    """``x`` with each element along ``axis`` ``repeats`` times; of all elements in one dimension for None.

    Raises ``TensorExpressionError`` for a number for each element: ``repeats`` is one integer.

    >>> from tir import ops, te
    >>> ops.repeat(te.placeholder((2, 3), name="x"), 2, 1).shape
    (2, 6)"""

def reshape(x: Tensor, newshape: Any) -> Tensor:
    """The elements of ``x`` in row-major order in ``newshape``; one extent may be -1, which is what is left.

    Raises ``TensorExpressionError`` where the numbers of elements differ.

    >>> from tir import ops, te
    >>> n = te.var("n")
    >>> ops.reshape(te.placeholder((n, 2, 3), name="x"), (n, -1))
    Tensor(reshape, (n, 6), float32)"""

def reverse_sequence(x: Tensor, seq_lengths: Tensor, seq_axis: int = ..., batch_axis: int = ...) -> Tensor:
    """``x`` with the first ``seq_lengths[b]`` elements along ``seq_axis`` reversed, for each place ``b`` of ``batch_axis``.

    Raises ``TensorExpressionError`` where ``seq_lengths`` is not one integer for each place of the batch.

    >>> from tir import ops, te
    >>> ops.reverse_sequence(te.placeholder((2, 5), name="x"), te.placeholder((2,), "int32", name="n")).shape
    (2, 5)"""

def roll(x: Tensor, shift: Any, axis: Any = ...) -> Tensor:
    """``x`` with elements moved by ``shift`` places along ``axis``, what leaves at one end entering at the other.

    Without ``axis`` the elements move in row-major order. ``shift`` and ``axis`` may be tuples, as long as each other.

    >>> from tir import ops, te
    >>> ops.roll(te.placeholder((2, 3), name="x"), (1, -1), (0, 1)).shape
    (2, 3)"""

def round(x: te.Tensor) -> te.Tensor:
    """The nearest integer, in the type of ``x``; halves go to the even one.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.round(te.placeholder((4, 3), "float32"))
    Tensor(round, (4, 3), float32)"""

def rsqrt(x: te.Tensor) -> te.Tensor:
    """``1 / sqrt(x)``.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.rsqrt(te.placeholder((4, 3), "float32"))
    Tensor(rsqrt, (4, 3), float32)"""

def scatter_elements(x: Tensor, indices: Tensor, updates: Tensor, axis: int = ..., reduction: str = ...) -> Tensor:
    """``x`` with ``updates[…]`` at the index ``indices[…]`` along ``axis`` and that of the update along the others.

    ``reduction`` combines with what was there: ``"update"`` replaces it, in the order of ``updates``; ``"add"``, ``"mul"``,
    ``"max"``, ``"min"``; ``"mean"`` is that of the element of ``x`` and all its updates (rounded down, of integers).

    Raises ``TensorExpressionError`` where the shapes or the data types do not go together.

    >>> from tir import ops, te
    >>> x, updates = te.placeholder((3, 4), name="x"), te.placeholder((5, 2), name="updates")
    >>> ops.scatter_elements(x, te.placeholder((5, 2), "int64", name="at"), updates, 0, "add").shape
    (3, 4)"""
scatter = scatter_elements

def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, mode: str = ...) -> Tensor:
    """``x`` with ``updates[…]`` combined with the part at ``indices[0, …], indices[1, …] …``, in order.

    ``mode`` is ``"add"``, ``"update"``, ``"mul"``, ``"max"`` or ``"min"``. Raises ``TensorExpressionError`` where the shapes or the data
    types do not go together.

    >>> from tir import ops, te
    >>> x, updates = te.placeholder((3, 4), name="x"), te.placeholder((5, 4), name="updates")
    >>> ops.scatter_nd(x, te.placeholder((1, 5), "int64", name="at"), updates, "update").shape
    (3, 4)"""

def searchsorted(sorted_sequence: Tensor, values: Tensor, right: Any = ..., out_dtype: Any = ..., *, side: str | None = ...) -> Tensor:
    """For each value the index in ``sorted_sequence`` before which it stands in order: before equal ones, or, with ``right``
    or ``side="right"``, after them.

    The sequence has one dimension, or those of ``values``, and is ascending along the last.

    >>> from tir import ops, te
    >>> ops.searchsorted(te.placeholder((7,), name="x"), te.placeholder((2, 8), name="values")).shape
    (2, 8)"""

def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: Any = ..., axis: int = ...) -> Tensor:
    """``data`` with ``mask_value`` from place ``valid_length[b]`` of ``axis`` on. Time is axis 0 and the batch axis 1, or the
    other way round.

    >>> from tir import ops, te
    >>> ops.sequence_mask(te.placeholder((4, 3), name="x"), te.placeholder((3,), "int32", name="n"), axis=0).shape
    (4, 3)"""

def shape(x: Tensor, dtype: Any = ...) -> Tensor:
    """The extents of ``x`` as a tensor of one dimension.

    >>> from tir import ops, te
    >>> ops.shape(te.placeholder((2, 3), name="x"))
    Tensor(shape, (2,), int32)"""

def sigmoid(x: te.Tensor) -> te.Tensor:
    """``1 / (1 + exp(-x))``, between 0 and 1.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.sigmoid(te.placeholder((4, 3), "float32"))
    Tensor(sigmoid, (4, 3), float32)"""

def sign(x: te.Tensor) -> te.Tensor:
    """-1, 0 or 1; nan of nan.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.sign(te.placeholder((4, 3), "float32"))
    Tensor(sign, (4, 3), float32)"""

def signbit(x: te.Tensor) -> te.Tensor:
    """Whether it has a minus sign: true of -0.0.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.signbit(te.placeholder((4, 3), "float32"))
    Tensor(signbit, (4, 3), bool)"""

def sin(x: te.Tensor) -> te.Tensor:
    """The sine of an angle in radians.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.sin(te.placeholder((4, 3), "float32"))
    Tensor(sin, (4, 3), float32)"""

def sinh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic sine.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.sinh(te.placeholder((4, 3), "float32"))
    Tensor(sinh, (4, 3), float32)"""

def slice_scatter(input_tensor: Tensor, src: Tensor, start: Any, end: Any, step: int, axis: int) -> Tensor:
    """``input_tensor`` with ``src`` in the place of the slice ``start:end:step`` along ``axis``: :func:`strided_set` of one axis.

    >>> from tir import ops, te
    >>> ops.slice_scatter(te.placeholder((5, 6), name="x"), te.placeholder((5, 2), name="v"), 1, 5, 2, 1).shape
    (5, 6)"""

def sliding_window(x: Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """The windows of ``x`` along the axes from ``axis`` on: dimensions that number them, then those of a window.

    >>> from tir import ops, te
    >>> ops.sliding_window(te.placeholder((2, 5, 7), name="x"), 1, (3, 4), (1, 3)).shape
    (2, 3, 2, 3, 4)"""

def sort(x: Tensor, axis: int = ..., is_ascend: Any = ..., *, descending: bool = ..., stable: bool = ...) -> Tensor:
    """The elements of ``x`` in ascending order along ``axis``, in descending order with ``descending`` or ``is_ascend=False``.

    >>> from tir import ops, te
    >>> ops.sort(te.placeholder((2, 17), name="x"), descending=True)
    Tensor(sorted_v0, (2, 17), float32)"""

def sparse_to_dense(sparse_indices: Tensor, output_shape: Any, sparse_values: Tensor, default_value: Any = ...) -> Tensor:
    """A tensor of ``output_shape`` with ``sparse_values`` at ``sparse_indices`` and ``default_value`` elsewhere.

    Indices are one, a tensor of them, or (number, dimensions); values one for each, or one for all.

    >>> from tir import ops, te
    >>> at, values = te.placeholder((3, 2), "int32", name="at"), te.placeholder((3,), name="values")
    >>> ops.sparse_to_dense(at, (4, 5), values).shape
    (4, 5)"""

def split(x: Tensor, indices_or_sections: Any, axis: int = ...) -> list[Tensor]:
    """``x`` in parts along ``axis``: in so many of one size, or cut before each of the places that are given.

    Raises ``TensorExpressionError`` where parts of one size do not come out even.

    >>> from tir import ops, te
    >>> [part.shape for part in ops.split(te.placeholder((7,), name="x"), (2, 3))]
    [(2,), (1,), (4,)]"""

def sqrt(x: te.Tensor) -> te.Tensor:
    """The square root: nan below 0.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.sqrt(te.placeholder((4, 3), "float32"))
    Tensor(sqrt, (4, 3), float32)"""

def square(x: te.Tensor) -> te.Tensor:
    """``x * x``.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.square(te.placeholder((4, 3), "float32"))
    Tensor(square, (4, 3), float32)"""

def squeeze(x: Tensor, axis: Any = ...) -> Tensor:
    """``x`` without the dimensions ``axis``, all that have extent 1 for None.

    Raises ``TensorExpressionError`` for an extent other than 1.

    >>> from tir import ops, te
    >>> ops.squeeze(te.placeholder((1, 3, 1), name="x"), -1).shape
    (1, 3)"""

def stack(arrays: Sequence[Tensor], axis: int = ...) -> Tensor:
    """The tensors ``arrays``, of one shape, along a new dimension ``axis``. Types are promoted.

    >>> from tir import ops, te
    >>> ops.stack([te.placeholder((3,), name="x"), te.placeholder((3,), name="y")], -1).shape
    (3, 2)"""

def std(x: te.Tensor, axis: Axes = ..., correction: float = ..., keepdims: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The standard deviation over ``axis``: the square root of ``var``.

    >>> from tir import ops, te
    >>> ops.std(te.placeholder((4, 3)), axis=1, correction=1).shape
    (4,)"""

def stft(data: Tensor, n_fft: int, hop_length: int, win_length: int, window: Tensor, normalized: bool, onesided: bool, output_shape: Any = ...) -> Tensor:
    """Fourier transforms (batch, frequencies, frames, real and imaginary part) of parts of ``data`` (batch, length).

    Parts of ``n_fft`` elements begin at every ``hop_length``; ``window`` (``win_length``) stands in their middle. ``normalized``
    divides by √n_fft; ``onesided`` leaves out the frequencies above half.

    >>> from tir import ops, te
    >>> ops.stft(te.placeholder((2, 11), name="x"), 4, 2, 4, te.placeholder((4,), name="w"), False, True).shape
    (2, 3, 4, 2)"""

def strided_set(x: Tensor, v: Tensor, begin: Sequence[Any], end: Sequence[Any], strides: Sequence[int] | None = ...) -> Tensor:
    """``x`` with ``v`` in the place of ``x[begin[0]:end[0]:strides[0], …]``, slices as of :func:`strided_slice`.

    Raises ``TensorExpressionError`` where ``v`` has not the shape of the slice.

    >>> from tir import ops, te
    >>> ops.strided_set(te.placeholder((5,), name="x"), te.placeholder((2,), name="v"), (1,), (3,)).shape
    (5,)"""

def strided_slice(x: Tensor, begin: Sequence[Any], end: Sequence[Any], strides: Sequence[int] | None = ..., axes: Sequence[int] | None = ..., slice_mode: str = ...) -> Tensor:
    """``x[begin[0]:end[0]:strides[0], …]`` with the meaning of Python's slices: negative places count from the end, places
    beyond an end are left out, and None is the end itself.

    The slices are of the first axes, or of ``axes``. With ``slice_mode="size"``, ``end`` has numbers of elements, -1 for
    all that are left, and strides are 1. Raises ``TensorExpressionError`` for a stride of 0, and for lists whose lengths
    differ.

    >>> from tir import ops, te
    >>> ops.strided_slice(te.placeholder((5, 6), name="x"), (1, -1), (4, None), (1, -2)).shape
    (3, 3)"""
slice = strided_slice

def subtract(x: Operand, y: Operand) -> Tensor:
    """``x - y``.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.subtract(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(subtract, (4, 3), float32)"""
broadcast_sub = subtract

def sum(x: te.Tensor, axis: Axes = ..., keepdims: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The sum over ``axis`` (one, several, all for None); of no elements 0.

    The result is of ``dtype``: by default that of floats, and int64 or uint64 of bools and integers.

    >>> from tir import ops, te
    >>> x = te.placeholder((4, 3), "float16")
    >>> ops.sum(x, axis=-1, acc_dtype="float32")
    Tensor(sum, (4,), float16)"""

def take(x: Tensor, indices: Tensor, axis: int | None = ..., batch_dims: int = ..., mode: str = ...) -> Tensor:
    """The elements of ``x`` at ``indices`` along ``axis``; of all elements in one dimension for None.

    The result has the dimensions of ``indices`` in the place of ``axis``. The first ``batch_dims`` dimensions are the same for
    both. ``mode`` says what an index out of range reads: ``"clip"`` the nearest element, also for a negative one; ``"wrap"``
    counts around; ``"fast"`` is for indices that are known to be in range.

    >>> from tir import ops, te
    >>> ops.take(te.placeholder((3, 4), name="x"), te.placeholder((2, 5), "int32", name="at"), 1).shape
    (3, 2, 5)"""

def take_along_axis(x: Tensor, indices: Tensor, axis: int = ...) -> Tensor:
    """The elements of ``x`` whose index along ``axis`` is ``indices[…]``, and that of the result along the others.

    Other dimensions than ``axis`` broadcast. Raises ``TensorExpressionError`` where they do not, or their number differs.

    >>> from tir import ops, te
    >>> ops.take_along_axis(te.placeholder((3, 4), name="x"), te.placeholder((3, 2), "int64", name="at"), 1).shape
    (3, 2)"""

def tan(x: te.Tensor) -> te.Tensor:
    """The tangent of an angle in radians.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.tan(te.placeholder((4, 3), "float32"))
    Tensor(tan, (4, 3), float32)"""

def tanh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic tangent, between -1 and 1.

    The tensor is floats.

    >>> from tir import ops, te
    >>> ops.tanh(te.placeholder((4, 3), "float32"))
    Tensor(tanh, (4, 3), float32)"""
fast_tanh = tanh

def tensordot(a: Tensor, b: Tensor, axes: Any = ..., out_dtype: Any = ...) -> Tensor:
    """The sum of products over ``axes`` of ``a`` and of ``b``: the last ``axes`` of one and the first of the other, or two
    lists of as many axes.

    >>> from tir import ops, te
    >>> ops.tensordot(te.placeholder((2, 3, 4), name="a"), te.placeholder((4, 3), name="b"), ((1, 2), (1, 0))).shape
    (2,)"""

def tile(x: Tensor, reps: Any) -> Tensor:
    """``x`` repeated ``reps[n]`` times along dimension ``n``; missing dimensions and numbers in front are 1.

    >>> from tir import ops, te
    >>> ops.tile(te.placeholder((2, 3), name="x"), (2, 1, 2)).shape
    (2, 2, 6)"""

def topk(x: Tensor, k: Any = ..., axis: int = ..., ret_type: str = ..., is_ascend: bool = ..., dtype: Any = ...) -> Any:
    """The ``k`` largest elements along ``axis`` in descending order, and their indices; all, where ``k`` is below 1.

    The smallest in ascending order with ``is_ascend``. Of equal elements the first come first. ``ret_type`` is ``"both"``, ``"values"``
    or ``"indices"`` (of ``dtype``). Raises ``TensorExpressionError`` for more elements than there are.

    >>> from tir import ops, te
    >>> values, indices = ops.topk(te.placeholder((3, 7), name="x"), 2)
    >>> values, indices.dtype
    (Tensor(topk_values, (3, 2), float32), 'int64')"""

def transpose(x: Tensor, axes: Any = ...) -> Tensor:
    """``x`` with dimension ``axes[n]`` at place ``n``; all of them reversed for None.

    Raises ``TensorExpressionError`` where ``axes`` does not name each axis once.

    >>> from tir import ops, te
    >>> ops.transpose(te.placeholder((2, 3, 4), name="x"), (0, 2, 1)).shape
    (2, 4, 3)"""
permute_dims = transpose

def tril(x: Tensor, k: Any = ...) -> Tensor:
    """The matrices ``x`` with zeros above diagonal ``k``.

    >>> from tir import ops, te
    >>> ops.tril(te.placeholder((3, 4), name="x"), -1).shape
    (3, 4)"""

def trilu(x: Tensor, k: Any, upper: bool) -> Tensor:
    """:func:`triu` or :func:`tril`, of a diagonal that may be a tensor of one integer.

    >>> from tir import ops, te
    >>> ops.trilu(te.placeholder((3, 4), name="x"), 1, upper=True).shape
    (3, 4)"""

def triu(x: Tensor, k: Any = ...) -> Tensor:
    """The matrices ``x`` with zeros below diagonal ``k``.

    >>> from tir import ops, te
    >>> ops.triu(te.placeholder((3, 4), name="x"), 1).shape
    (3, 4)"""

def trunc(x: te.Tensor) -> te.Tensor:
    """The nearest integer toward 0, in the type of ``x``.

    The tensor is integers or floats.

    >>> from tir import ops, te
    >>> ops.trunc(te.placeholder((4, 3), "float32"))
    Tensor(trunc, (4, 3), float32)"""

def trunc_divide(x: Operand, y: Operand) -> Tensor:
    """``x / y`` rounded toward 0. An integer divided by 0 is an error of the run.

    Operands broadcast, are promoted to a common type, and are integers or floats.

    >>> from tir import ops, te
    >>> ops.trunc_divide(te.placeholder((4, 1), "float32"), te.placeholder((3,), "float32"))
    Tensor(trunc_divide, (4, 3), float32)"""
trunc_div = trunc_divide
truncdiv = trunc_divide

def unique(data: Tensor, is_sorted: bool = ..., return_counts: bool = ...) -> list[Tensor]:
    """The different elements of ``data``, of one dimension: in ascending order, or without ``is_sorted`` as they first come.

    Gives these, the index at which each comes first, for each element of ``data`` the number of its value, (1,) how many
    values there are, and with ``return_counts`` how often each comes. All are as long as ``data``, and zeros beyond that number;
    indices are int32.

    >>> from tir import ops, te
    >>> values, first, inverse, number = ops.unique(te.placeholder((9,), "int8", name="x"))
    >>> values.shape, number.shape
    ((9,), (1,))"""

def unravel_index(indices: Tensor, shape: Any) -> Tensor:
    """The indices, in a tensor of ``shape``, of the elements at places ``indices`` in row-major order.

    The result has a first dimension for those of ``shape``, a tuple or a tensor of integers.

    >>> from tir import ops, te
    >>> ops.unravel_index(te.placeholder((5,), "int32", name="at"), (2, 3)).shape
    (2, 5)"""

def unstack(x: Tensor, axis: int = ...) -> list[Tensor]:
    """The tensors that ``x`` has along ``axis``, whose extent is known, without that dimension.

    >>> from tir import ops, te
    >>> [part.shape for part in ops.unstack(te.placeholder((2, 3), name="x"), 1)]
    [(2,), (2,), (2,)]"""

def var(x: te.Tensor, axis: Axes = ..., correction: float = ..., keepdims: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The variance over ``axis``: the mean square of the distance from the mean, in two passes.

    ``correction`` is taken from the number of elements (1 for that of a sample). For types see ``mean``.

    >>> from tir import ops, te
    >>> ops.var(te.placeholder((4, 3)), axis=1, correction=1).shape
    (4,)"""

def vecdot(x1: Tensor, x2: Tensor, axis: int = ...) -> Tensor:
    """The sums of the products along ``axis`` of both tensors; the other axes broadcast.

    ``axis`` is counted in each tensor. Types are promoted. Raises ``TensorExpressionError`` where the extents along it
    differ or the others do not broadcast, and for bools.

    >>> from tir import ops, te
    >>> ops.vecdot(te.placeholder((2, 1, 8), name="x"), te.placeholder((3, 8), name="y"))
    Tensor(vecdot, (2, 3), float32)"""

def where(condition: te.Tensor, x: Operand, y: Operand) -> te.Tensor:
    """``x`` where ``condition``, a tensor of bools, is true, and ``y`` where it is not. All three broadcast.

    >>> from tir import ops, te
    >>> ops.where(te.placeholder((4, 1), "bool"), te.placeholder((3,)), 0)
    Tensor(where, (4, 3), float32)"""

def zeros(shape: Any, dtype: Any = ...) -> Tensor:
    """A tensor of zeros.

    >>> from tir import ops
    >>> ops.zeros((2, 3))
    Tensor(zeros, (2, 3), float32)"""

def zeros_like(x: te.Tensor, dtype: Any = ...) -> te.Tensor:
    """A tensor of the shape of ``x``, and of its type or ``dtype``, with 0 everywhere.

    >>> from tir import ops, te
    >>> ops.zeros_like(te.placeholder((4, 3)))
    Tensor(zeros_like, (4, 3), float32)"""

__all__: list[str]

def __getattr__(name: str) -> Any: ...  # operators of other packages
