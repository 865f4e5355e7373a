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
from .registry import operator as operator
from .registry import operators as operators
from . import nn as nn

def abs(x: te.Tensor) -> te.Tensor:
    """The size of a number; the least signed integer keeps its sign. The tensor is integers or floats."""
def acos(x: te.Tensor) -> te.Tensor:
    """The angle between 0 and pi whose cosine is ``x``: nan where there is none. The tensor is floats."""
def acosh(x: te.Tensor) -> te.Tensor:
    """The inverse of ``cosh``: nan below 1. The tensor is floats."""
def add(x: Operand, y: Operand) -> Tensor:
    """``x + y``. Operands broadcast, are promoted to a common type, and are integers or floats."""
broadcast_add = add
from tir.ops.conversion import add_n as add_n
elemwise_sum = add_n
from tir.ops.indexing import adv_index as adv_index
index_tensor = adv_index
from tir.ops.reduction import all as all
from tir.ops.reduction import any as any
from tir.ops.creation import arange as arange
from tir.ops.positions import argmax as argmax
from tir.ops.positions import argmin as argmin
from tir.ops.sorting import argsort as argsort
from tir.ops.selection import argwhere as argwhere
def asin(x: te.Tensor) -> te.Tensor:
    """The angle between -pi/2 and pi/2 whose sine is ``x``: nan where there is none. The tensor is floats."""
def asinh(x: te.Tensor) -> te.Tensor:
    """The inverse of ``sinh``. The tensor is floats."""
from tir.ops.conversion import astype as astype
cast = astype
def atan(x: te.Tensor) -> te.Tensor:
    """The angle between -pi/2 and pi/2 whose tangent is ``x``. The tensor is floats."""
def atan2(x: Operand, y: Operand) -> Tensor:
    """The angle of the point at ``(y, x)``, between -pi and pi: ``atan(x / y)`` in the right quadrant. Operands broadcast, are promoted to a common type, and are floats."""
def atanh(x: te.Tensor) -> te.Tensor:
    """The inverse of ``tanh``: infinite at -1 and 1, nan beyond. The tensor is floats."""
def bitwise_and(x: Operand, y: Operand) -> Tensor:
    """The bits that both have. Operands broadcast, are promoted to a common type, and are bools or integers."""
def bitwise_invert(x: te.Tensor) -> te.Tensor:
    """The bits that it has not. The tensor is bools or integers."""
bitwise_not = bitwise_invert
def bitwise_left_shift(x: Operand, y: Operand) -> Tensor:
    """``x`` with its bits moved up by ``y``, which is not negative. Moved by all its bits or more, it is 0. Operands broadcast, are promoted to a common type, and are integers."""
left_shift = bitwise_left_shift
def bitwise_or(x: Operand, y: Operand) -> Tensor:
    """The bits that one has. Operands broadcast, are promoted to a common type, and are bools or integers."""
def bitwise_right_shift(x: Operand, y: Operand) -> Tensor:
    """``x`` with its bits moved down by ``y``, which is not negative: ``x`` divided by ``2 ** y``, rounded down. Moved by all its bits or more, it is 0, and -1 if it is negative. Operands broadcast, are promoted to a common type, and are integers."""
right_shift = bitwise_right_shift
def bitwise_xor(x: Operand, y: Operand) -> Tensor:
    """The bits that just one has. Operands broadcast, are promoted to a common type, and are bools or integers."""
from tir.ops.transform import broadcast_arrays as broadcast_arrays
from tir.ops.transform import broadcast_to as broadcast_to
def ceil(x: te.Tensor) -> te.Tensor:
    """The least integer not below ``x``, in its type. The tensor is integers or floats."""
from tir.ops.conversion import clip as clip
from tir.ops.reduction import collapse_sum as collapse_sum
from tir.ops.joining import concatenate as concatenate
concat = concatenate
def copysign(x: Operand, y: Operand) -> Tensor:
    """``x`` with the sign of ``y``. Operands broadcast, are promoted to a common type, and are floats."""
def cos(x: te.Tensor) -> te.Tensor:
    """The cosine of an angle in radians. The tensor is floats."""
