"""Rows of ATen operators of networks: products, convolutions, pools, normalizations, attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtype import DType
from ..graph import Value
from ..graph.sizes import Extent, is_fixed
from ..ops.promotion import wide
from .determinants import determinant, inverse
from .making import LAYOUTS, Unsupported, axis_of, broadcast
from .resize_tables import resized, weights_of
from .torch_elementwise import sign
from .torch_table import Call, NotMade, Number, rounded_once, row, type_named
from .window_rows import largest_of_windows, places_of_largest, under_windows

# ---------------------------------------------------------------- products


@row("mm", "bmm", "matmul", "mv", "dot")
def _matmul(c: Call, x: Value, mat2: Any = None, other: Any = None, vec: Any = None, tensor: Any = None) -> Any:
    second = next(v for v in (mat2, other, vec, tensor) if v is not None)
    return c.op("matmul", x, second)


@row("_linalg_det", "_linalg_slogdet")
def _determinant(c: Call, A: Value) -> Any:  # noqa: N803
    made, factors = determinant(c, A), [NotMade("factors of its matrices")] * 2
    if c.operator == "_linalg_det":
        return made, *factors
    return sign(c, made), c.op("log", c.op("abs", made)), *factors


@row("inverse", "linalg_inv", "linalg_inv_ex")
def _inverse(c: Call, x: Any = None, A: Any = None, check_errors: bool = False) -> Any:  # noqa: N803
    made = inverse(c, A if x is None else x)
    return (made, NotMade("the number of an element that is 0")) if c.operator == "linalg_inv_ex" else made


@row("linalg_solve", "linalg_solve_ex", "_linalg_solve_ex")
def _solve(c: Call, A: Value, B: Value, left: bool = True, check_errors: bool = False) -> Any:  # noqa: N803
    """Equations with the matrices ``A``, whose other sides ``B`` are matrices, or vectors of ``A``'s batches."""
    vectors = len(B.shape) == 1 or B.shape == A.shape[:-1]
    a, b = (A, c.shaped(B, (*B.shape, 1)) if vectors else B) if left else (c.op("matrix_transpose", x) for x in (A, B))
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    made = c.op("solve", *(c.op("broadcast_to", x, (*batch, *x.shape[-2:])) for x in (a, b)))
    made = c.op("matrix_transpose", made) if not left else c.shaped(made, made.shape[:-1]) if vectors else made
    return (
        made if c.operator == "linalg_solve" else (made, *[NotMade("factors of its matrices")] * (len(c.results) - 1))
    )


@row("_int_mm")
def _integer_matmul(c: Call, x: Value, mat2: Value) -> Any:
    return c.op("matmul", c.of_type(x, c.dtype), c.of_type(mat2, c.dtype))


@row("linear")
def _linear(c: Call, x: Value, weight: Value, bias: Value | None = None) -> Any:
    return c.summed(c.added(bias), "matmul", x, c.op("transpose", weight, (1, 0)) if len(weight.shape) == 2 else weight)


@row("addmm", "addmv", "baddbmm", "addbmm")
def _addmm(
    c: Call, x: Value, mat1: Any = None, mat2: Any = None, batch1: Any = None, batch2: Any = None, mat: Any = None,
    vec: Any = None, beta: Number = 1, alpha: Number = 1,
) -> Any:  # fmt: skip
    a, b = (next(v for v in several if v is not None) for several in ((mat1, batch1, mat), (mat2, batch2, vec)))

    def completed(made: Value) -> Value:
        made = c.of_type(c.op("sum", made, (0,)), made.dtype) if c.operator == "addbmm" else made
        made = c.times(made, alpha)
        return made if beta == 0 else c.op("add", made, c.times(c.of_type(x, made.dtype), beta))

    return c.summed(completed, "matmul", a, b)


