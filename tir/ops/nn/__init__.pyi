"""Made by ``python -m tir.ops._stubs``; do not edit."""

# ruff: noqa
# fmt: off
from collections.abc import Sequence
from typing import Any, Literal

from tir import te
from tir.ops.operands import Operand
from tir.ops.reduction import Axes
from tir.te import Tensor


def adaptive_pool(data: Tensor, output_size: Any, pool_type: Literal['max', 'avg'], layout: str = ...) -> Tensor:
    """The largest element (``"max"``) or the mean (``"avg"``) of each of ``output_size`` parts of an image.

    ``output_size`` is one integer, or one each of rows and columns (None: as many as there are). Part ``i`` of ``n`` has
    the elements from ``floor(i * extent / n)`` to ``ceil((i + 1) * extent / n)``; parts may overlap. Raises
    ``TensorExpressionError`` for another ``pool_type``, a size below 1, and a layout that is none.

    >>> from tir import ops, te
    >>> ops.nn.adaptive_pool(te.placeholder((1, 2, 7, 5)), (3, 2), 'avg').shape
    (1, 2, 3, 2)"""
adaptive_pool2d = adaptive_pool
def adaptive_pool1d(data: Tensor, output_size: Any, pool_type: Literal['max', 'avg'], layout: str = ...) -> Tensor:
    """As :func:`adaptive_pool`, of one dimension.

    >>> from tir import ops, te
    >>> ops.nn.adaptive_pool1d(te.placeholder((2, 3, 7)), 3, 'avg').shape
    (2, 3, 3)"""
def adaptive_pool3d(data: Tensor, output_size: Any, pool_type: Literal['max', 'avg'], layout: str = ...) -> Tensor:
    """As :func:`adaptive_pool`, of three dimensions.

    >>> from tir import ops, te
    >>> ops.nn.adaptive_pool3d(te.placeholder((1, 2, 3, 4, 5)), (2, 2, 3), 'avg').shape
    (1, 2, 2, 2, 3)"""
def batch_matmul(tensor_a: Tensor, tensor_b: Tensor, oshape: Any = ..., out_dtype: Any = ..., transpose_a: bool = ..., transpose_b: bool = ...) -> Tensor:
    """The products of two batches of matrices, ``(B, M, K)`` by ``(B, N, K)`` (the second one is transposed by default).

    A batch of 1 is taken for each of the other's. ``oshape``, where given, is the shape of the result. Raises as
    :func:`matmul`, and for tensors that have not three dimensions.

    >>> from tir import te, topi
    >>> x, y = te.placeholder((2, 3, 8), name="x"), te.placeholder((2, 4, 8), name="y")
    >>> topi.nn.batch_matmul(x, y)
    Tensor(matmul, (2, 3, 4), float32)"""
def batch_norm(data: Tensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor, moving_var: Tensor, axis: int = ..., epsilon: float = ..., center: bool = ..., scale: bool = ..., training: bool = ..., momentum: float = ...) -> tuple[Tensor, Tensor, Tensor]:
    """``gamma * (data - mean) / sqrt(var + epsilon) + beta`` of each channel, which ``axis`` counts; and the moving moments.

    Mean and variance are ``moving_mean`` and ``moving_var``, which are also the second and third result; with ``training``
    they are those of the batch (the variance of all its elements, not the unbiased estimate), and the other results are
    ``(1 - momentum) * moving + momentum * of the batch``. The four parameters have one element a channel; ``gamma`` counts
    only with ``scale``, ``beta`` only with ``center``. Raises ``TensorExpressionError`` for another number of elements.

    >>> from tir import te, topi
    >>> x, *p = te.placeholder((1, 8, 4, 4), name="x"), *(te.placeholder((8,), name=n) for n in ("g", "b", "m", "v"))
    >>> topi.nn.batch_norm(x, *p)[0]
    Tensor(batch_norm, (1, 8, 4, 4), float32)"""
from tir.ops.layout import batch_to_space_nd as batch_to_space_nd
def bias_add(data: Tensor, bias: Tensor, axis: int = ...) -> Tensor:
    """``data`` plus ``bias``, which has one element for each index of ``axis``.

    Raises ``TensorExpressionError`` for a ``bias`` of another length.

    >>> from tir import te, topi
    >>> topi.nn.bias_add(te.placeholder((2, 3, 4), name="x"), te.placeholder((3,), name="b"))
    Tensor(bias_add, (2, 3, 4), float32)"""
def celu(x: Tensor, alpha: float = ...) -> Tensor:
    """``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``.

    >>> from tir import te, topi
    >>> topi.nn.celu(te.placeholder((3, 1, 5)))
    Tensor(celu, (3, 1, 5), float32)"""
from tir.ops.padding import circular_pad as circular_pad
def conv1d(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ..., out_dtype: Any = ..., groups: int = ...) -> Tensor:
    """As :func:`conv2d`, of one dimension: ``data`` is ``(N, C, W)``, the kernel ``(O, C / groups, W)``.

    ``padding`` of two numbers is before and after. By default nothing is added.

    >>> from tir import ops, te
    >>> ops.nn.conv1d(te.placeholder((2, 3, 7)), te.placeholder((4, 3, 3))).shape
    (2, 4, 5)"""
