"""Made by ``python -m tests.tools.generated``; do not edit."""

# ruff: noqa
# fmt: off
from collections.abc import Sequence
from typing import Any, Literal

from tir import te
from tir.ops.operands import Operand
from tir.ops.reduction import Axes
from tir.te import Tensor

from .check import check as check
from .default_schedule import schedule as schedule
from .registry import Argument as Argument, Case as Case, Operator as Operator, arg as arg, attributes as attributes, case as case, find as find, operator as operator, operators as operators
from . import nn as nn

from tir.ops.conversion import add_n as add_n, add_n as elemwise_sum, astype as astype, astype as cast, clip as clip, fixed_point_multiply as fixed_point_multiply, full_like as full_like, ones_like as ones_like, reinterpret as reinterpret, reinterpret as view, unpack_bits as unpack_bits, where as where, zeros_like as zeros_like
from tir.ops.indexing import adv_index as adv_index, adv_index as index_tensor, gather as gather, gather as gather_elements, gather_nd as gather_nd, take as take, take_along_axis as take_along_axis
from tir.ops.reduction import all as all, any as any, collapse_sum as collapse_sum, count_nonzero as count_nonzero, max as max, min as min, prod as prod, sum as sum
from tir.ops.creation import arange as arange, eye as eye, full as full, hamming_window as hamming_window, linspace as linspace, one_hot as one_hot, ones as ones, zeros as zeros
from tir.ops.positions import argmax as argmax, argmin as argmin
from tir.ops.sorting import argsort as argsort, searchsorted as searchsorted, sort as sort, topk as topk
from tir.ops.selection import argwhere as argwhere, nonzero as nonzero, unique as unique
from tir.ops.transform import broadcast_arrays as broadcast_arrays, broadcast_to as broadcast_to, expand_dims as expand_dims, expand_like as expand_like, ndarray_size as ndarray_size, ndarray_size as tensor_size, ravel as ravel, repeat as repeat, reshape as reshape, shape as shape, squeeze as squeeze, tile as tile, unravel_index as unravel_index
from tir.ops.joining import concatenate as concatenate, concatenate as concat, meshgrid as meshgrid, stack as stack, unstack as unstack
from tir.ops.cumulative import cummax as cummax, cummin as cummin, cumprod as cumprod, cumprod as cumulative_prod, cumsum as cumsum, cumsum as cumulative_sum, logcumsumexp as logcumsumexp
from tir.ops.spectrum import dft as dft, stft as stft
from tir.ops.differences import diff as diff
from tir.ops.slicing import dynamic_strided_slice as dynamic_strided_slice, slice_scatter as slice_scatter, sliding_window as sliding_window, split as split, strided_set as strided_set, strided_slice as strided_slice, strided_slice as slice
from tir.ops.named_axes import einsum as einsum, tensordot as tensordot
from tir.ops.order import flip as flip, flip as reverse, matrix_transpose as matrix_transpose, moveaxis as moveaxis, reverse_sequence as reverse_sequence, roll as roll, transpose as transpose, transpose as permute_dims
from tir.ops.arithmetic import gcd as gcd
from tir.ops.updates import index_put as index_put, scatter_elements as scatter_elements, scatter_elements as scatter, scatter_nd as scatter_nd, sparse_to_dense as sparse_to_dense
from tir.ops.relayout import layout_transform as layout_transform
from tir.ops.statistics import logsumexp as logsumexp, mean as mean
from tir.ops.products import matmul as matmul, vecdot as vecdot
from tir.ops.masks import matrix_set_diag as matrix_set_diag, sequence_mask as sequence_mask, tril as tril, trilu as trilu, triu as triu
from tir.ops.padding import pad as pad
from tir.ops.systems import solve as solve

def abs(x: te.Tensor) -> te.Tensor:
    """The size of a number; the least signed integer keeps its sign. The tensor is integers or floats. Shapes: ``(…) integer|float -> (…)``."""
def acos(x: te.Tensor) -> te.Tensor:
    """The angle between 0 and pi whose cosine is ``x``: nan where there is none. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def acosh(x: te.Tensor) -> te.Tensor:
    """The inverse of ``cosh``: nan below 1. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def add(x: Operand, y: Operand) -> Tensor:
    """``x + y``. Operands broadcast, are promoted to a common type, and are integers or floats. Shapes: ``(…*), (…*) -> (…*)``."""
