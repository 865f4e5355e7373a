"""Made by ``python -m tests.tools.generated``; do not edit."""

# ruff: noqa
# fmt: off
from collections.abc import Sequence
from typing import Any, Literal

from tir import te
from tir.ops.operands import Operand
from tir.ops.reduction import Axes
from tir.te import Tensor


from tir.ops.nn.matrix_products import batch_matmul as batch_matmul, bias_add as bias_add, dense as dense, matmul as matmul
from tir.ops.nn.normalization import batch_norm as batch_norm, group_norm as group_norm, instance_norm as instance_norm, l2_normalize as l2_normalize, layer_norm as layer_norm, lrn as lrn, rms_norm as rms_norm, scale_shift_nchw as scale_shift_nchw, scale_shift_nhwc as scale_shift_nhwc
from tir.ops.relayout import batch_to_space_nd as batch_to_space_nd, depth_to_space as depth_to_space, space_to_batch_nd as space_to_batch_nd, space_to_depth as space_to_depth
from tir.ops.nn.activation import celu as celu, elu as elu, gelu as gelu, gelu_tanh as gelu_tanh, hard_sigmoid as hard_sigmoid, hard_swish as hard_swish, hard_swish as hardswish, hard_tanh as hard_tanh, hard_tanh as hardtanh, leaky_relu as leaky_relu, log_sigmoid as log_sigmoid, log_sigmoid as logsigmoid, mish as mish, prelu as prelu, relu as relu, relu6 as relu6, selu as selu, shrink as shrink, silu as silu, silu as swish, softplus as softplus, softsign as softsign, thresholded_relu as thresholded_relu
from tir.ops.padding import circular_pad as circular_pad, mirror_pad as mirror_pad, pad as pad, reflect_pad as reflect_pad, replicate_pad as replicate_pad
from tir.ops.nn.convolution_by_layout import conv2d_NCHWc as conv2d_NCHWc
from tir.ops.nn.winograd import conv2d_winograd_nhwc as conv2d_winograd_nhwc, conv2d_winograd_nhwc_without_weight_transform as conv2d_winograd_nhwc_without_weight_transform, conv2d_winograd_weight_transform as conv2d_winograd_weight_transform
from tir.ops.nn.correlation import correlation_nchw as correlation_nchw
from tir.ops.nn.losses import cross_entropy as cross_entropy, cross_entropy as softmax_cross_entropy_loss, nll_loss as nll_loss
from tir.ops.nn.quantization import dequantize as dequantize, fake_quantize as fake_quantize, quantize as quantize, requantize as requantize, simulated_dequantize as simulated_dequantize, simulated_quantize as simulated_quantize
from tir.ops.nn.reshaping import dilate as dilate, fifo_buffer as fifo_buffer, flatten as flatten
from tir.ops.indexing import embedding as embedding
from tir.ops.nn.adaptive_pooling import global_pool as global_pool
from tir.ops.nn.recurrent import gru as gru, lstm as lstm, rnn as rnn
from tir.ops.nn.softmaxes import log_softmax as log_softmax, softmax as softmax, softmax as fast_softmax
from tir.ops.nn.attention_heads import multi_head_attention as multi_head_attention, rotary_embedding as rotary_embedding, scaled_dot_product_attention as scaled_dot_product_attention
from tir.ops.nn.pooling_gradient import pool_grad as pool_grad
from tir.ops.nn.enlarging import upsampling as upsampling, upsampling3d as upsampling3d

def adaptive_pool(data: Tensor, output_size: Any, pool_type: Literal['max', 'avg'], layout: str = ...) -> Tensor:
    """The largest element (``"max"``) or the mean (``"avg"``) of each of ``output_size`` parts of an image. ``output_size`` is one integer, or one each of rows and columns (None: as many as there are). Part ``i`` of ``n`` has the elements from ``floor(i * extent / n)`` to ``ceil((i + 1) * extent / n)``; parts may overlap. Raises ``TensorExpressionError`` for another ``pool_type``, a size below 1, and a layout that is none."""
adaptive_pool2d = adaptive_pool
def adaptive_pool1d(data: Tensor, output_size: Any, pool_type: Literal['max', 'avg'], layout: str = ...) -> Tensor:
    """As :func:`adaptive_pool`, of one dimension."""
def adaptive_pool3d(data: Tensor, output_size: Any, pool_type: Literal['max', 'avg'], layout: str = ...) -> Tensor:
    """As :func:`adaptive_pool`, of three dimensions."""
def conv1d(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ..., out_dtype: Any = ..., groups: int = ...) -> Tensor:
    """As :func:`conv2d`, of one dimension: ``data`` is ``(N, C, W)``, the kernel ``(O, C / groups, W)``. ``padding`` of two numbers is before and after. By default nothing is added."""