def conv1d_ncw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv1d` of ``(N, C, W)`` by ``(O, C, W)``.

    >>> from tir import ops, te
    >>> ops.nn.conv1d_ncw(te.placeholder((2, 3, 7)), te.placeholder((4, 3, 3)), 2, 1).shape
    (2, 4, 4)"""
def conv1d_nwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv1d` of ``(N, W, C)`` by ``(W, C, O)``.

    >>> from tir import ops, te
    >>> ops.nn.conv1d_nwc(te.placeholder((2, 7, 3)), te.placeholder((3, 3, 4)), 2, 1).shape
    (2, 4, 4)"""
def conv1d_transpose(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., out_dtype: Any = ..., output_padding: Any = ..., groups: int = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ...) -> Tensor:
    """As :func:`conv2d_transpose`, of one dimension: ``data`` is ``(N, C, W)``, the kernel ``(C, O / groups, W)``.

    >>> from tir import ops, te
    >>> ops.nn.conv1d_transpose(te.placeholder((2, 3, 5)), te.placeholder((3, 2, 3)), 2, 1, None, 1).shape
    (2, 2, 10)"""
conv1d_transpose_ncw = conv1d_transpose
group_conv1d_transpose_ncw = conv1d_transpose
def conv2d(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ..., out_dtype: Any = ..., groups: int = ...) -> Tensor:
    """The sums of products of a kernel with windows of an image: the convolution of neural networks.

    ``data`` is ``(N, C, H, W)`` or in another ``data_layout``: ``NHWC``, ``HWCN``, channels in groups as ``NCHW4c``; the
    kernel ``(O, C / groups, H, W)``, ``OIHW``, and for ``NHWC`` ``HWIO``, for ``NCHW4c`` ``OIHWio``, where no
    ``kernel_layout`` is given. The result, in the layout of the data, has ``O`` channels and
    ``(H + pads - (size - 1) * dilation - 1) // stride + 1`` rows. ``strides`` and ``dilation`` are one integer, or one each;
    ``padding`` also (top, left, bottom, right), ``"VALID"``, ``"SAME"`` (a kernel less 1, the odd one before), ``"SAME_UPPER"`` and ``"SAME_LOWER"`` (as ONNX).
    Each group of ``C / groups`` channels makes ``O / groups``.

    Raises ``TensorExpressionError`` where channels do not agree, for a kernel larger than the padded image, and for
    attributes that are none of these.

    >>> from tir import ops, te
    >>> ops.nn.conv2d(te.placeholder((1, 3, 8, 8)), te.placeholder((4, 3, 3, 3)), 1, 1, 1).shape
    (1, 4, 8, 8)"""
def conv2d_NCHWc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., layout: str = ..., out_layout: str = ..., out_dtype: Any = ..., groups: int = ...) -> Tensor:
    """:func:`conv2d` of channels in groups, ``(N, C // c, H, W, c)``, by ``(O // o, C // i, H, W, i, o)``.

    The groups of the result are as large as ``out_layout`` says (``NCHW8c``), else as those of the kernel's outputs.

    >>> from tir import te, topi
    >>> x, w = te.placeholder((1, 2, 8, 8, 4), name="x"), te.placeholder((1, 2, 3, 3, 4, 8), name="w")
    >>> topi.nn.conv2d_NCHWc(x, w, padding=1)
    Tensor(conv2d, (1, 1, 8, 8, 8), float32)"""
def conv2d_hwcn(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv2d` of ``(H, W, C, N)`` by ``(H, W, C, O)``.

    >>> from tir import ops, te
    >>> ops.nn.conv2d_hwcn(te.placeholder((5, 6, 2, 1)), te.placeholder((3, 3, 2, 3)), 1, 1, 1).shape
    (5, 6, 3, 1)"""
def conv2d_nchw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv2d` of ``(N, C, H, W)`` by ``(O, C, H, W)``.

    >>> from tir import ops, te
    >>> ops.nn.conv2d_nchw(te.placeholder((1, 2, 5, 6)), te.placeholder((3, 2, 3, 3)), 1, 1, 1).shape
    (1, 3, 5, 6)"""
def conv2d_nhwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv2d` of ``(N, H, W, C)`` by ``(H, W, C, O)``.

    >>> from tir import ops, te
    >>> ops.nn.conv2d_nhwc(te.placeholder((1, 5, 6, 2)), te.placeholder((3, 3, 2, 3)), 1, 1, 1).shape
    (1, 5, 6, 3)"""
def conv2d_transpose(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., out_dtype: Any = ..., output_padding: Any = ..., groups: int = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ...) -> Tensor:
    """The transposed convolution: the gradient of :func:`conv2d` by its data.

    ``data`` is ``(N, C, H, W)``, the kernel ``(C, O / groups, H, W)``; the result has ``O`` channels and
    ``(H - 1) * stride - pads + (size - 1) * dilation + 1 + output_padding`` rows. ``padding`` (as of :func:`conv2d`) is
    taken away at the ends, ``output_padding`` added at the last one; ``"SAME_UPPER"`` leaves ``H * stride`` rows.

    Raises ``TensorExpressionError`` where channels do not agree, and for an ``output_padding`` that is as large as the
    stride and the dilation.

    >>> from tir import ops, te
    >>> ops.nn.conv2d_transpose(te.placeholder((1, 3, 4, 3)), te.placeholder((3, 2, 3, 3)), 2, 1, None, 1).shape
    (1, 2, 8, 6)"""
conv2d_transpose_nchw = conv2d_transpose
group_conv2d_transpose_nchw = conv2d_transpose
def conv3d(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ..., out_dtype: Any = ..., groups: int = ...) -> Tensor:
    """As :func:`conv2d`, of three dimensions: ``data`` is ``(N, C, D, H, W)``, the kernel ``(O, C / groups, D, H, W)``.

    >>> from tir import ops, te
    >>> ops.nn.conv3d(te.placeholder((1, 2, 4, 3, 5)), te.placeholder((3, 2, 3, 2, 3)), 1, 1).shape
    (1, 3, 4, 4, 5)"""
def conv3d_ncdhw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv3d` of ``(N, C, D, H, W)`` by ``(O, C / groups, D, H, W)``.

    >>> from tir import ops, te
    >>> ops.nn.conv3d_ncdhw(te.placeholder((1, 2, 3, 4, 4)), te.placeholder((3, 2, 2, 3, 2)), 1, 1, 1).shape
    (1, 3, 4, 4, 5)"""
def conv3d_ndhwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv3d` of ``(N, D, H, W, C)`` by ``(D, H, W, C / groups, O)``.

    >>> from tir import ops, te
    >>> ops.nn.conv3d_ndhwc(te.placeholder((1, 3, 4, 4, 2)), te.placeholder((2, 3, 2, 2, 3)), 1, 1, 1).shape
    (1, 4, 4, 5, 3)"""
def conv3d_transpose(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., out_dtype: Any = ..., output_padding: Any = ..., groups: int = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ...) -> Tensor:
    """As :func:`conv2d_transpose`, of three dimensions: ``data`` is ``(N, C, D, H, W)``.

    >>> from tir import ops, te
    >>> ops.nn.conv3d_transpose(te.placeholder((1, 2, 2, 3, 2)), te.placeholder((2, 2, 2, 3, 2)), (1, 2, 2), 1, None, (0, 1, 0)).shape
    (1, 2, 1, 6, 2)"""
conv3d_transpose_ncdhw = conv3d_transpose
group_conv3d_transpose_ncdhw = conv3d_transpose
def correlation_nchw(data1: Tensor, data2: Tensor, kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: Any, is_multiply: bool) -> Tensor:
    """How windows of one image (NCHW) resemble those of another that are displaced: channel ``i * count + j`` of the result
    is of windows ``i - count // 2`` and ``j - count // 2`` strides further down and to the right.

    A result is the mean over channels and the window, ``kernel_size`` (odd) square, of products, or without ``is_multiply``
    of absolute differences. Windows are ``stride1`` apart, displacements ``stride2``, and at most ``max_displacement``
    (``count`` is ``2 * (max_displacement // stride2) + 1``). Zeros are around both images: ``padding`` elements on each side,
    or (height, width), or (top, left, bottom, right).

    >>> from tir import ops, te
    >>> a, b = (te.placeholder((1, 3, 8, 9), name=n) for n in "ab")
    >>> ops.nn.correlation_nchw(a, b, 1, 2, 1, 1, 2, True).shape
    (1, 25, 8, 9)"""
def cross_entropy(predictions: Tensor, targets: Tensor, weights: Tensor | None = ..., reduction: Literal['none', 'sum', 'mean'] = ..., ignore_index: int = ...) -> Tensor:
    """:func:`nll_loss` of the logarithm of the softmax of ``predictions`` over axis 1, which are no probabilities yet.

    >>> from tir import te, topi
    >>> topi.nn.cross_entropy(te.placeholder((4, 10), name="x"), te.placeholder((4,), "int32", name="t"))
    Tensor(nll_loss, (), float32)"""
softmax_cross_entropy_loss = cross_entropy
def deformable_conv2d_nchw(data: Tensor, offset: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., deformable_groups: int = ..., groups: int = ..., out_dtype: Any = ..., mask: Tensor | None = ..., borders: Literal['zeros', 'inside'] = ...) -> Tensor:
    """:func:`conv2d` of windows whose elements are displaced (Dai et al., "Deformable Convolutional Networks", 2017).

    ``offset`` is ``(N, 2 * G * KH * KW, OH, OW)``: for each of ``G = deformable_groups`` groups of channels and each
    element of the kernel how far down and how far right it is read, at each place of the result. Between elements the
    image is linear, and elements around it are 0; with ``borders="inside"``, so are places before its first element, as
    topi has it. ``mask``, ``(N, G * KH * KW, OH, OW)``, is what is read times (the second version,
    2019). The rest is as in :func:`conv2d`. Raises ``TensorExpressionError`` where shapes do not agree.

    >>> from tir import ops, te
    >>> ops.nn.deformable_conv2d_nchw(te.placeholder((1, 2, 4, 5)), te.placeholder((1, 18, 4, 5)), te.placeholder((2, 2, 3, 3)), 1, 1).shape
    (1, 2, 4, 5)"""
def deformable_conv2d_nhwc(data: Tensor, offset: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., deformable_groups: int = ..., groups: int = ..., out_dtype: Any = ..., mask: Tensor | None = ..., borders: Literal['zeros', 'inside'] = ...) -> Tensor:
    """:func:`deformable_conv2d_nchw` of ``(N, H, W, C)`` by ``(H, W, C / groups, O)``; ``offset`` has channels last, too.

    >>> from tir import ops, te
    >>> ops.nn.deformable_conv2d_nhwc(te.placeholder((1, 4, 3, 2)), te.placeholder((1, 3, 2, 8)), te.placeholder((2, 2, 2, 3))).shape
    (1, 3, 2, 3)"""
def dense(data: Tensor, weight: Tensor, bias: Tensor | None = ..., out_dtype: Any = ...) -> Tensor:
    """``data @ weight.T + bias``: ``data`` is ``(…, K)``, ``weight`` ``(N, K)``, ``bias`` ``(N,)``; the result ``(…, N)``.

    Products are made and added in ``out_dtype``, by default the type of both operands. Raises ``TensorExpressionError``
    where shapes do not agree, and where the types of the operands differ and ``out_dtype`` is not given.

    >>> from tir import te, topi
    >>> x, w = te.placeholder((8, 16), "int8", name="x"), te.placeholder((4, 16), "int8", name="w")
    >>> topi.nn.dense(x, w, out_dtype="int32")
    Tensor(dense, (8, 4), int32)"""
from tir.ops.layout import depth_to_space as depth_to_space
def depthwise_conv2d_nchw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """Each channel of ``(N, C, H, W)`` by ``M`` kernels of its own, ``(C, M, H, W)``.

    The result has ``C * M`` channels. Attributes are those of :func:`conv2d`. Raises ``TensorExpressionError`` for a
    kernel of another number of channels.

    >>> from tir import ops, te
    >>> ops.nn.depthwise_conv2d_nchw(te.placeholder((1, 3, 5, 6)), te.placeholder((3, 2, 3, 3)), 1, 1, 1).shape
    (1, 6, 5, 6)"""
def depthwise_conv2d_nhwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., kernel_layout: str = ..., out_dtype: Any = ...) -> Tensor:
    """Each channel of ``(N, H, W, C)`` by ``M`` kernels of its own, ``(H, W, C, M)``.

    The result has ``C * M`` channels. Attributes are those of :func:`conv2d`. Raises ``TensorExpressionError`` for a
    kernel of another number of channels.

    >>> from tir import ops, te
    >>> ops.nn.depthwise_conv2d_nhwc(te.placeholder((1, 5, 6, 3)), te.placeholder((3, 3, 3, 2)), 1, 1, 1).shape
    (1, 5, 6, 6)"""
def dequantize(data: Tensor, scale: Any, zero_point: Any = ..., axis: int = ..., out_dtype: Any = ..., block_size: int = ...) -> Tensor:
    """``(data - zero_point) * scale`` as ``out_dtype``; the parameters are those of :func:`quantize`.

    The difference is of 32-bit integers, so it is exact for narrower data. Raises ``TensorExpressionError`` for other
    shapes, for data that is no integer, and for a type that is not floating.

    >>> from tir import te, topi
    >>> topi.nn.dequantize(te.placeholder((2, 3), "uint8", name="q"), 0.1, 128)
    Tensor(dequantize, (2, 3), float32)"""
def dilate(data: Tensor, strides: Any, dilation_value: float = ..., name: str = ...) -> Tensor:
    """``data`` with ``strides[d] - 1`` elements of ``dilation_value`` between any two along dimension ``d``.

    Raises ``TensorExpressionError`` for another number of strides than dimensions, and for one below 1.

    >>> from tir import te, topi
    >>> topi.nn.dilate(te.placeholder((2, 3), name="x"), (1, 2))
    Tensor(dilate, (2, 5), float32)"""
def elu(x: Tensor, alpha: float = ...) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    >>> from tir import te, topi
    >>> topi.nn.elu(te.placeholder((3, 1, 5)))
    Tensor(elu, (3, 1, 5), float32)"""
from tir.ops.indexing import embedding as embedding
def fake_quantize(data: Tensor, scale: Any, zero_point: Any = ..., axis: int = ..., dtype: Any = ...) -> Tensor:
    """``data`` as it is after :func:`quantize` and :func:`dequantize`: what training for integers computes with.

    >>> from tir import te, topi
    >>> topi.nn.fake_quantize(te.placeholder((2, 3), name="x"), 0.1)
    Tensor(simulated_dequantize, (2, 3), float32)"""
def fifo_buffer(data: Tensor, buffer: Tensor, axis: int) -> Tensor:
    """``buffer`` with ``data`` behind it along ``axis``, without as many elements at the front: what a queue holds next.

    Raises ``TensorExpressionError`` where the two have other types, or other extents of other axes.

    >>> from tir import ops, te
    >>> ops.nn.fifo_buffer(te.placeholder((2, 1), name="x"), te.placeholder((2, 5), name="queue"), axis=1).shape
    (2, 5)"""
def flatten(data: Tensor) -> Tensor:
    """``(N, …)`` as ``(N, K)``, with the elements of each example in their order.

    Raises ``TensorExpressionError`` for a scalar.

    >>> from tir import te, topi
    >>> topi.nn.flatten(te.placeholder((2, 3, 4), name="x"))
    Tensor(reshape, (2, 12), float32)"""
def gelu(x: Tensor, approximate: Literal['none', 'tanh'] = ...) -> Tensor:
    """``x * Phi(x)``, with the distribution function ``Phi`` of the standard normal distribution.

    ``approximate="tanh"`` takes the approximation of Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
    Raises ``TensorExpressionError`` for another word.

    >>> from tir import te, topi
    >>> topi.nn.gelu(te.placeholder((3, 1, 5)))
    Tensor(gelu, (3, 1, 5), float32)"""
def gelu_tanh(x: Tensor) -> Tensor:
    """``gelu(x, approximate="tanh")``.

    >>> from tir import te, topi
    >>> topi.nn.gelu_tanh(te.placeholder((3, 1, 5)))
    Tensor(gelu, (3, 1, 5), float32)"""
def global_pool(data: Tensor, pool_type: Literal['max', 'avg'], layout: str = ...) -> Tensor:
    """The largest element (``"max"``) or the mean (``"avg"``) of each channel; its other axes have extent 1 then.

    >>> from tir import te, topi
    >>> topi.nn.global_pool(te.placeholder((1, 3, 7, 7), name="x"), "avg")
    Tensor(adaptive_avg_pool, (1, 3, 1, 1), float32)"""
def group_conv1d_ncw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv1d` of ``(N, C, W)`` by ``(O, C / groups, W)``.

    >>> from tir import ops, te
    >>> ops.nn.group_conv1d_ncw(te.placeholder((2, 4, 7)), te.placeholder((6, 2, 3)), groups=2).shape
    (2, 6, 5)"""
def group_conv1d_nwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv1d` of ``(N, W, C)`` by ``(W, C / groups, O)``.

    >>> from tir import ops, te
    >>> ops.nn.group_conv1d_nwc(te.placeholder((2, 7, 4)), te.placeholder((3, 2, 6)), groups=2).shape
    (2, 5, 6)"""
def group_conv2d_nchw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv2d` of ``(N, C, H, W)`` by ``(O, C / groups, H, W)``.

    >>> from tir import ops, te
    >>> ops.nn.group_conv2d_nchw(te.placeholder((1, 4, 5, 6)), te.placeholder((6, 2, 3, 3)), 1, 1, 1, 2).shape
    (1, 6, 5, 6)"""
def group_conv2d_nhwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv2d` of ``(N, H, W, C)`` by ``(H, W, C / groups, O)``.

    >>> from tir import ops, te
    >>> ops.nn.group_conv2d_nhwc(te.placeholder((1, 5, 6, 4)), te.placeholder((3, 3, 2, 6)), 1, 1, 1, 2).shape
    (1, 5, 6, 6)"""
def group_norm(data: Tensor, gamma: Tensor, beta: Tensor, num_groups: int, channel_axis: int = ..., axes: Any = ..., epsilon: float = ...) -> Tensor:
    """``gamma * (data - mean) / sqrt(var + epsilon) + beta``, with the moments of each of ``num_groups`` groups of channels.

    The moments are also over ``axes``, by default all but the first. ``gamma`` and ``beta`` have one element a channel.
    Raises ``TensorExpressionError`` for channels that are not so many groups.

    >>> from tir import te, topi
    >>> x, g, b = te.placeholder((2, 8, 4, 4), name="x"), te.placeholder((8,), name="g"), te.placeholder((8,), name="b")
    >>> topi.nn.group_norm(x, g, b, num_groups=2)
    Tensor(group_norm, (2, 8, 4, 4), float32)"""
def gru(Xs: Tensor, Wi: Tensor, Wh: Tensor, Bi: Tensor | None = ..., Bh: Tensor | None = ..., h_init: Tensor | None = ..., f_act: Any = ..., g_act: Any = ..., reverse: bool = ..., linear_before_reset: bool = ..., weight_layout: str = ...) -> Tensor:
    """The gated recurrent unit (Cho et al., 2014): the states ``(T, B, H)``.

    ``z, r = f_act(Wi @ x + Bi + Wh @ h + Bh)`` for two gates, ``n = g_act(Wi @ x + Bi + Wh @ (r * h) + Bh)`` for the third,
    ``h = (1 - z) * n + z * h``; with ``linear_before_reset``, ``r * (Wh @ h + Bh)`` in ``n``, as in PyTorch. ``Wi`` is
    ``(3 H, D)``, ``Wh`` ``(3 H, H)``, the biases ``(3 H,)``, with gates in the order of ``weight_layout``; the rest is as
    in :func:`rnn`.

    >>> from tir import te, topi
    >>> x, w, r = te.placeholder((5, 2, 3), name="x"), te.placeholder((12, 3), name="w"), te.placeholder((12, 4), name="r")
    >>> topi.nn.gru(x, w, r)
    Tensor(gru_hidden, (5, 2, 4), float32)"""
def hard_sigmoid(x: Tensor, alpha: float = ..., beta: float = ...) -> Tensor:
    """``alpha * x + beta`` between 0 and 1, with the constants of ONNX (others take ``alpha = 1/6``).

    >>> from tir import te, topi
    >>> topi.nn.hard_sigmoid(te.placeholder((3, 1, 5)))
    Tensor(hard_sigmoid, (3, 1, 5), float32)"""
def hard_swish(x: Tensor) -> Tensor:
    """``x * hard_sigmoid(x, 1/6, 1/2)``.

    >>> from tir import te, topi
    >>> topi.nn.hard_swish(te.placeholder((3, 1, 5)))
    Tensor(hard_swish, (3, 1, 5), float32)"""
hardswish = hard_swish
def hard_tanh(x: Tensor, low: float = ..., high: float = ...) -> Tensor:
    """``x`` between ``low`` and ``high``.

    >>> from tir import te, topi
    >>> topi.nn.hard_tanh(te.placeholder((3, 1, 5)))
    Tensor(hard_tanh, (3, 1, 5), float32)"""
hardtanh = hard_tanh
def instance_norm(data: Tensor, gamma: Tensor, beta: Tensor, channel_axis: int = ..., axis: Any = ..., epsilon: float = ...) -> Tensor:
    """``gamma * (data - mean) / sqrt(var + epsilon) + beta``, with the moments of each channel of each example.

    ``axis`` are the axes of the moments, by default all but the first and ``channel_axis``; ``gamma`` and ``beta`` have one
    element a channel. Raises ``TensorExpressionError`` for another number of elements.

    >>> from tir import te, topi
    >>> x, g, b = te.placeholder((2, 3, 4, 4), name="x"), te.placeholder((3,), name="g"), te.placeholder((3,), name="b")
    >>> topi.nn.instance_norm(x, g, b)
    Tensor(instance_norm, (2, 3, 4, 4), float32)"""
def l2_normalize(data: Tensor, eps: float, axis: Any = ...) -> Tensor:
    """``data / sqrt(max(sum(data ** 2), eps))``, with the sum over ``axis``: one, several, or None for all.

    >>> from tir import te, topi
    >>> topi.nn.l2_normalize(te.placeholder((2, 8), name="x"), 1e-6, axis=1)
    Tensor(l2_normalize, (2, 8), float32)"""
def layer_norm(data: Tensor, gamma: Any, beta: Any, axis: Any, epsilon: float = ...) -> Tensor:
    """``gamma * (data - mean) / sqrt(var + epsilon) + beta``, with the moments over ``axis``, one or several.

    ``gamma`` and ``beta`` have the shape of these axes; None stands for 1 and 0. Raises ``TensorExpressionError`` for
    another shape.

    >>> from tir import te, topi
    >>> x, g, b = te.placeholder((2, 8), name="x"), te.placeholder((8,), name="g"), te.placeholder((8,), name="b")
    >>> topi.nn.layer_norm(x, g, b, axis=-1)
    Tensor(layer_norm, (2, 8), float32)"""
def leaky_relu(t: Tensor, alpha: float = ...) -> Tensor:
    """``t`` where it is positive, else ``alpha * t``.

    >>> from tir import te, topi
    >>> topi.nn.leaky_relu(te.placeholder((3, 1, 5)))
    Tensor(leaky_relu, (3, 1, 5), float32)"""
def log_sigmoid(x: Tensor) -> Tensor:
    """``log(sigmoid(x))``, computed without overflow.

    >>> from tir import te, topi
    >>> topi.nn.log_sigmoid(te.placeholder((3, 1, 5)))
    Tensor(log_sigmoid, (3, 1, 5), float32)"""
logsigmoid = log_sigmoid
def log_softmax(x: Tensor, axis: int = ...) -> Tensor:
    """``log(softmax(x, axis))``, computed without overflow. Raises as :func:`softmax`.

    >>> from tir import te, topi
    >>> topi.nn.log_softmax(te.placeholder((3, 5)))
    Tensor(log_softmax, (3, 5), float32)"""
def lp_pool1d(data: Tensor, kernel: Any, stride: Any = ..., dilation: Any = ..., padding: Any = ..., p: float = ..., ceil_mode: bool = ..., layout: str = ...) -> Tensor:
    """As :func:`lp_pool2d`, of one dimension.

    >>> from tir import ops, te
    >>> ops.nn.lp_pool1d(te.placeholder((2, 3, 7)), 3, 2, 1, 1).shape
    (2, 3, 4)"""
def lp_pool2d(data: Tensor, kernel: Any, stride: Any = ..., dilation: Any = ..., padding: Any = ..., p: float = ..., ceil_mode: bool = ..., layout: str = ...) -> Tensor:
    """The p-norm of each window, ``sum(|x| ** p) ** (1 / p)``; the other attributes are those of :func:`pool2d`.

    Raises ``TensorExpressionError`` as :func:`pool2d`, for a ``p`` that is not positive, and for integers.

    >>> from tir import ops, te
    >>> ops.nn.lp_pool2d(te.placeholder((1, 2, 5, 4)), (2, 3), 2, 1, 1).shape
    (1, 2, 3, 2)"""
def lp_pool3d(data: Tensor, kernel: Any, stride: Any = ..., dilation: Any = ..., padding: Any = ..., p: float = ..., ceil_mode: bool = ..., layout: str = ...) -> Tensor:
    """As :func:`lp_pool2d`, of three dimensions.

    >>> from tir import ops, te
    >>> ops.nn.lp_pool3d(te.placeholder((1, 2, 3, 4, 3)), 2, 2, 1, 1).shape
    (1, 2, 2, 3, 2)"""
def lrn(data: Tensor, size: int, axis: int = ..., alpha: float = ..., beta: float = ..., bias: float = ...) -> Tensor:
    """``data / (bias + alpha / size * sum(data ** 2)) ** beta``, with the sum over ``size`` neighbours along ``axis``.

    The neighbours of channel ``c`` are those from ``c - (size - 1) // 2`` to ``c + size // 2`` that there are. Raises
    ``TensorExpressionError`` for a size below 1.

    >>> from tir import te, topi
    >>> topi.nn.lrn(te.placeholder((1, 8, 4, 4), name="x"), 5)
    Tensor(lrn, (1, 8, 4, 4), float32)"""
def lstm(Xs: Tensor, Wi: Tensor, Wh: Tensor, Bi: Tensor | None = ..., Bh: Tensor | None = ..., h_init: Tensor | None = ..., c_init: Tensor | None = ..., proj: Tensor | None = ..., p_i: Tensor | None = ..., p_f: Tensor | None = ..., p_o: Tensor | None = ..., f_act: Any = ..., g_act: Any = ..., h_act: Any = ..., reverse: bool = ..., weight_layout: str = ...) -> tuple[Tensor, Tensor]:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997): hidden states ``(T, B, P)`` and cells ``(T, B, H)``.

    With ``i, f, g, o = Wi @ x + Bi + Wh @ h + Bh``: ``c = f_act(f + p_f * c) * c + f_act(i + p_i * c) * g_act(g)`` and
    ``h = f_act(o + p_o * c) * h_act(c)``, projected by ``proj`` ``(P, H)`` where it is given. ``Wi`` is ``(4 H, D)``, ``Wh``
    ``(4 H, P)``, the biases ``(4 H,)``, with gates in the order of ``weight_layout``; the peepholes ``p_i``, ``p_f`` and
    ``p_o`` are ``(H,)``, ``h_init`` ``(B, P)``, ``c_init`` ``(B, H)``. The rest is as in :func:`rnn`.

    >>> from tir import te, topi
    >>> x, w, r = te.placeholder((5, 2, 3), name="x"), te.placeholder((16, 3), name="w"), te.placeholder((16, 4), name="r")
    >>> topi.nn.lstm(x, w, r)
    (Tensor(lstm_hidden, (5, 2, 4), float32), Tensor(lstm_cell, (5, 2, 4), float32))"""
def matmul(tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = ..., out_dtype: Any = ..., transpose_a: bool = ..., transpose_b: bool = ...) -> Tensor:
    """The product as in NumPy: ``(…, M, K)`` by ``(…, K, N)``, batches broadcast; one dimension is a row or a column.

    ``transpose_a`` and ``transpose_b`` say that the last two dimensions of an operand are exchanged; ``bias`` is ``(N,)``.
    Products are made and added in ``out_dtype``, by default the type of both operands. Raises ``TensorExpressionError``
    where shapes do not agree, and where the types differ and ``out_dtype`` is not given.

    >>> from tir import te, topi
    >>> x, y = te.placeholder((2, 3, 8), name="x"), te.placeholder((8, 4), name="y")
    >>> topi.nn.matmul(x, y)
    Tensor(matmul, (2, 3, 4), float32)"""
from tir.ops.padding import mirror_pad as mirror_pad
def mish(x: Tensor) -> Tensor:
    """``x * tanh(softplus(x))``.

    >>> from tir import te, topi
    >>> topi.nn.mish(te.placeholder((3, 1, 5)))
    Tensor(mish, (3, 1, 5), float32)"""
def multi_head_attention(query: Tensor, key: Tensor, value: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int, mask: Any = ..., is_causal: bool = ..., b_q: Any = ..., b_k: Any = ..., b_v: Any = ..., b_o: Any = ..., num_key_heads: int | None = ...) -> Tensor:
    """Attention of ``num_heads`` parts of projected queries, keys and values, projected back.

    ``query`` is ``(B, L, D)``, ``key`` and ``value`` ``(B, S, …)``; weights and biases are those of :func:`dense`.
    ``num_key_heads``, by default as many, is for grouped queries; the rest is as in :func:`scaled_dot_product_attention`.
    Raises ``TensorExpressionError`` for projections that are not so many heads.

    >>> from tir import te, topi
    >>> x, w = te.placeholder((1, 5, 16), name="x"), te.placeholder((16, 16), name="w")
    >>> topi.nn.multi_head_attention(x, x, x, w, w, w, w, num_heads=4)
    Tensor(dense, (1, 5, 16), float32)"""
def nll_loss(predictions: Tensor, targets: Tensor, weights: Tensor | None = ..., reduction: Literal['none', 'sum', 'mean'] = ..., ignore_index: int = ...) -> Tensor:
    """``-weights[t] * predictions[n, t, …]`` for each target ``t`` at ``[n, …]``: the negative log-likelihood.

    ``predictions`` is ``(N, C, …)``, logarithms of probabilities; ``targets`` ``(N, …)``, integers from 0 to C - 1;
    ``weights`` ``(C,)``, or None for 1. ``reduction`` is ``"none"``, ``"sum"``, or ``"mean"``: the sum of the losses by that
    of their weights. A target of ``ignore_index`` counts in neither. Raises ``TensorExpressionError`` where shapes do not
    agree, and for another ``reduction``. Any other target that is out of range counts as the nearest.

    >>> from tir import te, topi
    >>> topi.nn.nll_loss(te.placeholder((4, 10), name="x"), te.placeholder((4,), "int32", name="t"))
    Tensor(nll_loss, (), float32)"""
from tir.ops.padding import pad as pad
def pool1d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: Literal['max', 'avg'], ceil_mode: bool = ..., layout: str = ..., count_include_pad: bool = ...) -> Tensor:
    """As :func:`pool2d`, of one dimension.

    >>> from tir import ops, te
    >>> ops.nn.pool1d(te.placeholder((1, 2, 7)), 3, 2, 1, 1, 'max').shape
    (1, 2, 4)"""