broadcast_add = add
def asin(x: te.Tensor) -> te.Tensor:
    """The angle between -pi/2 and pi/2 whose sine is ``x``: nan where there is none. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def asinh(x: te.Tensor) -> te.Tensor:
    """The inverse of ``sinh``. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def atan(x: te.Tensor) -> te.Tensor:
    """The angle between -pi/2 and pi/2 whose tangent is ``x``. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def atan2(x: Operand, y: Operand) -> Tensor:
    """The angle of the point at ``(y, x)``, between -pi and pi: ``atan(x / y)`` in the right quadrant. Operands broadcast, are promoted to a common type, and are floats. Shapes: ``(…*), (…*) -> (…*)``."""
def atanh(x: te.Tensor) -> te.Tensor:
    """The inverse of ``tanh``: infinite at -1 and 1, nan beyond. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def bitwise_and(x: Operand, y: Operand) -> Tensor:
    """The bits that both have. Operands broadcast, are promoted to a common type, and are bools or integers. Shapes: ``(…*), (…*) -> (…*)``."""
def bitwise_invert(x: te.Tensor) -> te.Tensor:
    """The bits that it has not. The tensor is bools or integers. Shapes: ``(…) bool|integer -> (…)``."""
bitwise_not = bitwise_invert
def bitwise_left_shift(x: Operand, y: Operand) -> Tensor:
    """``x`` with its bits moved up by ``y``, which is not negative. Moved by all its bits or more, it is 0. Operands broadcast, are promoted to a common type, and are integers. Shapes: ``(…*), (…*) -> (…*)``."""
left_shift = bitwise_left_shift
def bitwise_or(x: Operand, y: Operand) -> Tensor:
    """The bits that one has. Operands broadcast, are promoted to a common type, and are bools or integers. Shapes: ``(…*), (…*) -> (…*)``."""
def bitwise_right_shift(x: Operand, y: Operand) -> Tensor:
    """``x`` with its bits moved down by ``y``, which is not negative: ``x`` divided by ``2 ** y``, rounded down. Moved by all its bits or more, it is 0, and -1 if it is negative. Operands broadcast, are promoted to a common type, and are integers. Shapes: ``(…*), (…*) -> (…*)``."""
right_shift = bitwise_right_shift
def bitwise_xor(x: Operand, y: Operand) -> Tensor:
    """The bits that just one has. Operands broadcast, are promoted to a common type, and are bools or integers. Shapes: ``(…*), (…*) -> (…*)``."""
def ceil(x: te.Tensor) -> te.Tensor:
    """The least integer not below ``x``, in its type. The tensor is integers or floats. Shapes: ``(…) integer|float -> (…)``."""
def copysign(x: Operand, y: Operand) -> Tensor:
    """``x`` with the sign of ``y``. Operands broadcast, are promoted to a common type, and are floats. Shapes: ``(…*), (…*) -> (…*)``."""
def cos(x: te.Tensor) -> te.Tensor:
    """The cosine of an angle in radians. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def cosh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic cosine. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def divide(x: Operand, y: Operand) -> Tensor:
    """``x / y`` of floats; of integers see ``floor_divide`` and ``trunc_divide``. Operands broadcast, are promoted to a common type, and are floats. Shapes: ``(…*), (…*) -> (…*)``."""
broadcast_div = divide
div = divide
def equal(x: Operand, y: Operand) -> Tensor:
    """Whether ``x`` is ``y``; nan equals nothing. Operands broadcast, are promoted to a common type, and are bools or integers or floats, and give bool. Shapes: ``(…*), (…*) -> (…*)``."""
def erf(x: te.Tensor) -> te.Tensor:
    """The error function. The tensor is floats. Shapes: ``(…) float -> (…)``."""
fast_erf = erf
def erfc(x: te.Tensor) -> te.Tensor:
    """``1 - erf(x)``, accurate for large ``x``. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def exp(x: te.Tensor) -> te.Tensor:
    """e to the power of ``x``. The tensor is floats. Shapes: ``(…) float -> (…)``."""
fast_exp = exp
def exp10(x: te.Tensor) -> te.Tensor:
    """10 to the power of ``x``. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def exp2(x: te.Tensor) -> te.Tensor:
    """2 to the power of ``x``. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def expm1(x: te.Tensor) -> te.Tensor:
    """``exp(x) - 1``, accurate near 0. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def floor(x: te.Tensor) -> te.Tensor:
    """The greatest integer not above ``x``, in its type. The tensor is integers or floats. Shapes: ``(…) integer|float -> (…)``."""
def floor_divide(x: Operand, y: Operand) -> Tensor:
    """The greatest integer that is not above ``x / y``. An integer divided by 0 is an error of the run. Of floats it is exact: ``1.0 // 0.1`` is 9. Of an infinite ``x`` it is nan. Operands broadcast, are promoted to a common type, and are integers or floats. Shapes: ``(…*), (…*) -> (…*)``."""