def conv1d_ncw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv1d` of ``(N, C, W)`` by ``(O, C, W)``. Shapes: ``(n, c, _), (o, c, _) -> (n, o, _)``."""
def conv1d_nwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv1d` of ``(N, W, C)`` by ``(W, C, O)``. Shapes: ``(n, _, c), (_, c, o) -> (n, _, o)``."""
def conv1d_transpose(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., out_dtype: Any = ..., output_padding: Any = ..., groups: int = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ...) -> Tensor:
    """As :func:`conv2d_transpose`, of one dimension: ``data`` is ``(N, C, W)``, the kernel ``(C, O / groups, W)``."""
conv1d_transpose_ncw = conv1d_transpose
group_conv1d_transpose_ncw = conv1d_transpose
def conv2d(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ..., out_dtype: Any = ..., groups: int = ...) -> Tensor:
    """The sums of products of a kernel with windows of an image: the convolution of neural networks. ``data`` is ``(N, C, H, W)`` or in another ``data_layout``: ``NHWC``, ``HWCN``, channels in groups as ``NCHW4c``; the kernel ``(O, C / groups, H, W)``, ``OIHW``, and for ``NHWC`` ``HWIO``, for ``NCHW4c`` ``OIHWio``, where no ``kernel_layout`` is given. The result, in the layout of the data, has ``O`` channels and ``(H + pads - (size - 1) * dilation - 1) // stride + 1`` rows. ``strides`` and ``dilation`` are one integer, or one each; ``padding`` also (top, left, bottom, right), ``"VALID"``, ``"SAME"`` (a kernel less 1, the odd one before), ``"SAME_UPPER"`` and ``"SAME_LOWER"`` (as ONNX). Each group of ``C / groups`` channels makes ``O / groups``. Raises ``TensorExpressionError`` where channels do not agree, for a kernel larger than the padded image, and for attributes that are none of these."""
