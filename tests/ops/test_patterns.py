"""The fusion pattern of operators, computed from their functions, and of programs written by hand."""

from __future__ import annotations

import pytest

from tir import ops, te
from tir.script import parse
from tir.te import Pattern, pattern

X = te.placeholder((6, 4), name="X")
Y = te.placeholder((4,), name="Y")
N = te.var("n")
S = te.placeholder((N, 4), name="S")
K = te.placeholder((4, 6), name="K")
INDEX = te.placeholder((3,), "int64", name="INDEX")
IMAGE = te.placeholder((1, 3, 8, 8), name="IMAGE")
WEIGHT = te.placeholder((5, 3, 3, 3), name="WEIGHT")

EXPECTED = {
    "elementwise": [
        lambda: ops.exp(X), lambda: ops.exp(S), lambda: ops.add(X, X), lambda: ops.add(X, 1.0), lambda: ops.clip(X, 0, 6),
        lambda: ops.astype(X, "int8"), lambda: ops.where(ops.greater(X, 0), X, 0), lambda: ops.full_like(X, 1),
        lambda: ops.add_n([X, X, X]), lambda: ops.nn.relu(X),
    ],
    "broadcast": [
        lambda: ops.add(X, Y), lambda: ops.add(Y, S), lambda: ops.multiply(te.placeholder((6, 1)), Y),
        lambda: ops.expand_dims(Y, 0), lambda: ops.broadcast_to(Y, (6, 4)), lambda: ops.nn.relu(ops.add(X, Y)),
    ],
    "injective": [
        lambda: ops.transpose(X), lambda: ops.reshape(X, (8, 3)), lambda: ops.flip(X, 0), lambda: ops.take(X, INDEX, axis=0),
        lambda: ops.concatenate([X, X], axis=0), lambda: ops.strided_slice(X, [1, 0], [5, 2], [2, 1]),
        lambda: ops.exp(ops.transpose(ops.add(X, Y))), lambda: ops.tile(X, (2, 1)),
        lambda: te.compute((3, 4), lambda i, j: X[i, j], name="rows"),
    ],
    "reduction": [
        lambda: ops.sum(X), lambda: ops.sum(S, axis=0), lambda: ops.max(X, axis=-1, keepdims=True), lambda: ops.mean(X, axis=0),
        lambda: ops.argmax(X, axis=1), lambda: ops.all(te.placeholder((6, 4), "bool")), lambda: ops.sqrt(ops.sum(ops.square(X))),
        lambda: ops.sum(ops.transpose(X), axis=0), lambda: ops.prod(te.placeholder((6,), "float16")),
    ],
    "out_fusable": [
        lambda: ops.nn.matmul(X, K), lambda: ops.nn.conv2d(IMAGE, WEIGHT), lambda: ops.nn.softmax(X), lambda: ops.var(X),
        lambda: ops.logsumexp(X, axis=1), lambda: ops.nn.relu(ops.nn.conv2d(IMAGE, WEIGHT)),
        lambda: ops.subtract(X, ops.mean(X, axis=1, keepdims=True)), lambda: ops.nn.layer_norm(X, Y, Y, 1),
        lambda: te.compute((6,), lambda i: te.sum(X[i, k] * Y[k], axis=k), name="matvec"),
    ],
    "opaque": [lambda: ops.cumsum(X, axis=0), lambda: ops.cumprod(Y), lambda: ops.exp(ops.cumsum(Y))],
}  # fmt: skip
k = te.reduce_axis((0, 4), "k")
CASES = [(name, made) for name, some in EXPECTED.items() for made in some]


@pytest.mark.parametrize("name, made", CASES, ids=range(len(CASES)))
def test_of_operators(name, made):
    assert ops.pattern(made()) is Pattern[name.upper()], ops.function_of(made()).script()


