"""Convolutions of images in float32, channels last and first, and depthwise ones, with zeros around the image."""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# The dialect calls in annotations: T.Buffer(shape, dtype).
from __future__ import annotations

from dataclasses import dataclass

from ..function import PrimFunc
from ..script import tir as T


@dataclass(frozen=True)
class Layer:
    """A convolution: ``n`` images of ``size`` by ``size`` pixels and ``inputs`` channels to ``outputs`` channels.

    >>> Layer(1, 56, 64, 64, 3).out
    56
    """

    n: int
    size: int
    inputs: int
    outputs: int
    kernel: int = 1
    stride: int = 1

    @property
    def pad(self) -> int:
        """Zeros on each side: as many as keep the size at stride one."""
        return self.kernel // 2

    @property
    def out(self) -> int:
        return (self.size + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def padded(self) -> int:
        """The size of the part of the image, with zeros around it, that the result needs."""
        return (self.out - 1) * self.stride + self.kernel

    @property
    def flops(self) -> int:
        return 2 * self.n * self.out**2 * self.outputs * self.inputs * self.kernel**2


# the convolutions that are most of ResNet-50's work: 3 by 3 in each stage, 1 by 1 before and after it
RESNET50 = (
    Layer(1, 56, 64, 64, 3), Layer(1, 28, 128, 128, 3), Layer(1, 14, 256, 256, 3), Layer(1, 7, 512, 512, 3),
    Layer(1, 56, 64, 256), Layer(1, 56, 256, 64), Layer(1, 28, 512, 128), Layer(1, 14, 256, 1024),
    Layer(1, 14, 1024, 256), Layer(1, 7, 2048, 512), Layer(1, 56, 128, 128, 3, 2),
)  # fmt: skip


def conv2d_nhwc(layer: Layer) -> PrimFunc:
    """C[n, y, x, o] = sum of A[n, y * s + p - pad, x * s + q - pad, c] * W[p, q, c, o], zeros outside of A; float32.

    A (n, size, size, inputs), W (kernel, kernel, inputs, outputs), C (n, out, out, outputs).

    >>> [b.name for b in conv2d_nhwc(Layer(1, 8, 4, 16, 3)).buffers()]
    ['A', 'W', 'C']
    """
    n, size, inputs, outputs = layer.n, layer.size, layer.inputs, layer.outputs
    k, s, pad, out, high = layer.kernel, layer.stride, layer.pad, layer.out, layer.padded

    @T.prim_func
    def conv2d_nhwc(
        A: T.Buffer((n, size, size, inputs), "float32"),
        W: T.Buffer((k, k, inputs, outputs), "float32"),
        C: T.Buffer((n, out, out, outputs), "float32"),
    ):
        padded = T.alloc_buffer((n, high, high, inputs), "float32")
        for b, y, x, c in T.grid(n, high, high, inputs):
            with T.block("pad"):
                vb, vy, vx, vc = T.axis.remap("SSSS", [b, y, x, c])
                padded[vb, vy, vx, vc] = T.if_then_else(
                    vy >= pad and vy < size + pad and vx >= pad and vx < size + pad,
                    A[vb, vy - pad, vx - pad, vc],
                    T.float32(0),
                )
        for b, y, x, o, p, q, c in T.grid(n, out, out, outputs, k, k, inputs):
            with T.block("C"):
                vb, vy, vx, vo, vp, vq, vc = T.axis.remap("SSSSRRR", [b, y, x, o, p, q, c])
                with T.init():
                    C[vb, vy, vx, vo] = T.float32(0)
                C[vb, vy, vx, vo] += padded[vb, vy * s + vp, vx * s + vq, vc] * W[vp, vq, vc, vo]

    return conv2d_nhwc


def conv2d_nchw(layer: Layer) -> PrimFunc:
    """C[n, o, y, x] = sum of A[n, c, y * s + p - pad, x * s + q - pad] * W[o, c, p, q], zeros outside of A; float32.

    A (n, inputs, size, size), W (outputs, inputs, kernel, kernel), C (n, outputs, out, out).

    >>> [b.name for b in conv2d_nchw(Layer(1, 8, 4, 16, 3)).buffers()]
    ['A', 'W', 'C']
    """
    n, size, inputs, outputs = layer.n, layer.size, layer.inputs, layer.outputs
    k, s, pad, out, high = layer.kernel, layer.stride, layer.pad, layer.out, layer.padded

    @T.prim_func
    def conv2d_nchw(
        A: T.Buffer((n, inputs, size, size), "float32"),
        W: T.Buffer((outputs, inputs, k, k), "float32"),
        C: T.Buffer((n, outputs, out, out), "float32"),
    ):
        padded = T.alloc_buffer((n, inputs, high, high), "float32")
        for b, c, y, x in T.grid(n, inputs, high, high):
            with T.block("pad"):
                vb, vc, vy, vx = T.axis.remap("SSSS", [b, c, y, x])
                padded[vb, vc, vy, vx] = T.if_then_else(
                    vy >= pad and vy < size + pad and vx >= pad and vx < size + pad,
                    A[vb, vc, vy - pad, vx - pad],
                    T.float32(0),
                )
        for b, o, y, x, c, p, q in T.grid(n, outputs, out, out, inputs, k, k):
            with T.block("C"):
                vb, vo, vy, vx, vc, vp, vq = T.axis.remap("SSSSRRR", [b, o, y, x, c, p, q])
                with T.init():
                    C[vb, vo, vy, vx] = T.float32(0)
                C[vb, vo, vy, vx] += padded[vb, vc, vy * s + vp, vx * s + vq] * W[vo, vc, vp, vq]

    return conv2d_nchw


def depthwise_nhwc(layer: Layer) -> PrimFunc:
    """C[n, y, x, c] = sum of A[n, y * s + p - pad, x * s + q - pad, c] * W[p, q, c], zeros outside of A; float32.

    A (n, size, size, inputs), W (kernel, kernel, inputs), C (n, out, out, inputs); ``layer.outputs`` is ``inputs``.

    >>> [b.name for b in depthwise_nhwc(Layer(1, 8, 4, 4, 3)).buffers()]
    ['A', 'W', 'C']
    """
    n, size, channels = layer.n, layer.size, layer.inputs
    k, s, pad, out, high = layer.kernel, layer.stride, layer.pad, layer.out, layer.padded

    @T.prim_func
    def depthwise_nhwc(
        A: T.Buffer((n, size, size, channels), "float32"),
        W: T.Buffer((k, k, channels), "float32"),
        C: T.Buffer((n, out, out, channels), "float32"),
    ):
        padded = T.alloc_buffer((n, high, high, channels), "float32")
        for b, y, x, c in T.grid(n, high, high, channels):
            with T.block("pad"):
                vb, vy, vx, vc = T.axis.remap("SSSS", [b, y, x, c])
                padded[vb, vy, vx, vc] = T.if_then_else(
                    vy >= pad and vy < size + pad and vx >= pad and vx < size + pad,
                    A[vb, vy - pad, vx - pad, vc],
                    T.float32(0),
                )
        for b, y, x, c, p, q in T.grid(n, out, out, channels, k, k):
            with T.block("multiply"):
                vb, vy, vx, vc, vp, vq = T.axis.remap("SSSSRR", [b, y, x, c, p, q])
                with T.init():
                    C[vb, vy, vx, vc] = T.float32(0)
                C[vb, vy, vx, vc] += padded[vb, vy * s + vp, vx * s + vq, vc] * W[vp, vq, vc]

    return depthwise_nhwc
