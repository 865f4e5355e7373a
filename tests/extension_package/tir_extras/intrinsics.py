"""A tensor intrinsic: ``y += a * x`` on four elements, as one vector operation."""

from tir import TensorIntrin
from tir.script import tir as T


@T.prim_func
def axpy_desc(
    X: T.Buffer((4,), "float32", offset_factor=1),
    a: T.Buffer((1,), "float32", offset_factor=1),
    Y: T.Buffer((4,), "float32", offset_factor=1),
):
    with T.block("root"):
        T.reads(X[0:4], a[0], Y[0:4])
        T.writes(Y[0:4])
        for i in range(4):
            with T.block("axpy"):
                vi = T.axis.spatial(4, i)
                Y[vi] = Y[vi] + a[0] * X[vi]


@T.prim_func
def axpy_impl(
    X: T.Buffer((4,), "float32", offset_factor=1),
    a: T.Buffer((1,), "float32", offset_factor=1),
    Y: T.Buffer((4,), "float32", offset_factor=1),
):
    with T.block("root"):
        T.reads(X[0:4], a[0], Y[0:4])
        T.writes(Y[0:4])
        Y[T.ramp(0, 1, 4)] = Y[T.ramp(0, 1, 4)] + T.broadcast(a[0], 4) * X[T.ramp(0, 1, 4)]


TensorIntrin.register("extras.axpy_4", axpy_desc, axpy_impl)