def cosh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic cosine. The tensor is floats."""
from tir.ops.reduction import count_nonzero as count_nonzero
from tir.ops.cumulative import cummax as cummax
from tir.ops.cumulative import cummin as cummin
from tir.ops.cumulative import cumprod as cumprod
cumulative_prod = cumprod
from tir.ops.cumulative import cumsum as cumsum
cumulative_sum = cumsum
from tir.ops.spectrum import dft as dft
from tir.ops.differences import diff as diff
def divide(x: Operand, y: Operand) -> Tensor:
    """``x / y`` of floats; of integers see ``floor_divide`` and ``trunc_divide``. Operands broadcast, are promoted to a common type, and are floats."""
broadcast_div = divide
div = divide
from tir.ops.slicing import dynamic_strided_slice as dynamic_strided_slice
from tir.ops.contraction import einsum as einsum
def equal(x: Operand, y: Operand) -> Tensor:
    """Whether ``x`` is ``y``; nan equals nothing. Operands broadcast, are promoted to a common type, and are bools or integers or floats."""
def erf(x: te.Tensor) -> te.Tensor:
    """The error function. The tensor is floats."""
fast_erf = erf
def erfc(x: te.Tensor) -> te.Tensor:
    """``1 - erf(x)``, accurate for large ``x``. The tensor is floats."""
def exp(x: te.Tensor) -> te.Tensor:
    """e to the power of ``x``. The tensor is floats."""
fast_exp = exp
def exp10(x: te.Tensor) -> te.Tensor:
    """10 to the power of ``x``. The tensor is floats."""
def exp2(x: te.Tensor) -> te.Tensor:
    """2 to the power of ``x``. The tensor is floats."""
from tir.ops.transform import expand_dims as expand_dims
from tir.ops.transform import expand_like as expand_like
def expm1(x: te.Tensor) -> te.Tensor:
    """``exp(x) - 1``, accurate near 0. The tensor is floats."""
from tir.ops.creation import eye as eye
from tir.ops.conversion import fixed_point_multiply as fixed_point_multiply
from tir.ops.order import flip as flip
reverse = flip
def floor(x: te.Tensor) -> te.Tensor:
    """The greatest integer not above ``x``, in its type. The tensor is integers or floats."""
def floor_divide(x: Operand, y: Operand) -> Tensor:
    """The greatest integer that is not above ``x / y``. An integer divided by 0 is an error of the run. Of floats it is exact: ``1.0 // 0.1`` is 9. Of an infinite ``x`` it is nan. Operands broadcast, are promoted to a common type, and are integers or floats."""
floordiv = floor_divide
def fmod(x: Operand, y: Operand) -> Tensor:
    """What ``trunc_divide`` leaves, with the sign of ``x``: ``x % y`` of C. Operands broadcast, are promoted to a common type, and are integers or floats."""
mod = fmod
trunc_mod = fmod
truncmod = fmod
from tir.ops.creation import full as full
from tir.ops.conversion import full_like as full_like
from tir.ops.indexing import gather as gather
gather_elements = gather
from tir.ops.indexing import gather_nd as gather_nd
def greater(x: Operand, y: Operand) -> Tensor:
    """``x > y``; false where one is nan. Operands broadcast, are promoted to a common type, and are integers or floats."""
def greater_equal(x: Operand, y: Operand) -> Tensor:
    """``x >= y``; false where one is nan. Operands broadcast, are promoted to a common type, and are integers or floats."""
from tir.ops.creation import hamming_window as hamming_window
def hypot(x: Operand, y: Operand) -> Tensor:
    """``sqrt(x * x + y * y)`` without overflow. Operands broadcast, are promoted to a common type, and are floats."""
from tir.ops.updates import index_put as index_put
def isfinite(x: te.Tensor) -> te.Tensor:
    """Whether it is a number that is not infinite. The tensor is integers or floats."""
def isinf(x: te.Tensor) -> te.Tensor:
    """Whether it is infinite, of either sign. The tensor is integers or floats."""
def isnan(x: te.Tensor) -> te.Tensor:
    """Whether it is nan. The tensor is integers or floats."""
from tir.ops.layout import layout_transform as layout_transform
def less(x: Operand, y: Operand) -> Tensor:
    """``x < y``; false where one is nan. Operands broadcast, are promoted to a common type, and are integers or floats."""
def less_equal(x: Operand, y: Operand) -> Tensor:
    """``x <= y``; false where one is nan. Operands broadcast, are promoted to a common type, and are integers or floats."""
from tir.ops.creation import linspace as linspace
def log(x: te.Tensor) -> te.Tensor:
    """The natural logarithm: -inf at 0, nan below. The tensor is floats."""
