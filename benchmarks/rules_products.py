"""Few rows by a large matrix, one row by quantized weights (decoding), and products of bytes and of short integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tir
from tir import ops, te
from tir.script import tir as T

from .arrays import aligned
from .rules_cases import TARGET, Call, Case, reading, scheduled

N, K, GROUP = 16384, 4096, 32
SIDE = 512  # of the matrices of bytes and of 16 bits


def _random(shape: Sequence[int], dtype: str = "float32") -> np.ndarray:
    rng, made = np.random.default_rng(0), aligned(tuple(shape), dtype)
    if np.dtype(dtype).kind == "f":
        rng.standard_normal(dtype=np.float32, out=made)
    else:
        ends = np.iinfo(dtype)
        made[...] = rng.integers(ends.min, ends.max, tuple(shape), dtype, endpoint=True)
    return made


def _product(x: np.ndarray, w: np.ndarray, *_: Any) -> np.ndarray:
    return x.astype("float64") @ w.astype("float64").T


def rows() -> Iterator[Case]:
    """(rows, 4096) by (4096, 4096) transposed, beside torch."""
    side = 4096
    for count in (1, 2, 4, 8, 16):
        x, w = te.placeholder((count, side), name="x"), te.placeholder((side, side), name="w")
        for name, result in (
            ("nn.dense", ops.nn.dense(x, w)),
            ("matmul, second transposed", ops.matmul(x, w, transp_b=True)),
            ("torch.nn.functional.linear's einsum", _linear(x, w)),
        ):
            yield Case(
                f"{name}, {count} rows",
                1.0,
                te.create_prim_func([x, w, result]),
                lambda count=count: [_random((count, side)), _random((side, side)), aligned((count, side))],
                "torch",
                _torch_linear,
                _product,
            )


def _linear(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, int(x.shape[1])), "k")
    return te.compute((x.shape[0], w.shape[0]), lambda i, j: te.sum(w[j, k] * x[i, k], axis=k), name="y")


def _torch_linear(arrays: list[np.ndarray]) -> Call | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    x, w, out = (torch.from_numpy(a) for a in (*arrays[:2], np.empty_like(arrays[2])))
    return lambda: torch.mm(x, w.t(), out=out)


def decode() -> Iterator[Case]:
    """One row by (16384, 4096) weights of several types, beside reading as many bytes."""
    x = te.placeholder((1, K), name="x")
    yield _decoded("f32", 0.9, [x, te.placeholder((N, K), name="w")], lambda x, w, j, k: w[j, k] * x[0, k])
    narrow = te.placeholder((N, K), "int8", name="w")
    a_row, a_group = te.placeholder((N,), name="s"), te.placeholder((N, K // GROUP), name="s")
    yield _decoded(
        "int8 by row", 0.8, [x, narrow, a_row], lambda x, w, s, j, k: w[j, k].astype("float32") * s[j] * x[0, k]
    )
    yield _decoded(
        f"int8 by {GROUP}",
        0.7,
        [x, narrow, a_group],
        lambda x, w, s, j, k: w[j, k].astype("float32") * s[j, k // GROUP] * x[0, k],
    )
    nibbles = te.placeholder((N, K // 2), "uint8", name="w")
    for order, value in (("neighbours", _neighbour), ("halves", _half)):
        yield _decoded(
            f"int4 by {GROUP}, {order}",
            0.55,
            [x, nibbles, a_group],
            lambda x, w, s, j, k, value=value: value(w, j, k) * s[j, k // GROUP] * x[0, k],
        )


def _neighbour(w: te.Tensor, j: Any, k: Any) -> tir.Expr:
    """The weight ``k`` of two in a byte that are neighbours, the lower four bits first."""
    return ((w[j, k // 2] >> (k % 2 * 4).astype("uint8")) & tir.const(15, "uint8")).astype("float32") - 8.0


def _half(w: te.Tensor, j: Any, k: Any) -> tir.Expr:
    """The weight ``k`` of a group, the first half of which is in the lower four bits of its bytes, the other in the upper."""
    half = GROUP // 2
    byte = w[j, k // GROUP * half + k % half]
    return ((byte >> (k % GROUP // half * 4).astype("uint8")) & tir.const(15, "uint8")).astype("float32") - 8.0


def _decoded(name: str, must: float, inputs: list[te.Tensor], term: Callable[..., tir.Expr]) -> Case:
    k = te.reduce_axis((0, K), "k")
    y = te.compute((1, N), lambda i, j: te.sum(term(*inputs, j, k.var), axis=k), name="y")
    sizes = [tuple(int(n) for n in t.shape) for t in inputs]
    read = sum(int(np.prod(s)) * t.dtype.bytes for s, t in zip(sizes[1:], inputs[1:]))
    return Case(
        name,
        must,
        te.create_prim_func([*inputs, y]),
        lambda: [*(_random(s, str(t.dtype)) for s, t in zip(sizes, inputs)), aligned((1, N))],
        f"reading {read >> 20} MiB",
        reading(read),
        lambda *given: _weights(name, *given[1:]) @ given[0][0].astype("float64"),
        tolerance=1e-3,
    )


def _weights(name: str, w: np.ndarray, s: np.ndarray | None = None) -> np.ndarray:
    """The weights (N, K) that quantized ones stand for."""
    values = w.astype("float32")
    if name.endswith("neighbours"):
        values = np.stack([w & 15, w >> 4], -1).reshape(N, K).astype("float32") - 8
    elif name.endswith("halves"):
        groups = w.reshape(N, -1, GROUP // 2)
        values = np.concatenate([groups & 15, groups >> 4], -1).reshape(N, K).astype("float32") - 8
    if s is not None:
        values = values * np.repeat(s.reshape(N, -1), K // s.reshape(N, -1).shape[1], 1)
    return values.astype("float64")


def bytes() -> Iterator[Case]:  # the section's name
    """512³ of signed bytes, beside unsigned by signed bytes, which one instruction multiplies; and of 16 bits, beside the instruction
    that multiplies half as many, alone in registers."""
    for left, right in (("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8"), ("int16", "int16")):
        yield Case(
            f"{left} by {right}, 512³",
            0.85,
            _square(left, right),
            lambda left=left, right=right: [
                _random((SIDE, SIDE), left),
                _random((SIDE, SIDE), right),
                aligned((SIDE, SIDE), "int32"),
            ],
            "vpdpwssd alone" if left == "int16" else "uint8 by int8",
            _instruction_alone if left == "int16" else _unsigned_by_signed,
            lambda a, b: (a.astype("int64") @ b.astype("int64")).astype("int32").astype("float64"),
            tolerance=0,
        )


def _square(left: str, right: str) -> tir.PrimFunc:
    a, b = te.placeholder((SIDE, SIDE), left, name="a"), te.placeholder((SIDE, SIDE), right, name="b")
    k = te.reduce_axis((0, SIDE), "k")
    return te.create_prim_func([a, b, te.compute(
        (SIDE, SIDE), lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k), name="c"
    )])  # fmt: skip


def _unsigned_by_signed(_: Any) -> Call:
    arrays = [_random((SIDE, SIDE), "uint8"), _random((SIDE, SIDE), "int8"), aligned((SIDE, SIDE), "int32")]
    run = scheduled(_square("uint8", "int8"))
    return lambda: run(*arrays)


@T.prim_func
def _dot_products(a: T.Buffer((16,), "int32"), sums: T.Buffer((24, 16), "int32")):
    """As many of the instruction as 512³ takes (32 products each), on 24 registers of sums."""
    kept = T.alloc_buffer((24, 16), "int32", scope="local")
    for j in T.unroll(24):
        kept[j, T.ramp(0, 1, 16)] = T.broadcast(0, 16)
    for _ in range(SIDE**3 // (32 * 24)):
        for j in T.unroll(24):
            kept[j, T.ramp(0, 1, 16)] = T.call_llvm_pure_intrin(
                "int32x16",
                "llvm.x86.avx512.vpdpwssd.512",
                kept[j, T.ramp(0, 1, 16)],
                a[T.ramp(0, 1, 16)],
                a[T.ramp(0, 1, 16)],
            )
    for j in T.unroll(24):
        sums[j, T.ramp(0, 1, 16)] = kept[j, T.ramp(0, 1, 16)]


def _instruction_alone(_: Any) -> Call | None:
    if not tir.tune.Env.of(TARGET).has("avx512vnni"):
        return None
    run, arrays = (
        tir.build(_dot_products, TARGET)["main"],
        [aligned((16,), "int32"), aligned((24, 16), "int32")],
    )
    return lambda: run(*arrays)