def pool2d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: Literal['max', 'avg'], ceil_mode: bool = ..., layout: str = ..., count_include_pad: bool = ...) -> Tensor:
    """The largest element (``pool_type="max"``) or the mean (``"avg"``) of each window of an image.

    ``data`` is ``(N, C, H, W)`` or in another ``layout``. ``kernel``, ``stride`` and ``dilation`` are one integer, or one
    each; ``padding`` as of :func:`conv2d`. ``ceil_mode`` also counts a last window that is partly beyond the padding, unless
    it begins in it. Padding is never the largest, and counts among the elements of a mean unless
    ``count_include_pad`` is false; what is beyond the padding never does.

    Raises ``TensorExpressionError`` for a window larger than the padded image, and for other attributes.

    >>> from tir import ops, te
    >>> ops.nn.pool2d(te.placeholder((1, 2, 7, 6)), 3, 2, 1, 1, 'max').shape
    (1, 2, 4, 3)"""
def pool3d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: Literal['max', 'avg'], ceil_mode: bool = ..., layout: str = ..., count_include_pad: bool = ...) -> Tensor:
    """As :func:`pool2d`, of three dimensions.

    >>> from tir import ops, te
    >>> ops.nn.pool3d(te.placeholder((1, 2, 7, 6, 5)), 2, 2, 1, 0, 'avg').shape
    (1, 2, 3, 3, 2)"""