def log10(x: te.Tensor) -> te.Tensor:
    """The logarithm to base 10. The tensor is floats."""
def log1p(x: te.Tensor) -> te.Tensor:
    """``log(1 + x)``, accurate near 0. The tensor is floats."""
def log2(x: te.Tensor) -> te.Tensor:
    """The logarithm to base 2. The tensor is floats."""
def logaddexp(x: Operand, y: Operand) -> Tensor:
    """``log(exp(x) + exp(y))`` without overflow. Operands broadcast, are promoted to a common type, and are floats."""
log_add_exp = logaddexp
from tir.ops.cumulative import logcumsumexp as logcumsumexp
def logical_and(x: Operand, y: Operand) -> Tensor:
    """Whether both are true. Of numbers say ``not_equal(x, 0)``. Operands broadcast, are promoted to a common type, and are bools."""
def logical_not(x: te.Tensor) -> te.Tensor:
    """Whether it is false. The tensor is bools."""
def logical_or(x: Operand, y: Operand) -> Tensor:
    """Whether one is true. Operands broadcast, are promoted to a common type, and are bools."""
def logical_xor(x: Operand, y: Operand) -> Tensor:
    """Whether just one is true. Operands broadcast, are promoted to a common type, and are bools."""
from tir.ops.statistics import logsumexp as logsumexp
from tir.ops.products import matmul as matmul
from tir.ops.masks import matrix_set_diag as matrix_set_diag
from tir.ops.order import matrix_transpose as matrix_transpose
from tir.ops.reduction import max as max
def maximum(x: Operand, y: Operand) -> Tensor:
    """The larger of two values; nan if either is nan. Operands broadcast, are promoted to a common type, and are integers or floats."""
from tir.ops.statistics import mean as mean
from tir.ops.joining import meshgrid as meshgrid
from tir.ops.reduction import min as min
def minimum(x: Operand, y: Operand) -> Tensor:
    """The smaller of two values; nan if either is nan. Operands broadcast, are promoted to a common type, and are integers or floats."""
from tir.ops.order import moveaxis as moveaxis
def multiply(x: Operand, y: Operand) -> Tensor:
    """``x * y``. Operands broadcast, are promoted to a common type, and are integers or floats."""
broadcast_mul = multiply
from tir.ops.transform import ndarray_size as ndarray_size
tensor_size = ndarray_size
def negative(x: te.Tensor) -> te.Tensor:
    """``-x``; of an unsigned integer modulo its range. The tensor is integers or floats."""
def nextafter(x: Operand, y: Operand) -> Tensor:
    """The number of the type that is next to ``x`` on the way to ``y``; ``y`` where both are equal, nan if either is nan. Operands broadcast, are promoted to a common type, and are floats."""
from tir.ops.selection import nonzero as nonzero
def not_equal(x: Operand, y: Operand) -> Tensor:
    """Whether ``x`` is not ``y``; nan differs from everything. Operands broadcast, are promoted to a common type, and are bools or integers or floats."""
from tir.ops.creation import one_hot as one_hot
from tir.ops.creation import ones as ones
from tir.ops.conversion import ones_like as ones_like
from tir.ops.padding import pad as pad
def popcount(x: te.Tensor) -> te.Tensor:
    """How many bits are set, in the type of ``x``; of a negative number those of its two's complement. The tensor is integers."""
def positive(x: te.Tensor) -> te.Tensor:
    """A copy. The tensor is integers or floats."""
identity = positive
def pow(x: Operand, y: Operand) -> Tensor:
    """``x`` to the power of ``y``. A negative power of integers has no defined value. Operands broadcast, are promoted to a common type, and are integers or floats."""
power = pow
broadcast_power = pow
from tir.ops.reduction import prod as prod
from tir.ops.transform import ravel as ravel
def reciprocal(x: te.Tensor) -> te.Tensor:
    """``1 / x``. The tensor is floats."""
from tir.ops.conversion import reinterpret as reinterpret
view = reinterpret
def remainder(x: Operand, y: Operand) -> Tensor:
    """What ``floor_divide`` leaves, with the sign of ``y``: ``x % y`` of Python. Operands broadcast, are promoted to a common type, and are integers or floats."""
