"""Operators that :mod:`benchmarks.operators` measures, as one line of Python each for this library, NumPy and torch.

An empty line: the peer has no such operator. ``a``, ``b``, ``c`` … are the arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tir.ops as ops
from tir import te

from . import vision_peers

N = 1024
SAME = [("subtract", "xy"), ("minimum", "xy"), ("hypot", "xy"), ("copysign", "xy"), ("logaddexp", "xy"),
        ("negative", "x"), ("signbit", "x"), ("reciprocal", "x"), ("ceil", "x"), ("trunc", "x"),
        ("isnan", "x"), ("isinf", "x"), ("exp2", "x"), ("log2", "x"), ("log10", "x"), ("cos", "x"), ("cosh", "s"),
        ("not_equal", "xy"), ("less_equal", "xy"), ("greater", "xy"), ("greater_equal", "xy"),
        ("logical_or", "fg"), ("logical_xor", "fg"), ("logical_not", "f"), ("bitwise_and", "ij"), ("bitwise_or", "ij"),
        ("tril", "x")]  # fmt: skip
ROWS = [
    ("positive", "x", "ops.positive(a)", "np.positive(a)", "a.clone()"),
    ("equal", "xy", "ops.equal(a, b)", "np.equal(a, b)", "torch.eq(a, b)"),
    ("trunc_divide", "xy", "ops.trunc_divide(a, b)", "np.trunc(a / b)", "torch.div(a, b, rounding_mode='trunc')"),
    ("reinterpret", "x", "ops.reinterpret(a, 'int32')", "a.view('int32').copy()", "a.view(torch.int32).clone()"),
    ("full_like", "x", "ops.full_like(a, 2.0)", "np.full_like(a, 2.0)", "torch.full_like(a, 2.0)"),
    ("zeros_like", "x", "ops.zeros_like(a)", "", "torch.zeros_like(a)"),
    ("ones_like", "x", "ops.ones_like(a)", "np.ones_like(a)", "torch.ones_like(a)"),
    ("add_n", "xyx", "ops.add_n([a, b, c])", "a + b + c", "a + b + c"),
    ("exp10", "x", "ops.exp10(a)", "np.power(np.float32(10), a)", "torch.pow(10.0, a)"),
    ("erfc", "x", "ops.erfc(a)", "", "torch.erfc(a)"),
    ("acos", "s", "ops.acos(a)", "np.arccos(a)", "torch.acos(a)"),
    ("acosh", "x", "ops.acosh(a)", "np.arccosh(a)", "torch.acosh(a)"),
    ("atanh", "s", "ops.atanh(a)", "np.arctanh(a)", "torch.atanh(a)"),
    ("bitwise_invert", "i", "ops.bitwise_invert(a)", "np.invert(a)", "torch.bitwise_not(a)"),
    ("bitwise_left_shift", "ik", "ops.bitwise_left_shift(a, b)", "np.left_shift(a, b)", "torch.bitwise_left_shift(a, b)"),
    ("bitwise_right_shift", "ik", "ops.bitwise_right_shift(a, b)", "np.right_shift(a, b)", "torch.bitwise_right_shift(a, b)"),
    ("popcount", "i", "ops.popcount(a)", "np.bitwise_count(a)", ""),
    ("full", "", "ops.full((N, N), 2.0)", "np.full((N, N), np.float32(2))", "torch.full((N, N), 2.0)"),
    ("ones", "", "ops.ones((N, N))", "np.ones((N, N), 'float32')", "torch.ones((N, N))"),
    ("arange", "", "ops.arange(N * N)", "np.arange(N * N)", "torch.arange(N * N)"),
    ("linspace", "", "ops.linspace(0, 1, N * N)", "np.linspace(0, 1, N * N, dtype='float32')", "torch.linspace(0, 1, N * N)"),
    ("eye", "", "ops.eye(N)", "np.eye(N, dtype='float32')", "torch.eye(N)"),
    ("min, axis 1", "x", "ops.min(a, axis=1)", "a.min(1)", "a.amin(1)"),
    ("argmin, axis 1", "x", "ops.argmin(a, axis=1)", "a.argmin(1)", "a.argmin(1)"),
    ("any", "f", "ops.any(ops.logical_and(a, False))", "np.any(np.logical_and(a, False))", "torch.any(torch.logical_and(a, torch.tensor(False)))"),
    ("std, axis 1", "x", "ops.std(a, axis=1)", "a.std(1)", "a.std(1)"),
    ("cumprod, axis 1", "x", "ops.cumprod(a, axis=1)", "a.cumprod(1)", "a.cumprod(1)"),
    ("reshape", "x", "ops.reshape(a, (512, 2048))", "a.reshape(512, 2048).copy()", "a.reshape(512, 2048).clone()"),
    ("expand_dims", "x", "ops.expand_dims(a, 0)", "a[None].copy()", "a[None].clone()"),
    ("broadcast_to", "r", "ops.broadcast_to(a, (N, N))", "np.broadcast_to(a, (N, N)).copy()", "a.expand(N, N).contiguous()"),
    ("moveaxis", "v", "ops.moveaxis(a, 1, -1)", "np.ascontiguousarray(np.moveaxis(a, 1, -1))", "a.movedim(1, -1).contiguous()"),
    ("transpose, NCHW to NHWC", "v", "ops.transpose(a, (0, 2, 3, 1))", "np.ascontiguousarray(a.transpose(0, 2, 3, 1))", "a.permute(0, 2, 3, 1).contiguous()"),
    ("copy, images of 28 by 28", ("images28",), "ops.positive(a)", "a.copy()", "a.clone()"),
    ("concatenate, images of 28 by 28", ("images28", "images28"), "ops.concatenate([a, b], 1)", "np.concatenate([a, b], 1)", "torch.cat([a, b], 1)"),
    ("split, images of 28 by 28", ("images28",), "ops.split(a, 2, 1)", "[p.copy() for p in np.split(a, 2, 1)]", "[p.clone() for p in a.chunk(2, 1)]"),
    ("pad, images of 28 by 28", ("images28",), "ops.pad(a, [(0, 0), (0, 0), (1, 1), (1, 1)])", "np.pad(a, [(0, 0), (0, 0), (1, 1), (1, 1)])", "F.pad(a, (1, 1, 1, 1))"),
    ("slice, images of 28 by 28", ("images28",), "ops.strided_slice(a, [0, 0, 1, 1], [1, 1280, 27, 27])", "a[:, :, 1:27, 1:27].copy()", "a[:, :, 1:27, 1:27].contiguous()"),
    ("transpose, images of 28 by 28", ("images28",), "ops.transpose(a, (0, 2, 3, 1))", "np.ascontiguousarray(a.transpose(0, 2, 3, 1))", "a.permute(0, 2, 3, 1).contiguous()"),
    ("transpose int8", "n", "ops.transpose(a)", "np.ascontiguousarray(a.T)", "a.T.contiguous()"),
    ("split", "x", "ops.split(a, 4, 1)", "[p.copy() for p in np.split(a, 4, 1)]", "[p.contiguous() for p in a.chunk(4, 1)]"),
    ("unstack", "w", "ops.unstack(a, 0)", "[p.copy() for p in a]", "[p.clone() for p in a]"),
    ("meshgrid", "rr", "ops.meshgrid(a, b)", "[m.copy() for m in np.meshgrid(a, b)]", "[m.contiguous() for m in torch.meshgrid(a, b, indexing='xy')]"),
    ("nn.mirror_pad", "x", "ops.nn.mirror_pad(a, (1, 1), (2, 2))", "np.pad(a, ((1, 1), (2, 2)), 'symmetric')", ""),
    ("sliding_window", "r", "ops.sliding_window(a, 0, (64,), (1,))", "np.lib.stride_tricks.sliding_window_view(a, 64).copy()", "a.unfold(0, 64, 1).contiguous()"),
    ("nn.space_to_depth", "v", "ops.nn.space_to_depth(a, 2)", "", "F.pixel_unshuffle(a, 2)"),
    ("nn.depth_to_space", "v", "ops.nn.depth_to_space(a, 2)", "", "F.pixel_shuffle(a, 2)"),
    ("layout_transform", "v", "ops.layout_transform(a, 'NCHW', 'NCHW8c')", "a.reshape(1, 2, 8, 256, 256).transpose(0, 1, 3, 4, 2).copy()", "a.reshape(1, 2, 8, 256, 256).permute(0, 1, 3, 4, 2).contiguous()"),
    ("gather", "xp", "ops.gather(a, 1, b)", "np.take_along_axis(a, b, 1)", "a.gather(1, b)"),
    ("nn.embedding", "xq", "ops.take(a, b, axis=0)", "a[b]", "F.embedding(b, a)"),
    ("scatter_elements", "xpy", "ops.scatter_elements(a, b, c, 1)", "", "a.scatter(1, b, c)"),
    ("nn.relu6", "x", "ops.nn.relu6(a)", "np.clip(a, 0, 6)", "F.relu6(a)"),
    ("nn.hard_tanh", "x", "ops.nn.hard_tanh(a)", "np.clip(a, -1, 1)", "F.hardtanh(a)"),
    ("nn.leaky_relu", "x", "ops.nn.leaky_relu(a, 0.1)", "", "F.leaky_relu(a, 0.1)"),
    ("nn.elu", "s", "ops.nn.elu(a)", "", "F.elu(a)"),
    ("nn.selu", "s", "ops.nn.selu(a)", "", "F.selu(a)"),
    ("nn.celu", "s", "ops.nn.celu(a)", "", "F.celu(a)"),
    ("nn.gelu_tanh", "x", "ops.nn.gelu_tanh(a)", "", "F.gelu(a, approximate='tanh')"),
    ("nn.mish", "x", "ops.nn.mish(a)", "", "F.mish(a)"),
    ("nn.softplus", "x", "ops.nn.softplus(a)", "", "F.softplus(a)"),
    ("nn.log_sigmoid", "x", "ops.nn.log_sigmoid(a)", "", "F.logsigmoid(a)"),
    ("nn.softsign", "x", "ops.nn.softsign(a)", "", "F.softsign(a)"),
    ("nn.hard_sigmoid", "x", "ops.nn.hard_sigmoid(a)", "", "F.hardsigmoid(a)"),
    ("nn.hard_swish", "x", "ops.nn.hard_swish(a)", "", "F.hardswish(a)"),
    ("nn.dense", "ml", "ops.nn.dense(a, b)", "", "F.linear(a, b)"),
    ("nn.batch_matmul", "tt", "ops.nn.batch_matmul(a, b)", "", "torch.bmm(a, b.transpose(1, 2))"),
    ("matmul", "ml", "ops.matmul(a, b)", "np.matmul(a, b)", "torch.matmul(a, b)"),
    ("vecdot", "xy", "ops.vecdot(a, b)", "np.vecdot(a, b)", "torch.linalg.vecdot(a, b)"),
    ("matrix_transpose", "v", "ops.matrix_transpose(a)", "np.ascontiguousarray(np.matrix_transpose(a))", "a.mT.contiguous()"),
    ("broadcast_arrays", "rx", "ops.broadcast_arrays(a, b)", "[c.copy() for c in np.broadcast_arrays(a, b)]", "[c.clone() for c in torch.broadcast_tensors(a, b)]"),
    ("count_nonzero, axis 1", "x", "ops.count_nonzero(a, axis=1)", "np.count_nonzero(a, axis=1)", "torch.count_nonzero(a, dim=1)"),
    ("diff, axis 1", "x", "ops.diff(a)", "np.diff(a)", "torch.diff(a)"),
    ("nextafter", "xy", "ops.nextafter(a, b)", "np.nextafter(a, b)", "torch.nextafter(a, b)"),
    ("einsum", "ml", "ops.einsum('ij,kj->ik', a, b)", "", "torch.einsum('ij,kj->ik', a, b)"),
    ("nn.bias_add", "xr", "ops.nn.bias_add(a, b)", "a + b", "a + b"),
    ("nn.scaled_dot_product_attention", "ooo", "ops.nn.scaled_dot_product_attention(a, b, c)", "", "F.scaled_dot_product_attention(a, b, c)"),
    ("nn.conv1d", "ed", "ops.nn.conv1d(a, b)", "", "F.conv1d(a, b)"),
    ("nn.conv3d", "hz", "ops.nn.conv3d(a, b)", "", "F.conv3d(a, b)"),
    ("nn.conv2d, 64 channels", "AB", "ops.nn.conv2d(a, b, 1, 1)", "", "F.conv2d(a, b, padding=1)"),
    ("nn.conv2d, strides of 2", "AB", "ops.nn.conv2d(a, b, 2, 1)", "", "F.conv2d(a, b, stride=2, padding=1)"),
    ("nn.depthwise_conv2d_nchw", "vC", "ops.nn.depthwise_conv2d_nchw(a, b, 1, 1)", "", "F.conv2d(a, b, padding=1, groups=16)"),
    ("nn.conv2d_transpose", "AB", "ops.nn.conv2d_transpose(a, b, 2, 1)", "", "F.conv_transpose2d(a, b, stride=2, padding=1)"),
    ("nn.lp_pool2d", "v", "ops.nn.lp_pool2d(a, 2, 2)", "", "F.lp_pool2d(a, 2, 2, 2)"),
    ("nn.adaptive_pool", "v", "ops.nn.adaptive_pool(a, (7, 7), 'avg')", "", "F.adaptive_avg_pool2d(a, (7, 7))"),
    ("nn.global_pool", "v", "ops.nn.global_pool(a, 'avg')", "a.mean((2, 3))", "a.mean((2, 3))"),
    ("nn.instance_norm", "vDD", "ops.nn.instance_norm(a, b, c)", "", "F.instance_norm(a, weight=b, bias=c)"),
    ("nn.group_norm", "vDD", "ops.nn.group_norm(a, b, c, 4)", "", "F.group_norm(a, 4, b, c)"),
    ("nn.l2_normalize", "x", "ops.nn.l2_normalize(a, 1e-12, 1)", "", "F.normalize(a, dim=1)"),
    ("nn.lrn", "v", "ops.nn.lrn(a, 5)", "", "F.local_response_norm(a, 5)"),
    ("nn.quantize", "x", "ops.nn.quantize(a, 0.1, 3)", "", "torch.clamp(torch.round(a / 0.1) + 3, -128, 127).to(torch.int8)"),
    ("nn.dequantize", "n", "ops.nn.dequantize(a, 0.1, 3)", "", "(a.float() - 3) * 0.1"),
    ("image.resize2d", "v", "ops.image.resize2d(a, None, (384, 384))", "", "F.interpolate(a, (384, 384), mode='bilinear')"),
    ("image.grid_sample", "vE", "ops.image.grid_sample(a, b)", "", "F.grid_sample(a, b.permute(0, 2, 3, 1), align_corners=True)"),
    ("vision.box_iou", ("corners", "corners"), "ops.vision.box_iou(a, b)", "", "peers.box_iou(torch, a, b)"),
    ("vision.non_max_suppression", ("scored", "number", "numbers"), "ops.vision.non_max_suppression(a, b, c, -1, 0.5, True, -1, 1, 0, -1)", "peers.non_max_suppression(a[0], 0.5)", ""),
    ("image.crop_and_resize", ("v", "crops", "first"), "ops.image.crop_and_resize(a, b, c, (32, 32))", "", "peers.sampled_regions(torch, a, b[:, [1, 0, 3, 2]], torch.linspace(0, 1, 32))"),
    ("vision.roi_align_nchw", ("v", "rois"), "ops.vision.roi_align_nchw(a, b, (7, 7), 1.0, 'avg', 2)", "", "peers.roi_align(torch, a, b, 7)"),
    ("vision.roi_pool_nchw", ("v", "rois"), "ops.vision.roi_pool_nchw(a, b, (7, 7), 1.0)", "", "peers.roi_pool(torch, a, b, 7)"),
    ("nn.deformable_conv2d_nchw", ("v", "moves", "oihw"), "ops.nn.deformable_conv2d_nchw(a, b, c, 1, 1)", "", "peers.deformable_conv2d(torch, a, b, c)"),
    ("zeros", "", "ops.zeros((N, N))", "", "torch.zeros((N, N))"),
    ("ravel", "v", "ops.ravel(a)", "a.flatten()", "a.reshape(-1).clone()"),
    ("nn.flatten", "v", "ops.nn.flatten(a)", "a.reshape(1, -1).copy()", "a.flatten(1).clone()"),
    ("squeeze", "v", "ops.squeeze(a)", "a.squeeze().copy()", "a.squeeze().clone()"),
    ("expand_like", "rx", "ops.expand_like(a, b, 0)", "np.repeat(a[None], N, 0)", "a.expand(N, N).contiguous()"),
    ("unravel_index", "p", "ops.unravel_index(a, (32, 32))", "np.unravel_index(a, (32, 32))", "torch.unravel_index(a, (32, 32))"),
    ("gather_nd", ("x", "places"), "ops.gather_nd(a, b)", "a[b[0], b[1]]", "a[b[0], b[1]]"),
    ("adv_index", "xpp", "ops.adv_index(a, [b, c])", "a[b, c]", "a[b, c]"),
    ("reverse_sequence", "xq", "ops.reverse_sequence(a, b)", "", "(lambda j, n: a.gather(1, torch.where(j < n, n - 1 - j, j)))(torch.arange(N), b[:, None])"),
    ("nn.pad", "x", "ops.nn.pad(a, (1, 2), (1, 2))", "np.pad(a, ((1, 1), (2, 2)))", "F.pad(a, (2, 2, 1, 1))"),
    ("dynamic_strided_slice", ("x", "begin", "end", "steps"), "ops.dynamic_strided_slice(a, b, c, d, (1022, 510))", "a[b[0]:c[0]:d[0], b[1]:c[1]:d[1]].copy()", "a[b[0]:c[0]:d[0], b[1]:c[1]:d[1]].clone()"),
    ("strided_set", ("x", "half"), "ops.strided_set(a, b, (0, 0), (N, N), (1, 2))", "np.copyto((c := a.copy())[:, ::2], b)", "a.clone()[:, ::2].copy_(b)"),
    ("nn.space_to_batch_nd", ("nhwc",), "ops.nn.space_to_batch_nd(a, (2, 2), (0, 0), (0, 0))", "a.reshape(1, 128, 2, 128, 2, 16).transpose(2, 4, 0, 1, 3, 5).copy()", "a.reshape(1, 128, 2, 128, 2, 16).permute(2, 4, 0, 1, 3, 5).contiguous()"),
    ("nn.batch_to_space_nd", ("nhwc4",), "ops.nn.batch_to_space_nd(a, (2, 2), (0, 0), (0, 0))", "a.reshape(2, 2, 1, 128, 128, 16).transpose(2, 3, 0, 4, 1, 5).copy()", "a.reshape(2, 2, 1, 128, 128, 16).permute(2, 3, 0, 4, 1, 5).contiguous()"),
    ("vision.reorg", "v", "ops.vision.reorg(a, 2)", "", "F.pixel_unshuffle(a, 2)"),
    ("trilu", "x", "ops.trilu(a, 1, upper=True)", "np.triu(a, 1)", "torch.triu(a, 1)"),
    ("matrix_set_diag", "xr", "ops.matrix_set_diag(a, b)", "np.fill_diagonal(a.copy(), b)", "a.clone().diagonal().copy_(b)"),
    ("sequence_mask", "xq", "ops.sequence_mask(a, b, -1.0, 1)", "np.where(np.arange(N) < b[:, None], a, np.float32(-1))", "torch.where(torch.arange(N) < b[:, None], a, -1.0)"),
    ("nn.prelu", "vD", "ops.nn.prelu(a, b)", "", "F.prelu(a, b)"),
    ("nn.thresholded_relu", "x", "ops.nn.thresholded_relu(a, 1.0)", "", "F.threshold(a, 1.0, 0.0)"),
    ("nn.shrink", "x", "ops.nn.shrink(a, 0.5, 0.5)", "", "F.softshrink(a, 0.5)"),
    ("nn.pool1d", ("ncw",), "ops.nn.pool1d(a, 2, 2, 1, 0, 'max')", "", "F.max_pool1d(a, 2)"),
    ("nn.pool3d", "h", "ops.nn.pool3d(a, 2, 2, 1, 0, 'max')", "", "F.max_pool3d(a, 2)"),
    ("nn.pool3d, avg", "h", "ops.nn.pool3d(a, 3, 1, 1, 1, 'avg')", "", "F.avg_pool3d(a, 3, 1, 1)"),
    ("nn.lp_pool1d", ("ncw",), "ops.nn.lp_pool1d(a, 2, 2)", "", "F.lp_pool1d(a, 2, 2, 2)"),
    ("nn.lp_pool3d", "h", "ops.nn.lp_pool3d(a, 2, 2)", "", "F.lp_pool3d(a, 2, 2, 2)"),
    ("nn.adaptive_pool1d", ("ncw",), "ops.nn.adaptive_pool1d(a, 7, 'avg')", "", "F.adaptive_avg_pool1d(a, 7)"),
    ("nn.adaptive_pool3d", "h", "ops.nn.adaptive_pool3d(a, 7, 'avg')", "", "F.adaptive_avg_pool3d(a, 7)"),
    ("nn.multi_head_attention", ("tokens", *["square"] * 4), "ops.nn.multi_head_attention(a, a, a, b, c, d, e, num_heads=4)", "", "F.linear(F.scaled_dot_product_attention(*(F.linear(a, w).view(1, 256, 4, 64).transpose(1, 2) for w in (b, c, d))).transpose(1, 2).reshape(1, 256, 256), e)"),
    ("nn.rotary_embedding", ("heads", "angles", "angles"), "ops.nn.rotary_embedding(a, b, c)", "", "torch.cat([a[..., :32] * b - a[..., 32:] * c, a[..., 32:] * b + a[..., :32] * c], -1)"),
    ("nn.conv1d_ncw", "ed", "ops.nn.conv1d_ncw(a, b, 1, 1)", "", "F.conv1d(a, b, padding=1)"),
    ("nn.conv1d_nwc", ("nwc", "wio"), "ops.nn.conv1d_nwc(a, b, 1, 1)", "", "F.conv1d(a.permute(0, 2, 1), b.permute(2, 1, 0), padding=1).permute(0, 2, 1).contiguous()"),
    ("nn.group_conv1d_ncw", ("e", "oiw4"), "ops.nn.group_conv1d_ncw(a, b, 1, 1, 1, 4)", "", "F.conv1d(a, b, padding=1, groups=4)"),
    ("nn.group_conv1d_nwc", ("nwc", "wio4"), "ops.nn.group_conv1d_nwc(a, b, 1, 1, 1, 4)", "", "F.conv1d(a.permute(0, 2, 1), b.permute(2, 1, 0), padding=1, groups=4).permute(0, 2, 1).contiguous()"),
    ("nn.conv2d_nchw", "AB", "ops.nn.conv2d_nchw(a, b, 1, 1)", "", "F.conv2d(a, b, padding=1)"),
    ("nn.conv2d_nhwc", ("image56", "hwio"), "ops.nn.conv2d_nhwc(a, b, 1, 1)", "", "F.conv2d(a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1), padding=1).permute(0, 2, 3, 1).contiguous()"),
    ("nn.conv2d_hwcn", ("hwcn", "hwio"), "ops.nn.conv2d_hwcn(a, b, 1, 1)", "", "F.conv2d(a.permute(3, 2, 0, 1), b.permute(3, 2, 0, 1), padding=1).permute(2, 3, 1, 0).contiguous()"),
    ("nn.group_conv2d_nchw", ("A", "oihw4"), "ops.nn.group_conv2d_nchw(a, b, 1, 1, 1, 4)", "", "F.conv2d(a, b, padding=1, groups=4)"),
    ("nn.group_conv2d_nhwc", ("image56", "hwio4"), "ops.nn.group_conv2d_nhwc(a, b, 1, 1, 1, 4)", "", "F.conv2d(a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1), padding=1, groups=4).permute(0, 2, 3, 1).contiguous()"),
    ("nn.conv2d_NCHWc", ("nchw16", "weights16"), "ops.nn.conv2d_NCHWc(a, b, 1, 1, 1, 'NCHW16c', 'NCHW16c')", "", "F.conv2d(a.reshape(1, 64, 56, 56), b.reshape(64, 64, 3, 3), padding=1)"),
    ("nn.depthwise_conv2d_nhwc", ("nhwc", "depthwise"), "ops.nn.depthwise_conv2d_nhwc(a, b, 1, 1)", "", "F.conv2d(a.permute(0, 3, 1, 2), b.permute(2, 3, 0, 1), padding=1, groups=16).permute(0, 2, 3, 1).contiguous()"),
    ("nn.conv3d_ncdhw", "hz", "ops.nn.conv3d_ncdhw(a, b, 1, 1)", "", "F.conv3d(a, b, padding=1)"),
    ("nn.conv3d_ndhwc", ("ndhwc", "dhwio"), "ops.nn.conv3d_ndhwc(a, b, 1, 1)", "", "F.conv3d(a.permute(0, 4, 1, 2, 3), b.permute(4, 3, 0, 1, 2), padding=1).permute(0, 2, 3, 4, 1).contiguous()"),
    ("nn.conv1d_transpose", ("e", "iow"), "ops.nn.conv1d_transpose(a, b, 2, 1)", "", "F.conv_transpose1d(a, b, stride=2, padding=1)"),
    ("nn.conv3d_transpose", ("small3d", "z"), "ops.nn.conv3d_transpose(a, b, 2, 1)", "", "F.conv_transpose3d(a, b, stride=2, padding=1)"),
    ("nn.nll_loss", ("logits", "labels"), "ops.nn.nll_loss(a, b)", "", "F.nll_loss(a, b)"),
    ("nn.cross_entropy", ("logits", "labels"), "ops.nn.cross_entropy(a, b)", "", "F.cross_entropy(a, b)"),
    ("nn.scale_shift_nchw", "vDD", "ops.nn.scale_shift_nchw(a, b, c)", "a * b[:, None, None] + c[:, None, None]", "a * b[:, None, None] + c[:, None, None]"),
    ("nn.scale_shift_nhwc", ("nhwc", "D", "D"), "ops.nn.scale_shift_nhwc(a, b, c)", "a * b + c", "a * b + c"),
    ("nn.requantize", ("i",), "ops.nn.requantize(a, 0.1, 3, 0.2, 5)", "", "torch.clamp(torch.round((a.float() - 3) * 0.5) + 5, -128, 127).to(torch.int8)"),
    ("nn.simulated_quantize", "x", "ops.nn.simulated_quantize(a, 'int8', 0.1, 3)", "", "torch.clamp(torch.round(a / 0.1) + 3, -128, 127)"),
    ("nn.simulated_dequantize", "x", "ops.nn.simulated_dequantize(a, 'int8', 0.1, 3)", "", "(a - 3) * 0.1"),
    ("nn.fake_quantize", "x", "ops.nn.fake_quantize(a, 0.1, 3)", "", "torch.fake_quantize_per_tensor_affine(a, 0.1, 3, -128, 127)"),
    ("nn.rnn", ("steps64", "ih", "hh"), "ops.nn.rnn(a, b, c)", "", "torch.rnn_tanh(a, torch.zeros(1, 16, 64), [b, c], False, 1, 0.0, False, False, False)[0]"),
    ("nn.gru", ("steps64", "ih3", "hh3"), "ops.nn.gru(a, b, c, linear_before_reset=True)", "", "torch.gru(a, torch.zeros(1, 16, 64), [b, c], False, 1, 0.0, False, False, False)[0]"),
    ("nn.lstm", ("steps64", "ih4", "hh4"), "ops.nn.lstm(a, b, c)", "", "torch.lstm(a, [torch.zeros(1, 16, 64)] * 2, [b, c], False, 1, 0.0, False, False, False)[0]"),
    ("nn.dilate", ("half",), "ops.nn.dilate(a, (1, 2))", "np.copyto(np.zeros((N, N - 1), 'float32')[:, ::2], a)", "torch.zeros(N, N - 1)[:, ::2].copy_(a)"),
    ("image.resize1d", ("ncw",), "ops.image.resize1d(a, None, 1536 * 8)", "", "F.interpolate(a, 1536 * 8, mode='linear')"),
    ("image.resize3d", "h", "ops.image.resize3d(a, None, (24, 96, 96))", "", "F.interpolate(a, (24, 96, 96), mode='trilinear')"),
    ("image.affine_grid", ("theta",), "ops.image.affine_grid(a, (512, 1024))", "", "F.affine_grid(a, (1, 1, 512, 1024), align_corners=True)"),
    ("image.dilation2d_nchw", ("v", "structure"), "ops.image.dilation2d_nchw(a, b, 1, 0, (1, 1))", "", "torch.stack([a[:, :, i : i + 254, j : j + 254] + b[:, i, j, None, None] for i in range(3) for j in range(3)]).amax(0)"),
    ("image.dilation2d_nhwc", ("nhwc", "structure_last"), "ops.image.dilation2d_nhwc(a, b, 1, 0, (1, 1))", "", "torch.stack([a[:, i : i + 254, j : j + 254] + b[i, j] for i in range(3) for j in range(3)]).amax(0)"),
    ("nonzero", "f", "ops.nonzero(a)", "np.nonzero(a)", "torch.nonzero(a)"),
    ("argwhere", "f", "ops.argwhere((N * N, 2), a)", "np.argwhere(a)", "torch.argwhere(a)"),
    ("unique", ("many",), "ops.unique(a, True, True)", "np.unique(a, True, True, True)", ""),
    ("dft", ("signals", "signals"), "ops.dft(a, b)", "(lambda c: (c.real.copy(), c.imag.copy()))(np.fft.fft(a + 1j * b))", "(lambda c: (c.real.contiguous(), c.imag.contiguous()))(torch.fft.fft(torch.complex(a, b)))"),
    ("stft", ("signal", "window"), "ops.stft(a, 64, 32, 64, b, False, True)", "", "torch.view_as_real(torch.stft(a, 64, 32, 64, b, center=False, onesided=True, return_complex=True).contiguous())"),
    ("scatter_nd", ("x", "places", "y"), "ops.scatter_nd(a, b, c, 'update')", "", "a.index_put((b[0], b[1]), c)"),
    ("index_put", "xppy", "ops.index_put(a, [b, c], d)", "", "a.index_put((b, c), d)"),
    ("sparse_to_dense", ("pairs", "sparse_values"), "ops.sparse_to_dense(a, (N, N), b)", "np.put(np.zeros(N * N, 'float32'), a[:, 0] * N + a[:, 1], b)", "torch.zeros(N, N).index_put_((a[:, 0], a[:, 1]), b)"),
    ("tensordot", "ml", "ops.tensordot(a, b, 1)", "np.tensordot(a, b, 1)", "torch.tensordot(a, b, 1)"),
    ("vision.get_valid_counts", ("boxes",), "ops.vision.get_valid_counts(a, 0.5)", "a[:, a[0, :, 1] > 0.5]", "a[:, a[0, :, 1] > 0.5]"),
]  # fmt: skip


def arrays() -> dict[str, np.ndarray]:
    """The arrays by their letters."""
    rng = np.random.default_rng(0)

    def some(*shape: int) -> np.ndarray:
        return rng.uniform(0.1, 3, shape).astype("float32")

    x = some(N, N)
    made = {
        "x": x,
        "y": some(N, N),
        "s": x / 4,
        "r": some(N),
        "v": x.reshape(1, 16, 256, 256),
        "w": x.reshape(4, 512, 512),
    }
    made |= {"f": x < 1, "g": made["y"] < 1, "i": (x * 99).astype("int32"), "j": (made["y"] * 99).astype("int32")}
    made |= {"k": rng.integers(0, 8, (N, N), "int32"), "n": rng.integers(-99, 99, (N, N), "int8")}
    made |= {
        "p": rng.permuted(np.tile(np.arange(N), (N, 1)), axis=1),
        "q": rng.permutation(N),
        "m": some(512, 512),
        "l": some(512, 512),
    }
    made |= {"t": some(16, 256, 256), "o": some(1, 8, 256, 64), "e": some(8, 16, 1024), "d": some(32, 16, 3)}
    made |= {"h": some(1, 8, 16, 64, 64), "z": some(8, 8, 3, 3, 3), "A": some(1, 64, 56, 56), "B": some(64, 64, 3, 3)}
    made |= {
        "C": some(16, 1, 3, 3),
        "D": some(16),
        "E": rng.uniform(-1, 1, (1, 2, 128, 128)).astype("float32"),
    }
    return made | _of_layouts(some) | _of_places(rng, some) | _of_boxes(rng)


def _of_layouts(some: Any) -> dict[str, np.ndarray]:
    """Images, weights and sequences."""
    shapes = {
        "images28": (1, 1280, 28, 28), "half": (N, 512), "nhwc": (1, 256, 256, 16), "nhwc4": (4, 128, 128, 16), "ncw": (1, 128, 8192),
        "tokens": (1, 256, 256), "square": (256, 256), "heads": (1, 16, 1024, 64), "angles": (1024, 32),
        "nwc": (8, 1024, 16), "wio": (3, 16, 32), "wio4": (3, 4, 32), "oiw4": (32, 4, 3), "iow": (16, 32, 3),
        "image56": (1, 56, 56, 64), "hwcn": (56, 56, 64, 1), "hwio": (3, 3, 64, 64), "hwio4": (3, 3, 16, 64),
        "oihw4": (64, 16, 3, 3), "nchw16": (1, 4, 56, 56, 16), "weights16": (4, 4, 3, 3, 16, 16),
        "depthwise": (3, 3, 16, 1), "ndhwc": (1, 16, 64, 64, 8), "dhwio": (3, 3, 3, 8, 8), "small3d": (1, 8, 8, 32, 32),
        "structure": (16, 3, 3), "structure_last": (3, 3, 16), "logits": (1024, 1000), "theta": (1, 2, 3),
        "steps64": (64, 16, 64), "ih": (64, 64), "hh": (64, 64), "ih3": (192, 64), "hh3": (192, 64),
        "ih4": (256, 64), "hh4": (256, 64), "signals": (1024, 64), "signal": (8, 16384), "window": (64,),
        "boxes": (1, 16384, 6), "sparse_values": (65536,),
    }  # fmt: skip
    weights = ("square", "ih", "hh", "ih3", "hh3", "ih4", "hh4")  # small, as those of networks: sums stay about 1
    return {name: some(*shape) / (100 if name in weights else 1) for name, shape in shapes.items()}


def _of_places(rng: np.random.Generator, some: Any) -> dict[str, np.ndarray]:
    """Indices."""
    places = rng.integers(0, N, (2, N, N))
    flat = np.sort(rng.choice(N * N, 65536, replace=False))
    return {
        "places": places,
        "pairs": np.stack(np.divmod(flat, N), 1),
        "labels": rng.integers(0, 1000, 1024),
        "many": rng.integers(0, 1000, 65536, "int32"),
        "begin": np.array([1, 2]),
        "end": np.array([1023, 1022]),
        "steps": np.array([1, 2]),
    }


def _of_boxes(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Boxes and regions, of opposite corners."""

    def boxes(count: int, least: float, most: float) -> np.ndarray:
        low = rng.uniform(0, 1 - most, (count, 2))
        return np.concatenate([low, low + rng.uniform(least, most, (count, 2))], 1).astype("float32")

    corners = boxes(N, 0.05, 0.3)
    rois = np.floor(np.concatenate([np.zeros((128, 1)), boxes(128, 0.1, 0.4) * 255], 1)).astype("float32")
    return {
        "corners": corners,
        "crops": boxes(64, 0.1, 0.4),
        "first": np.zeros(64, "int32"),
        "rois": rois,
        "scored": np.concatenate([rng.random((N, 1), "float32"), corners], 1)[None],
        "number": np.array([N], "int32"),
        "numbers": np.arange(N, dtype="int32")[None],
        "moves": rng.uniform(-1, 1, (1, 18, 256, 256)).astype("float32"),
        "oihw": rng.random((16, 16, 3, 3), "float32"),
    }


def line(text: str, count: int, names: dict[str, Any]) -> Any:
    """The function of ``count`` arrays that a line is; None for an empty one."""
    parameters = ", ".join("abcdef"[:count])
    return eval(f"lambda {parameters}: {text}", names) if text else None


def measured(torch: Any) -> list[tuple[str, Any, Any, Any, list[np.ndarray]]]:
    """Of each row its name, the three functions and the arrays."""
    data = arrays()
    names = {
        "peers": vision_peers,
        "np": np,
        "ops": ops,
        "te": te,
        "N": N,
        "torch": torch,
        "F": torch and torch.nn.functional,
    }
    rows = [(n, w, *(f"{m}.{n}({', '.join('abc'[: len(w)])})" for m in ("ops", "np", "torch"))) for n, w in SAME]
    made = []
    for name, letters, *texts in [*rows, *ROWS]:
        functions = [line(t, len(letters), names) for t in texts]
        functions[2] = functions[2] if torch else None
        made.append((name, *functions, [data[c] for c in letters]))
    return made