def pool_grad(grads: Tensor, data: Tensor, kernel: Any, stride: Any, padding: Any, pool_type: Literal['max', 'avg'], ceil_mode: bool = ..., count_include_pad: bool = ..., layout: str = ...) -> Tensor:
    """The gradient of a function by the image ``data``, given ``grads``, that by what :func:`pool2d` makes of it.

    That of a maximum goes to the first greatest element of its window, that of a mean to all, in equal parts.

    >>> from tir import ops, te
    >>> grads, data = te.placeholder((1, 2, 3, 4), name="grads"), te.placeholder((1, 2, 6, 8), name="data")
    >>> ops.nn.pool_grad(grads, data, (2, 2), (2, 2), (0, 0, 0, 0), "max").shape
    (1, 2, 6, 8)"""
def prelu(x: Tensor, slope: Tensor, axis: int = ...) -> Tensor:
    """``x`` where it is positive, else ``slope * x``; ``slope`` has one element, or one for each index of ``axis``.

    Raises ``TensorExpressionError`` for a ``slope`` of another length.

    >>> from tir import te, topi
    >>> topi.nn.prelu(te.placeholder((2, 3, 4)), te.placeholder((3,)))
    Tensor(prelu, (2, 3, 4), float32)"""
def quantize(data: Tensor, scale: Any, zero_point: Any = ..., axis: int = ..., out_dtype: Any = ..., block_size: int = ...) -> Tensor:
    """``round(data / scale) + zero_point``, saturated to ``out_dtype``; ties are rounded to even.

    ``scale`` and ``zero_point`` are numbers, tensors of one element, of one for each index of ``axis``, or, with
    ``block_size``, of one for each block of so many elements along ``axis``. Raises ``TensorExpressionError`` for other
    shapes, for data that is not floating, and for a type that is no integer's.

    >>> from tir import te, topi
    >>> topi.nn.quantize(te.placeholder((2, 3), name="x"), 0.1, 128, out_dtype="uint8")
    Tensor(quantize, (2, 3), uint8)"""