floor_mod = remainder
floormod = remainder
broadcast_mod = remainder
from tir.ops.transform import repeat as repeat
from tir.ops.transform import reshape as reshape
from tir.ops.order import reverse_sequence as reverse_sequence
from tir.ops.order import roll as roll
def round(x: te.Tensor) -> te.Tensor:
    """The nearest integer, in the type of ``x``; halves go to the even one. The tensor is integers or floats."""
def rsqrt(x: te.Tensor) -> te.Tensor:
    """``1 / sqrt(x)``. The tensor is floats."""
from tir.ops.updates import scatter_elements as scatter_elements
scatter = scatter_elements
from tir.ops.updates import scatter_nd as scatter_nd
from tir.ops.sorting import searchsorted as searchsorted
from tir.ops.masks import sequence_mask as sequence_mask
from tir.ops.transform import shape as shape
def sigmoid(x: te.Tensor) -> te.Tensor:
    """``1 / (1 + exp(-x))``, between 0 and 1. The tensor is floats."""
def sign(x: te.Tensor) -> te.Tensor:
    """-1, 0 or 1; nan of nan. The tensor is integers or floats."""
def signbit(x: te.Tensor) -> te.Tensor:
    """Whether it has a minus sign: true of -0.0. The tensor is floats."""
def sin(x: te.Tensor) -> te.Tensor:
    """The sine of an angle in radians. The tensor is floats."""
def sinh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic sine. The tensor is floats."""
from tir.ops.slicing import slice_scatter as slice_scatter
from tir.ops.slicing import sliding_window as sliding_window
from tir.ops.sorting import sort as sort
from tir.ops.updates import sparse_to_dense as sparse_to_dense
from tir.ops.slicing import split as split
def sqrt(x: te.Tensor) -> te.Tensor:
    """The square root: nan below 0. The tensor is floats."""
def square(x: te.Tensor) -> te.Tensor:
    """``x * x``. The tensor is integers or floats."""
from tir.ops.transform import squeeze as squeeze
from tir.ops.joining import stack as stack
def std(x: te.Tensor, axis: Axes = ..., correction: float = ..., keepdims: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The standard deviation over ``axis``: the square root of ``var``."""
from tir.ops.spectrum import stft as stft
from tir.ops.slicing import strided_set as strided_set
from tir.ops.slicing import strided_slice as strided_slice
slice = strided_slice
def subtract(x: Operand, y: Operand) -> Tensor:
    """``x - y``. Operands broadcast, are promoted to a common type, and are integers or floats."""
broadcast_sub = subtract
from tir.ops.reduction import sum as sum
from tir.ops.indexing import take as take
from tir.ops.indexing import take_along_axis as take_along_axis
def tan(x: te.Tensor) -> te.Tensor:
    """The tangent of an angle in radians. The tensor is floats."""
def tanh(x: te.Tensor) -> te.Tensor:
    """The hyperbolic tangent, between -1 and 1. The tensor is floats."""
fast_tanh = tanh
from tir.ops.contraction import tensordot as tensordot
from tir.ops.transform import tile as tile
from tir.ops.sorting import topk as topk
from tir.ops.order import transpose as transpose
permute_dims = transpose
from tir.ops.masks import tril as tril
from tir.ops.masks import trilu as trilu
from tir.ops.masks import triu as triu
def trunc(x: te.Tensor) -> te.Tensor:
    """The nearest integer toward 0, in the type of ``x``. The tensor is integers or floats."""
def trunc_divide(x: Operand, y: Operand) -> Tensor:
    """``x / y`` rounded toward 0. An integer divided by 0 is an error of the run. Operands broadcast, are promoted to a common type, and are integers or floats."""
trunc_div = trunc_divide
truncdiv = trunc_divide
from tir.ops.selection import unique as unique
from tir.ops.conversion import unpack_bits as unpack_bits
from tir.ops.transform import unravel_index as unravel_index
from tir.ops.joining import unstack as unstack
def var(x: te.Tensor, axis: Axes = ..., correction: float = ..., keepdims: bool = ..., dtype: Any = ..., acc_dtype: Any = ...) -> te.Tensor:
    """The variance over ``axis``: the mean square of the distance from the mean, in two passes. ``correction`` is taken from the number of elements (1 for that of a sample). For types see ``mean``."""
from tir.ops.products import vecdot as vecdot
from tir.ops.conversion import where as where
from tir.ops.creation import zeros as zeros
from tir.ops.conversion import zeros_like as zeros_like

def __getattr__(name: str) -> Any: ...  # operators of other packages
