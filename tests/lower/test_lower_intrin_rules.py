"""Rules of users for operators, in the spelling of TVM's tutorial on intrinsics."""

from __future__ import annotations

import numpy as np
import pytest

import tir
import tir as tvm
from tir import intrin_rules, te


@pytest.fixture(autouse=True)
def no_rules_are_left(monkeypatch):
    monkeypatch.setattr(intrin_rules, "_rules", {})
    before = set(tir.op.OPS)
    yield
    for name in set(tir.op.OPS) - before:
        del tir.op.OPS[name]


def my_cuda_math_rule(op):
    assert isinstance(op, tvm.tir.Call)
    name = op.op.name
    assert name.startswith("tir.")
    dispatch_name = name[4:]
    if op.dtype == "float32":
        return tvm.tir.call_pure_extern("float32", f"__{dispatch_name}f", op.args[0])
    return op


def exponential(dtype="float32"):
    A = te.placeholder((64,), dtype, name="A")
    B = te.compute(A.shape, lambda i: te.exp(A[i]), name="B")
    s = te.create_schedule(B.op)
    bx, tx = s[B].split(B.op.axis[0], factor=32)
    s[B].bind(bx, te.thread_axis("blockIdx.x"))
    s[B].bind(tx, te.thread_axis("threadIdx.x"))
    return s, [A, B]


def test_rule_for_an_operator_on_cuda():
    assert "__expf" not in tvm.build(*exponential(), target="cuda").get_source()
    tvm.target.register_intrin_rule("cuda", "exp", my_cuda_math_rule, override=True)
    assert "__expf(" in tvm.build(*exponential(), target="cuda").get_source()
    assert "__exp" not in tvm.build(*exponential("float64"), target="cuda").get_source()  # the rule gave the call back


def mylog(x):
    return tvm.tir.call_intrin(x.dtype, "tir.mylog", x)


def test_operator_of_ones_own():
    tvm.ir.register_op_attr("tir.mylog", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
    tvm.ir.register_intrin_lowering("tir.mylog", target="llvm", f=lambda op: tvm.tir.log(op.args[0]) * 2.0, level=99)
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute(A.shape, lambda i: mylog(A[i]), name="B")
    a, b = np.linspace(1, 2, 5, dtype="float32"), np.zeros(5, "float32")
    tvm.build(te.create_schedule(B.op), [A, B], "llvm")(a, b)
    np.testing.assert_allclose(b, 2 * np.log(a), rtol=1e-6)


def test_the_higher_level_is_taken_and_twice_the_same_refused():
    lower = tvm.ir.register_intrin_lowering
    lower("tir.exp", "llvm", lambda op: op.args[0], level=20)
    lower("tir.exp", "llvm", lambda op: op.args[0] + 1.0, level=10)
    A = te.placeholder((2,), name="A")
    B = te.compute(A.shape, lambda i: te.exp(A[i]), name="B")
    a, b = np.array([3, 4], "float32"), np.zeros(2, "float32")
    tvm.build(te.create_schedule(B.op), [A, B], "llvm")(a, b)
    np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="already: register it with override=True"):
        lower("tir.exp", "llvm", lambda op: op, level=20)


def test_wrong_rules_are_errors():
    with pytest.raises(ValueError, match="unknown operator 'expp'"):
        tvm.target.register_intrin_rule("cuda", "expp", my_cuda_math_rule)
    with pytest.raises(ValueError, match="TCallEffectKind is one of"):
        tvm.ir.register_op_attr("tir.mylog", "TVectorizable", True)
    with pytest.raises(ValueError, match="has the effect pure"):
        tvm.ir.register_op_attr("tir.exp", "TCallEffectKind", tvm.tir.CallEffectKind.Opaque)
    tvm.target.register_intrin_rule("llvm", "exp", lambda op: tvm.tir.const(1, "int32"))
    A = te.placeholder((2,), name="A")
    B = te.compute(A.shape, lambda i: te.exp(A[i]), name="B")
    with pytest.raises(tir.errors.BuildError, match="gives int32 for a call of type float32"):
        tvm.build(te.create_schedule(B.op), [A, B], "llvm")