from tir.ops.padding import reflect_pad as reflect_pad
def relu(x: Tensor) -> Tensor:
    """``max(x, 0)``, of any number type.

    >>> from tir import te, topi
    >>> topi.nn.relu(te.placeholder((2, 3), name="x"))
    Tensor(relu, (2, 3), float32)"""
def relu6(x: Tensor) -> Tensor:
    """``min(max(x, 0), 6)``, of any number type.

    >>> from tir import te, topi
    >>> topi.nn.relu6(te.placeholder((3, 1, 5)))
    Tensor(relu6, (3, 1, 5), float32)"""
from tir.ops.padding import replicate_pad as replicate_pad
def requantize(data: Tensor, input_scale: Any, input_zero_point: Any, output_scale: Any, output_zero_point: Any, axis: int = ..., out_dtype: Any = ...) -> Tensor:
    """Integers of one scale and zero point as those of another: ``quantize(dequantize(data))``, in float32.

    >>> from tir import te, topi
    >>> topi.nn.requantize(te.placeholder((2, 3), "int32", name="q"), 0.01, 0, 0.1, 0)
    Tensor(quantize, (2, 3), int8)"""
def rms_norm(data: Tensor, weight: Tensor, axis: Any = ..., epsilon: float = ...) -> Tensor:
    """``weight * data / sqrt(mean(data ** 2) + epsilon)``, with the mean over ``axis``, one or several.

    ``weight`` has the shape of these axes. Raises ``TensorExpressionError`` for another shape.

    >>> from tir import te, topi
    >>> topi.nn.rms_norm(te.placeholder((2, 8), name="x"), te.placeholder((8,), name="w"))
    Tensor(rms_norm, (2, 8), float32)"""