floordiv = floor_divide
def fmod(x: Operand, y: Operand) -> Tensor:
    """What ``trunc_divide`` leaves, with the sign of ``x``: ``x % y`` of C. Operands broadcast, are promoted to a common type, and are integers or floats. Shapes: ``(…*), (…*) -> (…*)``."""
mod = fmod
trunc_mod = fmod
truncmod = fmod
def greater(x: Operand, y: Operand) -> Tensor:
    """``x > y``; false where one is nan. Operands broadcast, are promoted to a common type, and are integers or floats, and give bool. Shapes: ``(…*), (…*) -> (…*)``."""
def greater_equal(x: Operand, y: Operand) -> Tensor:
    """``x >= y``; false where one is nan. Operands broadcast, are promoted to a common type, and are integers or floats, and give bool. Shapes: ``(…*), (…*) -> (…*)``."""
def hypot(x: Operand, y: Operand) -> Tensor:
    """``sqrt(x * x + y * y)`` without overflow. Operands broadcast, are promoted to a common type, and are floats. Shapes: ``(…*), (…*) -> (…*)``."""
def isfinite(x: te.Tensor) -> te.Tensor:
    """Whether it is a number that is not infinite. The tensor is integers or floats, the result bool. Shapes: ``(…) integer|float -> (…)``."""
def isinf(x: te.Tensor) -> te.Tensor:
    """Whether it is infinite, of either sign. The tensor is integers or floats, the result bool. Shapes: ``(…) integer|float -> (…)``."""
def isnan(x: te.Tensor) -> te.Tensor:
    """Whether it is nan. The tensor is integers or floats, the result bool. Shapes: ``(…) integer|float -> (…)``."""
def less(x: Operand, y: Operand) -> Tensor:
    """``x < y``; false where one is nan. Operands broadcast, are promoted to a common type, and are integers or floats, and give bool. Shapes: ``(…*), (…*) -> (…*)``."""
def less_equal(x: Operand, y: Operand) -> Tensor:
    """``x <= y``; false where one is nan. Operands broadcast, are promoted to a common type, and are integers or floats, and give bool. Shapes: ``(…*), (…*) -> (…*)``."""
def log(x: te.Tensor) -> te.Tensor:
    """The natural logarithm: -inf at 0, nan below. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def log10(x: te.Tensor) -> te.Tensor:
    """The logarithm to base 10. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def log1p(x: te.Tensor) -> te.Tensor:
    """``log(1 + x)``, accurate near 0. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def log2(x: te.Tensor) -> te.Tensor:
    """The logarithm to base 2. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def logaddexp(x: Operand, y: Operand) -> Tensor:
    """``log(exp(x) + exp(y))`` without overflow. Operands broadcast, are promoted to a common type, and are floats. Shapes: ``(…*), (…*) -> (…*)``."""
log_add_exp = logaddexp
def logical_and(x: Operand, y: Operand) -> Tensor:
    """Whether both are true. Of numbers say ``not_equal(x, 0)``. Operands broadcast, are promoted to a common type, and are bools. Shapes: ``(…*), (…*) -> (…*)``."""
def logical_not(x: te.Tensor) -> te.Tensor:
    """Whether it is false. The tensor is bools. Shapes: ``(…) bool -> (…)``."""
def logical_or(x: Operand, y: Operand) -> Tensor:
    """Whether one is true. Operands broadcast, are promoted to a common type, and are bools. Shapes: ``(…*), (…*) -> (…*)``."""
def logical_xor(x: Operand, y: Operand) -> Tensor:
    """Whether just one is true. Operands broadcast, are promoted to a common type, and are bools. Shapes: ``(…*), (…*) -> (…*)``."""
def maximum(x: Operand, y: Operand) -> Tensor:
    """The larger of two values; nan if either is nan. Operands broadcast, are promoted to a common type, and are integers or floats. Shapes: ``(…*), (…*) -> (…*)``."""
def minimum(x: Operand, y: Operand) -> Tensor:
    """The smaller of two values; nan if either is nan. Operands broadcast, are promoted to a common type, and are integers or floats. Shapes: ``(…*), (…*) -> (…*)``."""
def multiply(x: Operand, y: Operand) -> Tensor:
    """``x * y``. Operands broadcast, are promoted to a common type, and are integers or floats. Shapes: ``(…*), (…*) -> (…*)``."""
