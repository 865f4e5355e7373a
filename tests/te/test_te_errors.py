"""Wrong uses of tensor expressions: each is an error that says what is wrong, at the user's own line."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.errors import TensorExpressionError

A = te.placeholder((6, 4), name="A")
B = te.placeholder((6,), name="B")
H = te.placeholder((6,), "bfloat16", name="H")
G = te.placeholder((6,), "float16", name="G")
N = te.placeholder((6,), "int32", name="N")
k = te.reduce_axis((0, 4), "k")
n = te.var("n")


def compute(function, shape=(6,)):
    return te.compute(shape, function, name="C")


CASES = {
    "an input called None": (lambda: te.placeholder((3,), name=None), "the name of an input is a string, not None"),
    "a statement called 3": (
        lambda: te.extern((6,), [B], print, name=3),
        "the name of a computation is a string, not 3",
    ),
    "a statement without outputs": (lambda: te.extern([], [B], print, dtype="float32"), "has no outputs"),
    "a head that is a number": (lambda: te.gradient(compute(lambda i: B[i]), [B], 1.0), "is a tensor, not 1.0"),
    "too few parameters": (lambda: compute(lambda i: B[i], (6, 4)), "2 dimensions", "takes 1 (i)"),
    "too many parameters": (lambda: compute(lambda i, j: B[i]), "1 dimension,", "takes 2 (i, j)"),
    "no function": (lambda: compute(3), "function of its indices"),
    "returns nothing": (lambda: compute(lambda i: None), "returns nothing"),
    "returns a string": (lambda: compute(lambda i: "x"), "an element of `C` is a scalar"),
    "returns no value": (lambda: compute(lambda i: ()), "gives no value"),
    "axis outside of a reduction": (lambda: compute(lambda i: A[i, k]), "reduction axis `k` outside"),
    "axis outside beside one": (lambda: compute(lambda i: te.sum(A[i, k], axis=k) + k), "reduction axis `k` outside"),
    "axis in an init": (lambda: compute(lambda i: te.sum(A[i, k], axis=k, init=A[i, k])), "reduction axis `k` outside"),
    "sum without axis": (lambda: compute(lambda i: te.sum(B[i])), "needs the axes it reduces over"),
    "sum over a spatial axis": (lambda: compute(lambda i: te.sum(B[i], axis=[i])), "te.reduce_axis"),
    "sum over an axis of another tensor": (lambda: te.sum(B[0], axis=compute(lambda i: B[i]).op.axis[0]), "spatial"),
    "sum over a dimension by number": (lambda: te.sum(A[0, k], axis=3), "not over 3", "tir.ops.sum"),
    "sum of a tensor by number": (lambda: te.sum(A, axis=0), "not over 0", "te.reduce_axis((0, n))"),
    "sum over the name of an axis": (lambda: te.sum(A[0, k], axis="k"), "not over 'k'"),
    "sum over no axes": (lambda: te.sum(A[0, k], axis=()), "not over ()"),
    "sum with where and no axis": (lambda: te.sum(A[0, k], where=k < 3), "needs the axes it reduces over"),
    "maximum with init and no axis": (lambda: te.max(A[0, k], 0.0, init=1.0), "needs the axes it reduces over"),
    "sum given where twice": (lambda: te.sum(A[0, k], k, k < 3, where=k < 2), "`where` is given twice"),
    "sum of too many arguments": (lambda: te.sum(A[0, k], k, None, None, 3), "5 arguments are given"),
    "axis of a float bound": (lambda: te.reduce_axis((0, 2.5)), "is an integer, not 2.5"),
    "axis of one bound": (lambda: te.reduce_axis((8,)), "(begin, end), not (8,)"),
    "axis that ends before it begins": (lambda: te.reduce_axis((8, 0)), "ends at 0, before its begin 8"),
    "threads of a negative number": (lambda: te.thread_axis((0, -4), "threadIdx.x"), "ends at -4"),
    "a function of Python's numbers": (lambda: compute(lambda i: math.exp(B[i])), "te.exp"),
    "an if of Python": (lambda: compute(lambda i: B[i] if i > 3 else 0.0), "Python cannot branch on it"),
    "an and of Python": (lambda: compute(lambda i: te.if_then_else(i > 3 and i < 5, 1.0, 0.0)), "cannot branch on it"),
    "a condition that is a float": (
        lambda: compute(lambda i: te.if_then_else(B[i], 1.0, 0.0)),
        "a condition must be bool",
    ),
    "an index that is text": (lambda: compute(lambda i: A["i", 0]), "an integer, not 'i'"),
    "a tensor as a shape": (lambda: te.compute(A, lambda i: i), "is used as a scalar"),
    "no shape": (lambda: te.compute(lambda i: i, (3,)), "extent 0 of `compute` is an integer"),
    "an array as an operand": (lambda: ops.add(np.ones((3,)), B), "a tensor or a number", "te.placeholder"),
    "a new size of 0": (lambda: ops.image.resize2d(te.placeholder((1, 1, 4, 4)), None, (0, 4)), "at least 1"),
    "no operand for a product": (lambda: ops.nn.matmul(A, te.placeholder((3, 5))), "4", "3"),
    "an axis that is not there": (lambda: ops.sum(A, axis=5), "from -2 to 1"),
    "an axis that is a float": (lambda: ops.sum(A, axis=1.0), "an integer, not 1.0"),
    "a wrong number of elements": (lambda: ops.reshape(A, (3, 5)), "24 elements, but (3, 5) has 15"),
    "two open extents": (lambda: ops.reshape(A, (-1, -1)), "one -1 at most"),
    "no order of axes": (lambda: ops.transpose(A, (0, 0)), "each axis once"),
    "nothing joined": (lambda: ops.concatenate([], 0), "no tensor"),
    "parts of other sizes": (lambda: ops.split(A, 5, 0), "5 parts of one size"),
    "indices that are floats": (lambda: ops.take(A, B, axis=0), "has integers, not float32"),
    "a misspelt word": (lambda: ops.nn.pool2d(te.placeholder((1, 1, 4, 4)), 2, 2, 1, 0, "mean"), "'max', 'avg'"),
    "a stride of 0": (
        lambda: ops.nn.conv2d(te.placeholder((1, 1, 4, 4)), te.placeholder((1, 1, 1, 1)), 0),
        "at least 1",
    ),
    "labels of no tensor": (lambda: ops.einsum("ij,jk->il", A, te.placeholder((4, 2))), "a label that no tensor has"),
    "more than there are": (lambda: ops.topk(A, 99), "4 elements along axis 1, not 99"),
    "an extent that is not 1": (lambda: ops.squeeze(A, 0), "extent 6"),
    "a keyword of another library": (lambda: ops.sum(A, dim=1), "'dim'", "sum(x, axis=None"),
    "an operand that is missing": (lambda: ops.add(A), "'y'", "add(x, y)"),
    "a mask that is no bool": (lambda: ops.where(A, A, A), "takes bool"),
    "sum over an axis twice": (lambda: te.sum(A[0, k], axis=[k, k]), "twice"),
    "inits of another type": (lambda: te.sum(A[0, k], axis=k, init=te.const(0, "int32")), "starts from int32"),
    "too many inits": (lambda: te.sum(A[0, k], axis=k, init=[0.0, 1.0]), "2 initial values"),
    "combiner of another type": (
        lambda: te.comm_reducer(lambda x, y: x.astype("float64") + y, lambda t: te.const(0, t))(A[0, k], axis=k),
        "combines two values to float64 where float32",
    ),
    "combiner of another number": (
        lambda: te.comm_reducer(lambda x, y: (x, y), lambda t: te.const(0, t))(A[0, k], axis=k),
        "2 values, but 1 are reduced",
    ),
    "identity of another type": (
        lambda: te.comm_reducer(lambda x, y: x + y, lambda t: te.const(0, "int32"))(A[0, k], axis=k),
        "the identity of te.reduce is int32 where float32",
    ),
    "combiner of one value": (lambda: te.comm_reducer(lambda x: x, lambda t: te.const(0, t)), "takes two"),
    "two small floats": (lambda: compute(lambda i: H[i] * G[i]), "bfloat16 and float16"),
    "text among operands": (lambda: compute(lambda i: N[i] + "1"), "`+` takes expressions and numbers, not '1'"),
    "division of integers": (lambda: compute(lambda i: N[i] / 2), "ambiguous"),
    "float with integers": (lambda: compute(lambda i: N[i] + 0.5), "mixes int32"),
    "division by zero": (lambda: compute(lambda i: N[i] // 0), "zero"),
    "wrong rank": (lambda: compute(lambda i: A[i]), "`A` has 2 dimensions (6, 4), but is indexed with 1"),
    "wrong rank in an expression": (lambda: compute(lambda i: A[i] + 1.0), "2 dimensions (6, 4)"),
    "wrong rank on the right": (lambda: compute(lambda i: B[i] + A[i]), "2 dimensions (6, 4)"),
    "wrong rank of a call": (lambda: compute(lambda i: A(i)), "indexed with 1"),
    "too many indices": (lambda: compute(lambda i: B[i, 0]), "`B` has 1 dimension (6,), but is indexed with 2"),
    "a float index": (lambda: compute(lambda i: B[1.5]), "an index of `B` is an integer"),
    "a tensor as an index": (lambda: compute(lambda i: B[N]), "tensor `N` of shape (6,) is used as a scalar"),
    "a slice": (lambda: compute(lambda i: B[0:2]), "read by element"),
    "a tensor as a scalar": (lambda: compute(lambda i: B), "tensor `B` of shape (6,) is used as a scalar"),
    "a tensor in an expression": (lambda: compute(lambda i: B[i] + B), "used as a scalar"),
    "a tensor on the left": (lambda: compute(lambda i: B + B[i]), "used as a scalar"),
    "a tensor in a function": (lambda: compute(lambda i: te.exp(B)), "tensor `B` of shape (6,) is used as a scalar"),
    "a 0-d tensor in an expression": (lambda: compute(lambda i: te.placeholder((), name="x") + 1.0), "add[()]"),
    "a tensor in a condition": (lambda: compute(lambda i: B[i] if B > 0 else 0.0), "used as a scalar"),
    "a condition in Python": (lambda: compute(lambda i: B[i] if i > 2 else 0.0), "is not known while"),
    "a chain of comparisons": (lambda: compute(lambda i: te.if_then_else(0 < i < 4, B[i], 0.0)), "is not known while"),
    "iteration over a tensor": (lambda: list(B), "cannot be iterated"),
    "a float extent": (lambda: te.placeholder((2.5,), name="P"), "extent 0 of `P` is an integer"),
    "a float extent of a result": (lambda: compute(lambda i: B[i], (6.5,)), "extent 0 of `C` is an integer"),
    "a negative extent": (lambda: te.placeholder((-1,), name="P"), "extent 0 of `P` is -1"),
    "a tensor as an extent": (lambda: te.placeholder((B,), name="P"), "used as a scalar"),
    "an unknown type": (lambda: te.placeholder((2,), "float31"), "float31"),
    "a domain of three": (lambda: te.reduce_axis((0, 1, 2)), "(begin, end)"),
    "a float domain": (lambda: te.reduce_axis((0, 1.5)), "a bound of an axis is an integer"),
    "a thread axis without a tag": (lambda: te.thread_axis((0, 4)), "has a tag"),
    "an input that is missing": (
        lambda: te.create_prim_func([compute(lambda i: B[i])]),
        "input `B`, which `C` reads, is not among the arguments (C)",
        "te.create_prim_func([B, C])",
    ),
    "a scalar that is missing": (lambda: te.create_prim_func([B, compute(lambda i: B[i] * n)]), "variable `n`"),
    "a size that is missing": (lambda: te.create_prim_func([compute(lambda i: i, (n + 1,))]), "variable `n`"),
    "an argument twice": (lambda: te.create_prim_func([B, B, compute(lambda i: B[i])]), "`B` is twice"),
    "an argument that is no tensor": (lambda: te.create_prim_func([B, 3]), "not 3"),
    "an operation as an argument": (
        lambda: te.create_prim_func([B, compute(lambda i: B[i]).op]),
        "a tensor or a te.var",
    ),
    "a slice as an argument": (lambda: te.create_prim_func([A[0]]), "a slice of a tensor"),
    "no arguments": (lambda: te.create_prim_func([]), "no tensors"),
    "a reduction in an extent": (
        lambda: compute(lambda i: te.sum(B[(j := te.reduce_axis((0, te.max(N[k], axis=k)), "j"))], axis=j)),
        "an extent of an axis of `C` is a reduction",
    ),
    "an inner reduction over data": (
        lambda: compute(lambda i: te.sum(te.sum(A[(j := te.reduce_axis((0, N[i]), "j")), k], axis=k), axis=j)),
        "whose extent depends on data",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_use_is_an_error(name):
    call, *words = CASES[name]
    with pytest.raises(TensorExpressionError) as caught:
        call()
    text = str(caught.value)
    for word in words:
        assert word in text, text
    assert isinstance(caught.value, tir.TirError)
    assert caught.value.place.filename == __file__, text
    assert f"{__file__}:{caught.value.place.line}: " in text


def test_error_names_the_line_in_a_function_of_several():
    def formula(i):
        first = B[i] * 2.0
        return A[i] + first

    with pytest.raises(TensorExpressionError) as caught:
        compute(formula)
    assert "return A[i] + first" in str(caught.value)


def test_errors_of_the_users_own_code_pass_through():
    def formula(i):
        return B[i] * undefined_name  # noqa: F821

    with pytest.raises(NameError):
        compute(formula)
    with pytest.raises(ValueError, match="my own"):
        compute(lambda i: (_ for _ in ()).throw(ValueError("my own")))


def test_missing_scalar_names_the_line_of_the_computation():
    C = compute(lambda i: B[i] * n.astype("float32"))
    with pytest.raises(TensorExpressionError) as caught:
        te.create_prim_func([B, C])
    assert "C = compute(lambda i" in str(caught.value) or "te.compute(shape, function" in str(caught.value)


def test_nothing_can_be_changed():
    C = compute(lambda i: B[i])
    with pytest.raises(AttributeError):
        C.op.name = "D"
    with pytest.raises(AttributeError):
        C.op = None