def rnn(Xs: Tensor, Wi: Tensor, Wh: Tensor, Bi: Tensor | None = ..., Bh: Tensor | None = ..., h_init: Tensor | None = ..., act: Any = ..., reverse: bool = ...) -> Tensor:
    """``h[t] = act(Wi @ Xs[t] + Bi + Wh @ h[t - 1] + Bh)``: the states ``(T, B, H)``.

    ``Xs`` is ``(T, B, D)``, ``Wi`` ``(H, D)``, ``Wh`` ``(H, H)``, the biases ``(H,)``, ``h_init`` ``(B, H)``, 0 by default.
    ``act`` is a function of an expression, or ``"tanh"``, ``"sigmoid"`` or ``"relu"``. ``reverse`` begins with the last
    input, and the first state is that after it, as topi has it: ``ops.flip`` gives the order of the inputs. Raises ``TensorExpressionError`` where shapes do not agree.

    >>> from tir import te, topi
    >>> x, w, r = te.placeholder((5, 2, 3), name="x"), te.placeholder((4, 3), name="w"), te.placeholder((4, 4), name="r")
    >>> topi.nn.rnn(x, w, r)
    Tensor(rnn_hidden, (5, 2, 4), float32)"""
def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, position_ids: Any = ..., interleaved: bool = ..., rotary_dim: int = ...) -> Tensor:
    """``x`` with pairs of features turned by an angle that depends on the position (Su et al., "RoFormer", 2021).

    ``x`` is ``(B, H, S, D)``; ``cos`` and ``sin`` are ``(P, R / 2)`` for position ``position_ids[b, s]`` (``s`` itself, where
    there are none), or ``(B, S, R / 2)``. Features ``d`` and ``d + R / 2`` are a pair, or with ``interleaved`` ``2 d`` and
    ``2 d + 1``. ``R`` is ``rotary_dim``, by default all of ``D``; the others stay. Raises ``TensorExpressionError`` for an
    odd ``R``, and where shapes do not agree.

    >>> from tir import te, topi
    >>> x, c = te.placeholder((1, 2, 5, 8), name="x"), te.placeholder((16, 4), name="c")
    >>> topi.nn.rotary_embedding(x, c, c)
    Tensor(rotary_embedding, (1, 2, 5, 8), float32)"""