def conv2d_hwcn(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv2d` of ``(H, W, C, N)`` by ``(H, W, C, O)``. Shapes: ``(_, _, c, n), (_, _, c, o) -> (_, _, o, n)``."""
def conv2d_nchw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv2d` of ``(N, C, H, W)`` by ``(O, C, H, W)``. Shapes: ``(n, c, _, _), (o, c, _, _) -> (n, o, _, _)``."""
def conv2d_nhwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv2d` of ``(N, H, W, C)`` by ``(H, W, C, O)``. Shapes: ``(n, _, _, c), (_, _, c, o) -> (n, _, _, o)``."""
def conv2d_transpose(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., out_dtype: Any = ..., output_padding: Any = ..., groups: int = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ...) -> Tensor:
    """The transposed convolution: the gradient of :func:`conv2d` by its data. ``data`` is ``(N, C, H, W)``, the kernel ``(C, O / groups, H, W)``; the result has ``O`` channels and ``(H - 1) * stride - pads + (size - 1) * dilation + 1 + output_padding`` rows. ``padding`` (as of :func:`conv2d`) is taken away at the ends, ``output_padding`` added at the last one; ``"SAME_UPPER"`` leaves ``H * stride`` rows. Raises ``TensorExpressionError`` where channels do not agree, and for an ``output_padding`` that is as large as the stride and the dilation."""
conv2d_transpose_nchw = conv2d_transpose
group_conv2d_transpose_nchw = conv2d_transpose
def conv3d(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ..., out_dtype: Any = ..., groups: int = ...) -> Tensor:
    """As :func:`conv2d`, of three dimensions: ``data`` is ``(N, C, D, H, W)``, the kernel ``(O, C / groups, D, H, W)``."""
def conv3d_ncdhw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv3d` of ``(N, C, D, H, W)`` by ``(O, C / groups, D, H, W)``. Shapes: ``(n, _, _, _, _), (o, _, _, _, _) -> (n, o, _, _, _)``."""
def conv3d_ndhwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv3d` of ``(N, D, H, W, C)`` by ``(D, H, W, C / groups, O)``. Shapes: ``(n, _, _, _, _), (_, _, _, _, o) -> (n, _, _, _, o)``."""
def conv3d_transpose(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., out_dtype: Any = ..., output_padding: Any = ..., groups: int = ..., dilation: Any = ..., data_layout: str = ..., kernel_layout: str = ...) -> Tensor:
    """As :func:`conv2d_transpose`, of three dimensions: ``data`` is ``(N, C, D, H, W)``."""
conv3d_transpose_ncdhw = conv3d_transpose
group_conv3d_transpose_ncdhw = conv3d_transpose
def deformable_conv2d_nchw(data: Tensor, offset: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., deformable_groups: int = ..., groups: int = ..., out_dtype: Any = ..., mask: Tensor | None = ..., borders: Literal['zeros', 'inside'] = ...) -> Tensor:
    """:func:`conv2d` of windows whose elements are displaced (Dai et al., "Deformable Convolutional Networks", 2017). ``offset`` is ``(N, 2 * G * KH * KW, OH, OW)``: for each of ``G = deformable_groups`` groups of channels and each element of the kernel how far down and how far right it is read, at each place of the result. Between elements the image is linear, and elements around it are 0; with ``borders="inside"``, so are places before its first element, as topi has it. ``mask``, ``(N, G * KH * KW, OH, OW)``, is what is read times (the second version, 2019). The rest is as in :func:`conv2d`. Raises ``TensorExpressionError`` where shapes do not agree. Shapes: ``(n, c, h, w), (n, _, y, x), (o, _, _, _), (n, _, y, x) -> (n, o, y, x)``."""
def deformable_conv2d_nhwc(data: Tensor, offset: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., deformable_groups: int = ..., groups: int = ..., out_dtype: Any = ..., mask: Tensor | None = ..., borders: Literal['zeros', 'inside'] = ...) -> Tensor:
    """:func:`deformable_conv2d_nchw` of ``(N, H, W, C)`` by ``(H, W, C / groups, O)``; ``offset`` has channels last, too. Shapes: ``(n, h, w, c), (n, y, x, _), (_, _, _, o), (n, y, x, _) -> (n, y, x, o)``."""
def depthwise_conv2d_nchw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., out_dtype: Any = ...) -> Tensor:
    """Each channel of ``(N, C, H, W)`` by ``M`` kernels of its own, ``(C, M, H, W)``. The result has ``C * M`` channels. Attributes are those of :func:`conv2d`. Raises ``TensorExpressionError`` for a kernel of another number of channels."""
def depthwise_conv2d_nhwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., kernel_layout: str = ..., out_dtype: Any = ...) -> Tensor:
    """Each channel of ``(N, H, W, C)`` by ``M`` kernels of its own, ``(H, W, C, M)``. The result has ``C * M`` channels. Attributes are those of :func:`conv2d`. Raises ``TensorExpressionError`` for a kernel of another number of channels."""
def group_conv1d_ncw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv1d` of ``(N, C, W)`` by ``(O, C / groups, W)``. Shapes: ``(n, _, _), (o, _, _) -> (n, o, _)``."""
def group_conv1d_nwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv1d` of ``(N, W, C)`` by ``(W, C / groups, O)``. Shapes: ``(n, _, _), (_, _, o) -> (n, _, o)``."""
def group_conv2d_nchw(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv2d` of ``(N, C, H, W)`` by ``(O, C / groups, H, W)``. Shapes: ``(n, _, _, _), (o, _, _, _) -> (n, o, _, _)``."""
def group_conv2d_nhwc(data: Tensor, kernel: Tensor, strides: Any = ..., padding: Any = ..., dilation: Any = ..., groups: int = ..., out_dtype: Any = ...) -> Tensor:
    """:func:`conv2d` of ``(N, H, W, C)`` by ``(H, W, C / groups, O)``. Shapes: ``(n, _, _, _), (_, _, _, o) -> (n, _, _, o)``."""
def lp_pool1d(data: Tensor, kernel: Any, stride: Any = ..., dilation: Any = ..., padding: Any = ..., p: float = ..., ceil_mode: bool = ..., layout: str = ...) -> Tensor:
    """As :func:`lp_pool2d`, of one dimension."""
def lp_pool2d(data: Tensor, kernel: Any, stride: Any = ..., dilation: Any = ..., padding: Any = ..., p: float = ..., ceil_mode: bool = ..., layout: str = ...) -> Tensor:
    """The p-norm of each window, ``sum(|x| ** p) ** (1 / p)``; the other attributes are those of :func:`pool2d`. Raises ``TensorExpressionError`` as :func:`pool2d`, for a ``p`` that is not positive, and for integers."""
def lp_pool3d(data: Tensor, kernel: Any, stride: Any = ..., dilation: Any = ..., padding: Any = ..., p: float = ..., ceil_mode: bool = ..., layout: str = ...) -> Tensor:
    """As :func:`lp_pool2d`, of three dimensions."""
def pool1d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: Literal['max', 'avg'], ceil_mode: bool = ..., layout: str = ..., count_include_pad: bool = ...) -> Tensor:
    """As :func:`pool2d`, of one dimension."""
def pool2d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: Literal['max', 'avg'], ceil_mode: bool = ..., layout: str = ..., count_include_pad: bool = ...) -> Tensor:
    """The largest element (``pool_type="max"``) or the mean (``"avg"``) of each window of an image. ``data`` is ``(N, C, H, W)`` or in another ``layout``. ``kernel``, ``stride`` and ``dilation`` are one integer, or one each; ``padding`` as of :func:`conv2d`. ``ceil_mode`` also counts a last window that is partly beyond the padding, unless it begins in it. Padding is never the largest, and counts among the elements of a mean unless ``count_include_pad`` is false; what is beyond the padding never does. Raises ``TensorExpressionError`` for a window larger than the padded image, and for other attributes."""
def pool3d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: Literal['max', 'avg'], ceil_mode: bool = ..., layout: str = ..., count_include_pad: bool = ...) -> Tensor:
    """As :func:`pool2d`, of three dimensions."""

def __getattr__(name: str) -> Any: ...  # operators of other packages
