"""Tensors of torch and JAX: in place where they may be, refused with words where not. Skipped where they are not installed."""

from __future__ import annotations

import numpy as np
import pytest
from foreign_tensors import copy_program

import tir
from tir.errors import RunError
from tir.interp.numbers import array_dtype
from tir.script import parse

ENGINES = ("interpreter", "llvm")
SMALL = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
OTHERS = ("float16", "float32", "float64", "int8", "uint16", "int64", "bool")


def torch():
    return pytest.importorskip("torch", reason="torch is not installed: tensors of another library")


def copy(engine: str, dtype: str = "float32"):
    return tir.build(copy_program(dtype), engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*SMALL, *OTHERS])
def test_tensors_are_read_and_written_in_place(engine, name):
    t = torch()
    a = t.tensor([1.0, 2, 0, 1]).to(getattr(t, name))
    b = t.zeros(4, dtype=a.dtype)
    address = b.data_ptr()
    for _ in range(3):  # also by the fast path of calls alike
        copy(engine, name)(a, b)
    assert b.data_ptr() == address and t.equal(a.view(t.uint8), b.view(t.uint8))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*SMALL, *OTHERS])
def test_new_results_of_tensors_are_tensors(engine, name):
    t = torch()
    a = t.tensor([1.0, 2, 0, 1]).to(getattr(t, name))
    made = copy(engine, name).new(a)
    assert isinstance(made, t.Tensor) and made.dtype == a.dtype and t.equal(made.view(t.uint8), a.view(t.uint8))
    assert isinstance(copy(engine, name).new(made.view(t.uint8).numpy().view(array_dtype(tir.DType(name)))), np.ndarray)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_refused_is_refused_with_words(engine):
    t = torch()
    module, a, b = copy(engine), t.arange(8.0), t.zeros(8)
    cases = [
        (t.arange(16.0)[::2], b, r"argument 1 `A` .*expected a compact row-major array, strides \(1,\), got \(2,\)"),
        (a, t.zeros(16)[::2], r"argument 2 `B` .*strides \(1,\), got \(2,\)"),
        (t.tensor(1.0).expand(8), b, r"strides \(1,\), got \(0,\)"),
        (a.clone().requires_grad_(), b, r"argument 1 `A` .*use tensor.detach\(\)"),
        (a, t.zeros(8, requires_grad=True), r"argument 2 `B` .*use tensor.detach\(\)"),
        (a, t.zeros(8, device="meta"), "argument 2 `B` .*device type meta"),
        (a.double(), b, "expected dtype float32, got float64"),
        (a.bfloat16(), b, "expected dtype float32, got bfloat16"),
        (a.to(t.complex64), b, "expected dtype float32, got complex64"),
        (a.reshape(2, 4), b, "expected 1 dimension"),
        (a.to_sparse(), b, "argument 1 `A` .*layout other than torch.strided"),
        (t.zeros(8, dtype=t.uint8).view(t.float4_e2m1fn_x2), b, "float4_e2m1fn in 2 lanes; give it as its bytes"),
    ]
    for left, right, says in cases:
        with pytest.raises(RunError, match=says):
            module(left, right)
    module(a.clone().requires_grad_().detach(), b)
    assert t.equal(a, b)


@pytest.mark.parametrize("engine", ENGINES)
def test_tensors_of_no_elements_and_of_no_dimensions(engine):
    t = torch()
    for name in ("float32", "bfloat16"):
        copy(engine, name)(t.zeros(0, dtype=getattr(t, name)), t.zeros(0, dtype=getattr(t, name)))
    scale = tir.build(
        parse("""
@T.prim_func
def scale(A: T.Buffer((), "float32"), B: T.Buffer((), "float32"), k: T.float32):
    B[()] = A[()] * k
"""),
        engine,
    )
    a, b = t.tensor(3.0), t.tensor(0.0)
    scale(a, b, t.tensor(2.0))
    assert b.item() == 6


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn", "float8_e4m3b11fnuz", "int8", "bool"])
def test_arrays_of_jax_are_read_and_never_written(engine, name):
    jax = pytest.importorskip("jax", reason="jax is not installed: arrays of another library")
    a, b = jax.numpy.array([1, 0, 1, 1]).astype(name), jax.numpy.zeros(4, name)
    module = copy(engine, name)
    for _ in range(3):
        with pytest.raises(RunError, match="argument 2 `B` of copy.*read-only"):
            module(a, b)
    assert not np.asarray(b).astype(bool).any()
    back = jax.numpy.asarray(module.new(a))
    assert back.dtype == a.dtype and back.tolist() == a.tolist()