def scale_shift_nchw(data: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """``data * scale + shift`` of each channel of ``(N, C, H, W)``; the parameters are ``(C,)``.

    >>> from tir import te, topi
    >>> topi.nn.scale_shift_nchw(te.placeholder((2, 3, 4, 5)), te.placeholder((3,)), te.placeholder((3,)))
    Tensor(scale_shift_nchw, (2, 3, 4, 5), float32)"""
def scale_shift_nhwc(data: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """``data * scale + shift`` of each channel of ``(N, H, W, C)``; the parameters are ``(C,)``.

    >>> from tir import te, topi
    >>> topi.nn.scale_shift_nhwc(te.placeholder((2, 4, 5, 3)), te.placeholder((3,)), te.placeholder((3,)))
    Tensor(scale_shift_nhwc, (2, 4, 5, 3), float32)"""
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, mask: Any = ..., is_causal: bool = ..., scale: float | None = ..., softcap: float = ..., past: int = ...) -> Tensor:
    """``softmax(scale * query @ key.T + mask) @ value`` of each head.

    ``query`` is ``(…, H, L, E)``, ``key`` ``(…, G, S, E)``, ``value`` ``(…, G, S, V)``; the result ``(…, H, L, V)``. Where
    there are fewer heads of keys than of queries, each serves ``H / G`` of them in turn (grouped queries). ``scale`` is
    ``1 / sqrt(E)`` by default. ``mask`` broadcasts to ``(…, H, L, S)``: true for what is attended to, or a float that is
    added. ``is_causal``: row ``l`` attends to ``s <= l + past``, with ``past`` the number of keys before the first query.
    ``softcap`` is ``c`` in ``c * tanh(product / c)``, before the mask. A row that attends to nothing is 0.

    Raises ``TensorExpressionError`` where shapes do not agree, and for heads that are no multiple.

    >>> from tir import te, topi
    >>> q, k = te.placeholder((1, 8, 5, 16), name="q"), te.placeholder((1, 2, 7, 16), name="k")
    >>> topi.nn.scaled_dot_product_attention(q, k, k, is_causal=True)
    Tensor(attention, (1, 8, 5, 16), float32)"""
def selu(x: Tensor, alpha: float = ..., gamma: float = ...) -> Tensor:
    """``gamma * elu(x, alpha)``; the constants of Klambauer et al., "Self-Normalizing Neural Networks" (2017).

    >>> from tir import te, topi
    >>> topi.nn.selu(te.placeholder((3, 1, 5)))
    Tensor(selu, (3, 1, 5), float32)"""
def shrink(x: Tensor, lambd: float = ..., bias: float = ...) -> Tensor:
    """``x`` nearer to 0 by ``bias`` where it is further than ``lambd`` from 0, else 0.

    ``bias=0`` is the hard shrinkage, ``bias=lambd`` the soft one.

    >>> from tir import te, topi
    >>> topi.nn.shrink(te.placeholder((3, 1, 5)))
    Tensor(shrink, (3, 1, 5), float32)"""
def silu(x: Tensor) -> Tensor:
    """``x * sigmoid(x)``, also known as swish.

    >>> from tir import te, topi
    >>> topi.nn.silu(te.placeholder((3, 1, 5)))
    Tensor(silu, (3, 1, 5), float32)"""
swish = silu
def simulated_dequantize(data: Tensor, in_dtype: Any, input_scale: Any = ..., input_zero_point: Any = ..., axis: int = ...) -> Tensor:
    """``(data - zero_point) * scale`` of integers in a floating type; ``data`` for ``in_dtype="disable"``.

    >>> from tir import te, topi
    >>> topi.nn.simulated_dequantize(te.placeholder((2, 3), name="x"), "int8", 0.1, 0)
    Tensor(simulated_dequantize, (2, 3), float32)"""
def simulated_quantize(data: Tensor, out_dtype: Any, output_scale: Any = ..., output_zero_point: Any = ..., axis: int = ...) -> Tensor:
    """The integers that :func:`quantize` gives, in the type of ``data``; ``data`` for ``out_dtype="disable"``.

    >>> from tir import te, topi
    >>> topi.nn.simulated_quantize(te.placeholder((2, 3), name="x"), "int8", 0.1, 0)
    Tensor(simulated_quantize, (2, 3), float32)"""
def softmax(x: Tensor, axis: int = ...) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``axis``, computed without overflow.

    A row with NaN or +inf, or of -inf alone, is NaN. Raises ``TensorExpressionError`` for an axis that ``x`` does not
    have, and for a type that is not floating.

    >>> from tir import te, topi
    >>> topi.nn.softmax(te.placeholder((2, 3), name="x"))
    Tensor(softmax, (2, 3), float32)"""
fast_softmax = softmax
def softplus(x: Tensor, beta: float = ..., threshold: float | None = ...) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, computed without overflow; ``x`` where ``beta * x`` is above a ``threshold``.

    >>> from tir import te, topi
    >>> topi.nn.softplus(te.placeholder((3, 1, 5)))
    Tensor(softplus, (3, 1, 5), float32)"""
def softsign(x: Tensor) -> Tensor:
    """``x / (1 + |x|)``.

    >>> from tir import te, topi
    >>> topi.nn.softsign(te.placeholder((3, 1, 5)))
    Tensor(softsign, (3, 1, 5), float32)"""
from tir.ops.layout import space_to_batch_nd as space_to_batch_nd
from tir.ops.layout import space_to_depth as space_to_depth
def thresholded_relu(x: Tensor, threshold: float = ..., value: float = ...) -> Tensor:
    """``x`` where it is above ``threshold``, else ``value``.

    >>> from tir import te, topi
    >>> topi.nn.thresholded_relu(te.placeholder((3, 1, 5)))
    Tensor(thresholded_relu, (3, 1, 5), float32)"""
def upsampling(data: Tensor, scale_h: float, scale_w: float, layout: str = ..., method: Literal['nearest_neighbor', 'bilinear', 'bicubic'] = ..., align_corners: bool = ..., output_shape: Any = ...) -> Tensor:
    """Images ``scale_h`` times as high and ``scale_w`` times as wide: :func:`image.resize2d` to these sizes, rounded.

    ``method`` is ``"nearest_neighbor"``, ``"bilinear"`` or ``"bicubic"`` (``bicubic_alpha`` is -0.75). The first elements stand on the first, or, with
    ``align_corners``, the first and the last on the first and the last. ``output_shape`` is ignored: it is known.

    >>> from tir import ops, te
    >>> ops.nn.upsampling(te.placeholder((1, 2, 3, 4), name="x"), 2, 2, method="bilinear").shape
    (1, 2, 6, 8)"""
def upsampling3d(data: Tensor, scale_d: float, scale_h: float, scale_w: float, layout: str = ..., method: Literal['nearest_neighbor', 'trilinear'] = ..., coordinate_transformation_mode: str = ..., output_shape: Any = ...) -> Tensor:
    """Volumes larger by a factor along each axis: :func:`image.resize3d` to these sizes, rounded.

    ``method`` is ``"nearest_neighbor"`` or ``"trilinear"``; for ``coordinate_transformation_mode`` see
    :func:`image.resize2d`. ``output_shape`` is ignored: it is known.

    >>> from tir import ops, te
    >>> ops.nn.upsampling3d(te.placeholder((1, 2, 2, 3, 4), name="x"), 2, 2, 2).shape
    (1, 2, 4, 6, 8)"""

def __getattr__(name: str) -> Any: ...  # operators of other packages