@row("_grouped_mm", "transformers.grouped_mm_fallback")
def _grouped_mm(
    c: Call, x: Value, weight: Value | None = None, offs: Value | None = None, mat2: Value | None = None, bias: Value | None = None,
    out_dtype: DType | None = None,
) -> Any:  # fmt: skip
    """Rows ``(s, k)`` times the matrix of their group, of ``(g, k, n)``; group ``i`` ends before row ``offs[i]``."""
    several = mat2 if weight is None else weight
    if several is None or offs is None or len(x.shape) != 2 or len(several.shape) != 3:
        raise Unsupported("groups that are not of the rows of a matrix")
    group = c.op("searchsorted", offs, c.op("arange", 0, x.shape[0], 1, str(offs.dtype)), True)
    own = c.op("take", several, c.op("minimum", group, several.shape[0] - 1), 0)
    made = c.shaped(c.op("matmul", c.shaped(x, (x.shape[0], 1, x.shape[1])), own), (x.shape[0], several.shape[2]))
    is_in = c.shaped(c.op("less", group, several.shape[0]), (x.shape[0], 1))
    made = c.op("where", is_in, made, c.tensor(0.0, made.dtype))
    return made if bias is None else c.op("add", made, bias)


@row("_trilinear")
def _trilinear(
    c: Call, i1: Value, i2: Value, i3: Value, expand1: Sequence[int], expand2: Sequence[int], expand3: Sequence[int], sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Any:  # fmt: skip
    """The sum along some axes of the products of three tensors, after each got axes of one element."""
    rank = len(i1.shape) + len(expand1)
    names = [chr(ord("a") + n) for n in range(rank)]
    terms = [[n for k, n in enumerate(names) if k not in each] for each in (expand1, expand2, expand3)]
    output = [n for k, n in enumerate(names) if k not in sumdim]
    return c.op("einsum", f"{','.join(map(''.join, terms))}->{''.join(output)}", i1, i2, i3)


@row("einsum")
def _einsum(c: Call, equation: str, tensors: Sequence[Value], path: Any = None) -> Any:
    return c.op("einsum", equation.replace(" ", ""), *(c.operand(each, c.dtype) for each in tensors))


# ---------------------------------------------------------------- windows


def _each(given: Any, rank: int) -> list[int]:
    """A number for each axis, of one or of several numbers."""
    several = [given] if isinstance(given, int) else list(given)
    return several * rank if len(several) == 1 else several


def _batched(c: Call, x: Value, rank: int) -> Value:
    """Images with a batch."""
    if len(x.shape) not in (rank + 1, rank + 2):
        raise Unsupported(f"a tensor of {len(x.shape)} dimensions for {rank}-dimensional windows")
    return x if len(x.shape) == rank + 2 else c.shaped(x, (1, *x.shape))


def _as_given(c: Call, made: Any, x: Value) -> Any:
    """The result without a batch, if ``x`` has none."""
    if isinstance(made, NotMade):
        return made
    return made if len(made.shape) == len(x.shape) else c.shaped(made, made.shape[1:])


@row("convolution", "conv1d", "conv2d", "conv3d")
def _convolution(
    c: Call, x: Value, weight: Value, bias: Value | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, transposed: bool = False, output_padding: Any = 0, groups: int = 1,
) -> Any:  # fmt: skip
    rank = len(weight.shape) - 2
    data = _batched(c, x, rank)
    strides, dilations = _each(stride, rank), _each(dilation, rank)
    if padding in ("valid", "same"):
        total = [d * (k - 1) * (padding == "same") for d, k in zip(dilations, weight.shape[2:])]
        before, after = [t // 2 for t in total], [t - t // 2 for t in total]
    else:
        before = after = _each(padding, rank)
    if transposed:
        more = {"output_padding": _each(output_padding, rank), "groups": groups, "dilation": dilations}
        kind = f"nn.conv{rank}d_transpose"
    else:
        kind, more = f"nn.conv{rank}d", {"groups": groups, "dilation": dilations}
    made = c.summed(c.added(bias, rank), kind, data, weight, strides=strides, padding=[*before, *after], **more)
    return _as_given(c, made, x)


@row("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(
    c: Call, x: Value, weight: Value, bias: Value | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    return _convolution(c, x, weight, bias, stride, padding, dilation, True, output_padding, groups)


def _windows(c: Call, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[list[int], ...]:
    """The sizes, strides, dilations and pads of the windows of a pool."""
    rank = next(int(n) for n in c.operator if n.isdigit())
    sizes = _each(kernel, rank)
    return sizes, _each(stride, rank) if stride else sizes, _each(dilation, rank), _each(padding, rank) * 2


def _pooled(c: Call, x: Value, kind: str, windows: Sequence[list[int]], up: bool, *counted: bool) -> Any:
    rank = len(windows[0])
    made = c.op(f"nn.pool{rank}d", _batched(c, x, rank), *windows, kind, up, LAYOUTS[rank], *counted)
    return _as_given(c, made, x)


@row("max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    c: Call,
    x: Value,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    windows = sizes, strides, gaps, pads = _windows(c, kernel_size, stride, padding, dilation)
    rank = len(sizes)
    if not c.operator.endswith("indices"):
        return _pooled(c, x, "max", windows, ceil_mode)
    if not is_fixed(*x.shape[-rank:]):
        return _pooled(c, x, "max", windows, ceil_mode), NotMade("the indices of the largest elements")
    steps = [math.prod(x.shape[n:]) for n in range(-rank + 1, 0)] + [1]
    made = largest_of_windows(c, _batched(c, x, rank), sizes, strides, gaps, pads, ceil_mode, steps)
    return tuple(_as_given(c, each, x) for each in made)


@row("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(
    c: Call, x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    windows = sizes, strides, gaps, pads = _windows(c, kernel_size, stride, padding, 1)
    made = _pooled(c, x, "avg", windows, ceil_mode, count_include_pad)
    if divisor_override is None:
        return made
    if not is_fixed(*x.shape[-len(sizes) :]) or x.dtype.is_int:
        what = "integers" if x.dtype.is_int else "an image of symbolic size"
        raise Unsupported(f"divisor_override={divisor_override} of {what}")
    wide = under_windows(c, _batched(c, x, len(sizes)), made.shape[-len(sizes) :], sizes, strides, gaps, pads, 0)
    means = _pooled(c, wide, "avg", (sizes, strides, gaps, [0] * len(pads)), False)
    return _as_given(c, c.times(means, math.prod(sizes) / divisor_override), x)


@row("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
     "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")  # fmt: skip
def _adaptive_pool(c: Call, x: Value, output_size: Any) -> Any:
    rank = next(int(n) for n in c.operator if n.isdigit())
    data, is_max = _batched(c, x, rank), "max" in c.operator
    wanted = [n if s is None else s for s, n in zip(_each(output_size, rank), data.shape[2:])]
    if set(wanted) == {1}:
        made = c.op("max" if is_max else "mean", data, tuple(range(2, 2 + rank)), True)
    else:
        name = {1: "nn.adaptive_pool1d", 2: "nn.adaptive_pool", 3: "nn.adaptive_pool3d"}[rank]
        made = c.op(name, data, wanted, "max" if is_max else "avg")
    given = _as_given(c, made, x)
    return (given, _as_given(c, _places_in_parts(c, data, made, wanted), x)) if is_max else given


def _places_in_parts(c: Call, x: Value, largest: Value, counts: Sequence[int]) -> Any:
    """The places of the largest elements of the parts into which an adaptive pool divides an image."""
    sizes = x.shape[2:]
    if set(counts) == {1}:
        flat = c.shaped(x, (*x.shape[:2], math.prod(sizes)))
        return c.shaped(c.op("argmax", flat, 2), (*x.shape[:2], *counts))
    if not is_fixed(*sizes, *counts) or 0 in (*sizes, *counts):
        return NotMade("the indices of the largest elements")
    begins = [np.arange(m) * n // m for n, m in zip(sizes, counts)]
    ends = [-(-np.arange(1, m + 1) * n // m) for n, m in zip(sizes, counts)]
    steps = [math.prod(sizes[n:]) for n in range(1, len(sizes) + 1)]
    places = [np.minimum(b[:, None] + np.arange((e - b).max()), e[:, None] - 1) for b, e in zip(begins, ends)]
    return places_of_largest(c, x, largest, places, steps)


@row("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d",
     "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d")  # fmt: skip
def _upsample(
    c: Call, x: Value, output_size: Any = None, scale_factors: Any = None,
    align_corners: bool = False, scales: Any = None, scales_h: Any = None, scales_w: Any = None, scales_d: Any = None,
) -> Any:  # fmt: skip
    rank = len(x.shape) - 2
    factors = scale_factors or [s for s in (scales_d, scales_h, scales_w, scales) if s is not None]
    sizes: list[Extent] = (
        list(output_size) if output_size is not None else [_scaled_size(n, s) for n, s in zip(x.shape[2:], factors)]
    )
    is_nearest, is_exact = "nearest" in c.operator, "exact" in c.operator
    if x.dtype.is_int and not is_nearest:
        raise Unsupported(f"{x.dtype} between elements, which torch rounds after each axis, with weights of its own")
    if (
        len(factors) == rank
        and not align_corners
        and any(is_fixed(n) and n * s != size for n, s, size in zip(x.shape[2:], factors, sizes))
    ):
        return _scaled(c, x, factors, sizes, is_exact)
    how = "align_corners" if align_corners else "asymmetric" if is_nearest and not is_exact else "half_pixel"
    method = "nearest_neighbor" if is_nearest else "cubic" if "cubic" in c.operator else "linear"
    rounding = ("round_prefer_ceil" if is_exact else "floor") if is_nearest else ""
    return c.op(f"image.resize{rank}d", x, None, sizes, LAYOUTS[rank], method, how, rounding)


def _scaled_size(size: Extent, factor: float) -> Extent:
    """A size times a factor, rounded down. Raises :class:`Unsupported` where that is known only when it runs."""
    if isinstance(size, int):
        return int(size * factor)
    over, under = float(factor).as_integer_ratio()
    if (size * over) % under != 0:
        raise Unsupported(f"a scale of {factor} of {size} elements, which are known only when it runs")
    return size * over // under


def _scaled(c: Call, x: Value, factors: Sequence[float], sizes: Sequence[Extent], is_exact: bool) -> Value:
    """An image whose sizes times ``factors`` are no whole numbers: places count by the factors, not by the sizes."""
    if not is_fixed(*x.shape[2:]):
        raise Unsupported(f"scales {list(factors)} of sizes that are known only when it runs")
    made = x
    for axis, (factor, new) in enumerate(zip(factors, map(int, sizes)), 2):
        at = np.arange(*c.room(new), dtype="float32")
        scale = np.float32(1 / factor)  # as torch does, which decides where nearest places are whole
        if "nearest" in c.operator:
            places = np.floor((at + 0.5 * is_exact) * scale).astype("int64")
            made = c.op("take", made, c.array(np.minimum(places, x.shape[axis] - 1)), axis)
        else:
            radius = 1 + ("cubic" in c.operator)
            table = weights_of((at + 0.5) * scale - 0.5, x.shape[axis], radius, 1.0, -0.75, False)
            made = resized(c, made, axis, table)
    return c.of_type(made, c.dtype)


@row("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
def _upsample_smoothly(
    c: Call, x: Value, output_size: Any = None, align_corners: bool = False, scale_factors: Any = None, scales_h: float | None = None,
    scales_w: float | None = None,
) -> Any:  # fmt: skip
    """Kernels as wide as the scale, where the image gets smaller; of what is inside of it."""
    if align_corners:
        raise Unsupported("antialiasing with align_corners=True")
    if not is_fixed(*x.shape[2:]) or not x.dtype.is_float:
        raise Unsupported(f"antialiasing of {x.dtype}{list(x.shape)}")
    made, is_cubic = x, "cubic" in c.operator
    for axis, factor in zip((2, 3), scale_factors or (scales_h, scales_w)):
        old, new = x.shape[axis], c.results[0].sizes[axis]
        assert new is not None
        scale = 1 / factor if factor else old / new
        at = (np.arange(*c.room(new)) + 0.5) * scale - 0.5
        made = resized(c, made, axis, weights_of(at, old, 1 + is_cubic, min(1 / scale, 1.0), -0.5, True))
    return c.of_type(made, c.dtype)


@row("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def _grid_sampler(
    c: Call, x: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    padding = ("zeros", "border", "reflection")[padding_mode]
    return c.grid_sampled(x, grid, mode, padding, align_corners)


# ---------------------------------------------------------------- normalizations


@row("batch_norm", "_native_batch_norm_legit_no_training", "_native_batch_norm_legit", "native_batch_norm",
     "_native_batch_norm_legit_functional")  # fmt: skip
def _batch_norm(
    c: Call, x: Value, weight: Value | None, bias: Value | None, running_mean: Value | None = None,
    running_var: Value | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """In training by the moments of the batch; what the running ones become are results of the functional kind."""
    is_functional = c.operator.endswith("functional")
    if training and not is_functional and (running_mean, running_var) != (None, None):
        raise Unsupported("it changes its running moments in place, as in training; call model.eval() first")
    channels = x.shape[1]
    scale, shift = _affine(c, x, weight, bias, (channels,))
    after: Sequence[Value | None] = running_mean, running_var
    if running_mean is None or running_var is None:  # the moments of what is normalized, as in an instance norm
        axes = tuple(n for n in range(len(x.shape)) if n != 1)
        made = c.op("nn.group_norm", x, scale, shift, channels, 1, axes, float(eps))
    elif training:
        none = c.filled((channels,), 0, wide(running_mean.dtype))
        made, *of_batch = c.op("nn.batch_norm", x, scale, shift, none, none, 1, float(eps), True, True, True, 1.0)
        count = c.tensor(x.elements // channels, none.dtype)
        of_batch[1] = c.op("multiply", of_batch[1], c.op("divide", count, c.op("subtract", count, 1.0)))  # unbiased
        kinds = [type_named(said.dtype) for said in c.results[3:]]
        after = [_moved(c, *each, momentum) for each in zip((running_mean, running_var), of_batch, kinds)]
    else:
        made = c.op("nn.batch_norm", x, scale, shift, running_mean, running_var, epsilon=float(eps))[0]
    return made if c.operator == "batch_norm" else (made, *_MOMENTS, *(after if is_functional else ()))


_MOMENTS = [NotMade("the moments of a normalization")] * 2


def _normalized(c: Call, made: Value) -> Any:
    return (made, *_MOMENTS) if c.operator.startswith("native") else made


def _affine(c: Call, x: Value, weight: Value | None, bias: Value | None, sizes: Sequence[int]) -> tuple[Value, Value]:
    """The factors and the terms of a normalization; 1 and 0 where it has none."""
    scale = c.filled(sizes, 1, x.dtype) if weight is None else weight
    return scale, c.filled(sizes, 0, x.dtype) if bias is None else bias


def _moved(c: Call, old: Value, new: Value, kind: DType, momentum: float) -> Value:
    """A running moment after a batch of which it is ``new``."""
    kept = c.times(c.of_type(old, new.dtype), 1.0 - momentum)
    return c.of_type(c.op("add", kept, c.times(new, momentum)), kind)


@row("layer_norm", "native_layer_norm")
def _layer_norm(
    c: Call, x: Value, normalized_shape: Sequence[int], weight: Value | None = None, bias: Value | None = None,
    eps: float = 1e-5, cudnn_enable: bool = True,
) -> Any:  # fmt: skip
    axes = tuple(range(len(x.shape) - len(normalized_shape), len(x.shape)))
    return _normalized(c, c.op("nn.layer_norm", x, *_affine(c, x, weight, bias, normalized_shape), axes, float(eps)))


@row("rms_norm", "_fused_rms_norm")
@rounded_once
def _rms_norm(
    c: Call, x: Value, normalized_shape: Sequence[int], weight: Value | None = None, eps: float | None = None
) -> Any:
    axes = tuple(range(len(x.shape) - len(normalized_shape), len(x.shape)))
    epsilon = float(np.finfo(str(x.dtype)).eps) if eps is None else float(eps)
    square = c.op("mean", c.op("square", x), axes, True)
    inverse = c.op("rsqrt", c.op("add", square, epsilon))
    made = c.op("multiply", x, inverse)
    made = made if weight is None else c.op("multiply", made, weight)
    return (made, inverse) if c.operator.startswith("_fused") else made


@row("group_norm", "native_group_norm", "instance_norm")
def _group_norm(
    c: Call, x: Value, num_groups: int = 0, weight: Value | None = None, bias: Value | None = None,
    eps: float = 1e-5, group: int = 0, N: int = 0, C: int = 0, HxW: int = 0, use_input_stats: bool = True,
    running_mean: Any = None, running_var: Any = None, momentum: float = 0.1, cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    channels = x.shape[1]
    scale, shift = _affine(c, x, weight, bias, (channels,))
    if not use_input_stats:
        return c.op("nn.batch_norm", x, scale, shift, running_mean, running_var, epsilon=float(eps))[0]
    groups = channels if c.operator == "instance_norm" else num_groups or group
    axes = tuple(range(2, len(x.shape)))
    return _normalized(c, c.op("nn.group_norm", x, scale, shift, groups, 1, axes, float(eps)))


# ---------------------------------------------------------------- attention


@row("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math",
     "_scaled_dot_product_attention_math_for_mps")  # fmt: skip
def _attention(
    c: Call, query: Value, key: Value, value: Value, attn_mask: Value | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False, dropout_mask: Any = None,
) -> Any:  # fmt: skip
    if dropout_p:
        raise Unsupported("dropout, which draws random numbers")
    if len(query.shape) > 2:
        key, value = (_repeated(c, t, query.shape[-3] // t.shape[-3]) for t in (key, value))
    seeing = None if attn_mask is None else _seeing(c, attn_mask)
    made = _attended(c, query, key, value, attn_mask, is_causal, scale, seeing)
    return made if len(c.results) < 2 else (made, NotMade("the sums of an attention"))


def _attended(
    c: Call, query: Value, key: Value, value: Value, mask: Value | None, is_causal: bool, scale: float | None,
    seeing: Value | None = None,
) -> Value:  # fmt: skip
    rank = len(key.shape)
    turned = c.op("transpose", key, (*range(rank - 2), rank - 1, rank - 2))
    factor = 1 / math.sqrt(query.shape[rank - 1]) if scale is None else scale

    def mixed(scores: Value) -> Value:
        scores = _masked(c, c.times(scores, factor), mask, is_causal)
        made = c.op("matmul", c.op("nn.softmax", scores, axis_of(-1, len(scores.shape))), value)
        return made if seeing is None else c.op("where", seeing, made, c.tensor(0.0, made.dtype))

    return c.summed(mixed, "matmul", query, turned)


@row("_native_multi_head_attention")
def _multi_head_attention(
    c: Call, query: Value, key: Value, value: Value, embed_dim: int, num_head: int, qkv_weight: Value, qkv_bias: Value, proj_weight: Value, proj_bias: Value,
    mask: Value | None = None, need_weights: bool = True, average_attn_weights: bool = True, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Masks are true where nothing is seen: of pairs of rows (type 0), of the rows of each of a batch (1), or of both for each head (2)."""
    heads: list[Value] = []
    for n, x in enumerate((query, key, value)):
        own = [(0, slice(n * embed_dim, (n + 1) * embed_dim))]
        made = _linear(c, x, c.sliced(qkv_weight, own), c.sliced(qkv_bias, own))
        apart = c.shaped(made, (*x.shape[:2], num_head, embed_dim // num_head))
        heads.append(c.op("transpose", apart, (0, 2, 1, 3)))
    seen = None
    if mask is not None:
        seen = c.op("logical_not", c.op("astype", mask, "bool"))
        seen = c.shaped(seen, (mask.shape[0], 1, 1, mask.shape[1])) if mask_type == 1 else seen
    q, k, v = heads
    mixed = c.op("transpose", _attended(c, q, k, v, seen, False, None), (0, 2, 1, 3))
    made = _linear(c, c.shaped(mixed, query.shape), proj_weight, proj_bias)
    return (made, NotMade("the weights of an attention"))


@row("_transformer_encoder_layer_fwd")
def _encoder_layer(
    c: Call, src: Value, embed_dim: int, num_heads: int, qkv_weight: Value, qkv_bias: Value, proj_weight: Value, proj_bias: Value, use_gelu: bool,
    norm_first: bool, eps: float, norm_weight_1: Value, norm_bias_1: Value, norm_weight_2: Value, norm_bias_2: Value, ffn_weight_1: Value,
    ffn_bias_1: Value, ffn_weight_2: Value, ffn_bias_2: Value, mask: Value | None = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    def attended(x: Value) -> Value:
        weights = qkv_weight, qkv_bias, proj_weight, proj_bias
        return _multi_head_attention(c, x, x, x, embed_dim, num_heads, *weights, mask, mask_type=mask_type)[0]

    def forward(x: Value) -> Value:
        x = c.op("nn.gelu" if use_gelu else "nn.relu", _linear(c, x, ffn_weight_1, ffn_bias_1))
        return _linear(c, x, ffn_weight_2, ffn_bias_2)

    for part, norm in ((attended, (norm_weight_1, norm_bias_1)), (forward, (norm_weight_2, norm_bias_2))):
        if norm_first:
            src = c.op("add", src, part(c.op("nn.layer_norm", src, *norm, (2,), float(eps))))
        else:
            src = c.op("nn.layer_norm", c.op("add", src, part(src)), *norm, (2,), float(eps))
    return src


def _repeated(c: Call, x: Value, count: int) -> Value:
    """Each head ``count`` times."""
    if count == 1:
        return x
    *batch, heads, length, depth = x.shape
    wide = c.op("broadcast_to", c.shaped(x, (*batch, heads, 1, length, depth)), (*batch, heads, count, length, depth))
    return c.shaped(wide, (*batch, heads * count, length, depth))


def _masked(c: Call, scores: Value, mask: Value | None, is_causal: bool) -> Value:
    low = c.tensor(float("-inf"), scores.dtype)
    if is_causal:
        sizes = scores.shape[-2:]
        if is_fixed(*sizes):
            seen = c.array(np.tril(np.ones(c.room(*sizes), bool)))
        else:
            seen = c.op("trilu", c.filled(sizes, True, DType("bool")), 0, False)
        scores = c.op("where", seen, scores, low)
    if mask is None:
        return scores
    return c.op("where", mask, scores, low) if mask.dtype.is_bool else c.op("add", scores, c.tensor(mask, scores.dtype))


def _seeing(c: Call, mask: Value) -> Value | None:
    """Which rows of a mask see anything, others being zeros; None where all are known to."""
    axis, constant = (len(mask.shape) - 1,), c.builder.constants.get(mask)
    if constant is not None and (constant if mask.dtype.is_bool else constant > -np.inf).any(-1).all():
        return None
    if mask.dtype.is_bool:
        return c.op("any", mask, axis, True)
    return c.op("greater", c.op("max", mask, axis, True), float("-inf"))


@row("torchvision.roi_align")
def _roi_align(
    c: Call, x: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int, aligned: bool
) -> Any:  # fmt: skip
    size = (pooled_height, pooled_width)
    return c.op(
        "vision.roi_align_nchw", x, rois, size, float(spatial_scale), "avg", max(sampling_ratio, 0) or -1, aligned
    )


@row("torchvision.roi_pool")
def _roi_pool(
    c: Call, x: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int
) -> Any:  # fmt: skip
    made = c.op("vision.roi_pool_nchw", x, rois, (pooled_height, pooled_width), float(spatial_scale))
    return made, NotMade("the places of the largest elements")


@row("torchvision.deform_conv2d")
def _deformable_conv(
    c: Call, x: Value, weight: Value, offset: Value, mask: Value, bias: Value, stride_h: int, stride_w: int, pad_h: int,
    pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Any:  # fmt: skip
    steps, pads, dilation = (stride_h, stride_w), (pad_h, pad_w, pad_h, pad_w), (dilation_h, dilation_w)
    given = {"mask": mask} if use_mask else {}
    more = {
        "strides": steps,
        "padding": pads,
        "dilation": dilation,
        "deformable_groups": offset_groups,
        "groups": groups,
    }
    return c.summed(c.added(bias, 2), "nn.deformable_conv2d_nchw", x, offset, weight, **more, **given)