PROGRAMS = {
    "a store at a place that data says": ("OPAQUE", "C[I[vi]] = A[vi]"),
    "what one iteration leaves to the next": ("OPAQUE", "C[vi] = A[vi] + C[vi - 1]"),
    "a call": ("OPAQUE", 'C[vi] = T.call_extern("float32", "f", A[vi])'),
    "a store under a condition": ("OPAQUE", "if A[vi] > 0.0:\n                C[vi] = A[vi]"),
    "elements in another order": ("INJECTIVE", "C[vi] = A[7 - vi]"),
    "its own element": ("ELEMENTWISE", "C[vi] = A[vi] * A[vi]"),
    "one element for all": ("INJECTIVE", "C[vi] = A[3]"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_of_programs(name):
    expected, body = PROGRAMS[name]
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            {body}
""")
    assert pattern(func) is Pattern[expected]


def test_stores_outside_of_blocks_are_opaque():
    func = parse("""
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = 1.0
""")
    assert pattern(func) is Pattern.OPAQUE


# ---------------------------------------------------------------- programs that no operator is

A, B = te.placeholder((6, 4), name="A"), te.placeholder((4,), name="B")
U, V = te.placeholder((6,), name="U"), te.placeholder((8,), name="V")
C, PLACES = te.placeholder((4, 6), name="C"), te.placeholder((6,), "int32", name="PLACES")
R4, R6, R3 = (te.reduce_axis((0, n), f"k{n}") for n in (4, 6, 3))
LEAST = te.comm_reducer(
    lambda x, y: (te.if_then_else(x[1] <= y[1], x[0], y[0]), te.if_then_else(x[1] <= y[1], x[1], y[1])),
    lambda place, value: (te.const(-1, place), te.max_value(value)),
    name="least",
)


def after(step: te.Tensor, shape: tuple[int, ...], formula) -> te.Tensor:
    """A second step, that reads the first."""
    return te.compute(shape, lambda *i: formula(step, *i), name="after")


def recurrence() -> te.Tensor:
    state = te.placeholder((5, 4), name="state")
    first = te.compute((1, 4), lambda _, i: B[i], name="first")
    step = te.compute((5, 4), lambda t, i: state[t - 1, i] + 1.0, name="step")
    return te.scan(first, step, state, name="states")


ROW_SUMS = te.compute((6,), lambda i: te.sum(A[i, R4], axis=R4), name="row_sums")
COMPUTED = {
    "a polynomial": ("ELEMENTWISE", (6, 4), lambda i, j: A[i, j] * A[i, j] * 2.0 + 1.0),
    "an element chosen by its index": ("ELEMENTWISE", (6, 4), lambda i, j: te.if_then_else(i < j, A[i, j], 0.0)),
    "the index": ("ELEMENTWISE", (6,), lambda i: i.astype("float32")),
    "a row to each": ("BROADCAST", (6, 4), lambda i, j: A[i, j] + B[j]),
    "an outer product": ("BROADCAST", (6, 4), lambda i, j: U[i] * B[j]),
    "a matrix repeated": ("BROADCAST", (3, 6, 4), lambda k, i, j: A[i, j]),
    "a shift": ("INJECTIVE", (7,), lambda i: V[i + 1]),
    "neighbours": ("INJECTIVE", (6,), lambda i: V[i] + V[i + 1] + V[i + 2]),
    "every second": ("INJECTIVE", (4,), lambda i: V[i * 2]),
    "a diagonal": ("INJECTIVE", (4,), lambda i: A[i, i]),
    "digits of the index": ("INJECTIVE", (24,), lambda i: A[i // 4, i % 4]),
    "a gather": ("INJECTIVE", (6,), lambda i: V[PLACES[i]]),
    "a padded row": ("INJECTIVE", (10,), lambda i: te.if_then_else(te.all(i > 0, i < 9), V[i - 1], 0.0)),
    "sums of rows": ("REDUCTION", (6,), lambda i: te.sum(A[i, R4], axis=R4)),
    "greatest squares": ("REDUCTION", (4,), lambda j: te.max(A[R6, j] * A[R6, j], axis=R6)),
    "places of the least": ("REDUCTION", (6,), lambda i: LEAST((R4.var, A[i, R4]), axis=R4)),
    "a product of matrices": ("OUT_FUSABLE", (6, 6), lambda i, j: te.sum(A[i, R4] * C[R4, j], axis=R4)),
    "sums of windows": ("OUT_FUSABLE", (6,), lambda i: te.sum(V[i + R3], axis=R3)),
    "rows by their sums": ("OUT_FUSABLE", (6, 4), lambda i, j: A[i, j] / ROW_SUMS[i]),
    "a sum of sums": ("OUT_FUSABLE", (1,), lambda z: te.sum(ROW_SUMS[R6], axis=R6)),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_of_computed_tensors(name):
    expected, shape, formula = COMPUTED[name]
    made = te.compute(shape, formula, name="out")
    assert ops.pattern(made[0] if isinstance(made, (list, tuple)) else made) is Pattern[expected]


def test_of_several_steps():
    shifted = te.compute((6, 4), lambda i, j: A[i, j] - 1.0, name="shifted")
    assert ops.pattern(after(shifted, (6, 4), lambda t, i, j: te.exp(t[i, j]) + A[i, j])) is Pattern.ELEMENTWISE
    assert ops.pattern(after(shifted, (4, 6), lambda t, i, j: t[j, i])) is Pattern.INJECTIVE
    assert ops.pattern(after(ROW_SUMS, (6,), lambda t, i: te.sqrt(t[i]))) is Pattern.REDUCTION
    assert ops.pattern(recurrence()) is Pattern.OPAQUE