broadcast_mul = multiply
def negative(x: te.Tensor) -> te.Tensor:
    """``-x``; of an unsigned integer modulo its range. The tensor is integers or floats. Shapes: ``(…) integer|float -> (…)``."""
def nextafter(x: Operand, y: Operand) -> Tensor:
    """The number of the type that is next to ``x`` on the way to ``y``; ``y`` where both are equal, nan if either is nan. Operands broadcast, are promoted to a common type, and are floats. Shapes: ``(…*), (…*) -> (…*)``."""
def not_equal(x: Operand, y: Operand) -> Tensor:
    """Whether ``x`` is not ``y``; nan differs from everything. Operands broadcast, are promoted to a common type, and are bools or integers or floats, and give bool. Shapes: ``(…*), (…*) -> (…*)``."""
def popcount(x: te.Tensor) -> te.Tensor:
    """How many bits are set, in the type of ``x``; of a negative number those of its two's complement. The tensor is integers. Shapes: ``(…) integer -> (…)``."""
def positive(x: te.Tensor) -> te.Tensor:
    """A copy. The tensor is integers or floats. Shapes: ``(…) integer|float -> (…)``."""
identity = positive
def pow(x: Operand, y: Operand) -> Tensor:
    """``x`` to the power of ``y``. A negative power of integers has no defined value. Operands broadcast, are promoted to a common type, and are integers or floats. Shapes: ``(…*), (…*) -> (…*)``."""
power = pow
broadcast_power = pow
def reciprocal(x: te.Tensor) -> te.Tensor:
    """``1 / x``. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def remainder(x: Operand, y: Operand) -> Tensor:
    """What ``floor_divide`` leaves, with the sign of ``y``: ``x % y`` of Python. Operands broadcast, are promoted to a common type, and are integers or floats. Shapes: ``(…*), (…*) -> (…*)``."""
floor_mod = remainder
floormod = remainder
broadcast_mod = remainder
def round(x: te.Tensor) -> te.Tensor:
    """The nearest integer, in the type of ``x``; halves go to the even one. The tensor is integers or floats. Shapes: ``(…) integer|float -> (…)``."""
def rsqrt(x: te.Tensor) -> te.Tensor:
    """``1 / sqrt(x)``. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def sigmoid(x: te.Tensor) -> te.Tensor:
    """``1 / (1 + exp(-x))``, between 0 and 1. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def sign(x: te.Tensor) -> te.Tensor:
    """-1, 0 or 1; nan of nan. The tensor is integers or floats. Shapes: ``(…) integer|float -> (…)``."""
def signbit(x: te.Tensor) -> te.Tensor:
    """Whether it has a minus sign: true of -0.0. The tensor is floats, the result bool. Shapes: ``(…) float -> (…)``."""
def sin(x: te.Tensor) -> te.Tensor:
    """The sine of an angle in radians. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def sinh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic sine. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def sqrt(x: te.Tensor) -> te.Tensor:
    """The square root: nan below 0. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def square(x: te.Tensor) -> te.Tensor:
    """``x * x``. The tensor is integers or floats. Shapes: ``(…) integer|float -> (…)``."""
def std(x: te.Tensor, axis: Axes = ..., correction: float = ..., keepdims: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The standard deviation over ``axis``: the square root of ``var``."""
def subtract(x: Operand, y: Operand) -> Tensor:
    """``x - y``. Operands broadcast, are promoted to a common type, and are integers or floats. Shapes: ``(…*), (…*) -> (…*)``."""
broadcast_sub = subtract
def tan(x: te.Tensor) -> te.Tensor:
    """The tangent of an angle in radians. The tensor is floats. Shapes: ``(…) float -> (…)``."""
def tanh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic tangent, between -1 and 1. The tensor is floats. Shapes: ``(…) float -> (…)``."""
fast_tanh = tanh
def trunc(x: te.Tensor) -> te.Tensor:
    """The nearest integer toward 0, in the type of ``x``. The tensor is integers or floats. Shapes: ``(…) integer|float -> (…)``."""
def trunc_divide(x: Operand, y: Operand) -> Tensor:
    """``x / y`` rounded toward 0. An integer divided by 0 is an error of the run. Operands broadcast, are promoted to a common type, and are integers or floats. Shapes: ``(…*), (…*) -> (…*)``."""
trunc_div = trunc_divide
truncdiv = trunc_divide
def var(x: te.Tensor, axis: Axes = ..., correction: float = ..., keepdims: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The variance over ``axis``: the mean square of the distance from the mean, in two passes. ``correction`` is taken from the number of elements (1 for that of a sample). For types see ``mean``."""

def __getattr__(name: str) -> Any: ...  # operators of other packages
