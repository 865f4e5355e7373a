"""``te.scan``: recurrences over one state and several, in one step and several, and what may be done with their loops."""

from __future__ import annotations

import numpy as np
import pytest
from te_oracle import judge

import tir
from tir import te
from tir.errors import TensorExpressionError


def cumulative(rows=6, columns=4, dtype="float32"):
    X = te.placeholder((rows, columns), dtype, name="X")
    state = te.placeholder((rows, columns), dtype, name="state")
    init = te.compute((1, columns), lambda t, i: X[0, i], name="s_init")
    update = te.compute((rows, columns), lambda t, i: state[t - 1, i] + X[t, i], name="s_update")
    return X, te.scan(init, update, state, inputs=[X], name="sums")


def test_cumulative_sum():
    X, sums = cumulative()
    judge([X, sums])
    x = np.random.default_rng(3).standard_normal((6, 4)).astype("float32")
    out = np.zeros_like(x)
    tir.build(te.create_prim_func([X, sums]), "llvm")(x, out)
    np.testing.assert_allclose(out, np.cumsum(x, axis=0), rtol=1e-5)
    assert sums.op.scan_axis.dom.min.value == 1 and sums.op.states[0].name == "state"


def test_symbolic_sizes_and_integers():
    m, n = te.var("m"), te.var("n")
    judge([*cumulative(m, n)])
    judge([*cumulative(5, 3, "int32")])


def test_what_is_read_of_the_result():
    X, sums = cumulative()
    judge([X, te.compute((6, 4), lambda t, i: sums[5 - t, i] * 2.0, name="Y")])
    judge([X, sums, te.compute((4,), lambda i: sums[5, i], name="last")])


def test_several_steps():
    X = te.placeholder((6, 4), name="X")
    state = te.placeholder((6, 4), name="state")
    init = te.compute((1, 4), lambda _, i: X[0, i], name="init")
    doubled = te.compute((6, 4), lambda t, i: state[t - 1, i] * 0.5, name="doubled")
    update = te.compute((6, 4), lambda t, i: doubled[t, i] + X[t, i], name="update")
    judge([X, te.scan(init, update, state, inputs=[X], name="filtered")])


def test_several_states():
    X = te.placeholder((6, 4), name="X")
    s1, s2 = te.placeholder((6, 4), name="s1"), te.placeholder((6, 2), name="s2")
    i1 = te.compute((1, 4), lambda _, i: X[0, i], name="i1")
    i2 = te.compute((1, 2), lambda _, i: te.const(1.0), name="i2")
    u1 = te.compute((6, 4), lambda t, i: s1[t - 1, i] * 0.5 + X[t, i] + s2[t - 1, i % 2], name="u1")
    u2 = te.compute((6, 2), lambda t, i: u1[t, i] - s2[t - 1, i], name="u2")
    first, second = te.scan([i1, i2], [u1, u2], [s1, s2], inputs=[X], name="pair")
    judge([X, first, second])
    judge([X, second])


def test_two_rows_of_memory():
    fib = te.placeholder((10,), "int32", name="fib")
    init = te.compute((2,), lambda t: te.const(1), name="ones")
    update = te.compute((10,), lambda t: fib[t - 1] + fib[t - 2], name="next")
    result = judge([te.scan(init, update, fib, name="fibonacci")])
    assert result[0].tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def test_recurrent_cell():
    steps, batch, hidden = 4, 2, 3
    X, W = te.placeholder((steps, batch, hidden), name="X"), te.placeholder((hidden, hidden), name="W")
    h, k = te.placeholder((steps, batch, hidden), name="h"), te.reduce_axis((0, hidden), "k")
    init = te.compute((1, batch, hidden), lambda _, b, i: te.const(0.0), name="h0")
    mixed = te.compute((steps, batch, hidden), lambda t, b, i: te.sum(h[t - 1, b, k] * W[k, i], axis=k), name="mixed")
    update = te.compute((steps, batch, hidden), lambda t, b, i: te.tanh(mixed[t, b, i] + X[t, b, i]), name="cell")
    judge([X, W, te.scan(init, update, h, inputs=[X, W], name="rnn")])


def test_reduction_inside_of_an_update():
    X, state, k = te.placeholder((5, 3), name="X"), te.placeholder((5, 3), name="state"), te.reduce_axis((0, 3), "k")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    mean = lambda t: te.sum(state[t - 1, k], axis=k) / 3.0  # noqa: E731
    update = te.compute((5, 3), lambda t, i: X[t, i] - mean(t), name="update")
    judge([X, te.scan(init, update, state, name="S")])


def test_what_does_not_depend_on_the_state_is_computed_before():
    X, W, k = te.placeholder((5, 3), name="X"), te.placeholder((3, 3), name="W"), te.reduce_axis((0, 3), "k")
    state = te.placeholder((5, 3), name="state")
    projected = te.compute((5, 3), lambda t, i: te.sum(X[t, k] * W[k, i], axis=k), name="projected")
    init = te.compute((1, 3), lambda _, i: projected[0, i], name="init")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + projected[t, i], name="update")
    S = te.scan(init, update, state, name="S")
    assert [op.name for op in S.op.steps] == ["update"]
    judge([X, W, S])


def test_init_that_others_read_is_copied():
    X, state = te.placeholder((5, 3), name="X"), te.placeholder((5, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    S = te.scan(init, update, state, name="S")
    judge([X, init, S])
    first = te.placeholder((1, 3), name="first")
    judge([X, first, te.scan(first, update, state, name="S")])


def test_update_that_reads_no_state():
    X, state = te.placeholder((5, 3), name="X"), te.placeholder((5, 3), name="state")
    init = te.compute((2, 3), lambda t, i: X[t, i], name="init")
    update = te.compute((5, 3), lambda t, i: X[t, i] * 2.0, name="update")
    judge([X, te.scan(init, update, state, name="S")])


def test_scan_after_a_scan():
    X, sums = cumulative()
    state = te.placeholder((6, 4), name="state2")
    init = te.compute((1, 4), lambda t, i: sums[0, i], name="init2")
    update = te.compute((6, 4), lambda t, i: te.max(state[t - 1, i], sums[t, i]), name="update2")
    judge([X, te.scan(init, update, state, name="most")])


def test_loops_of_a_scan_have_exact_legality():
    X, sums = cumulative()
    sch = tir.Schedule(te.create_prim_func([X, sums]))
    t, i = sch.get_loops(sch.get_block("s_update"))
    with pytest.raises(tir.ScheduleError):
        sch.parallel(t)
    outer, inner = sch.split(i, [None, 2])
    sch.reorder(outer, t)
    sch.parallel(outer)
    sch.vectorize(inner)
    judge([X, sums], sch.mod["main"])


A = te.placeholder((6, 4), name="A")
S = te.placeholder((6, 4), name="S")
I = te.compute((1, 4), lambda t, i: A[0, i], name="I")


def step(formula, shape=(6, 4)):
    return te.compute(shape, formula, name="U")


CASES = {
    "state that is computed": (lambda: te.scan(I, step(lambda t, i: A[t, i]), step(lambda t, i: A[t, i])), "placeholder"),
    "other number of updates": (lambda: te.scan([I], [], [S]), "1 inits, 0 updates, 1 states"),
    "no tensors": (lambda: te.scan(I, 3, S), "the update of a scan is a tensor, not 3"),
    "init of another shape": (lambda: te.scan(te.compute((1, 3), lambda t, i: A[t, i], name="J"), step(
        lambda t, i: S[t - 1, i]), S), "(1, 3)", "(rows, 4)"),
    "update of another shape": (lambda: te.scan(I, step(lambda t, i: S[t - 1, i], (5, 4)), S), "(5, 4)", "(6, 4)"),
    "update of another type": (lambda: te.scan(I, step(lambda t, i: S[t - 1, i].astype("float64")), S), "float64"),
    "a row of the same time": (lambda: te.scan(I, step(lambda t, i: S[t, i]), S), "`S[t, i]`", "rows up to t - 1"),
    "a later row": (lambda: te.scan(I, step(lambda t, i: S[t + 1, i]), S), "`S[t + 1, i]`"),
    "a row before the first": (lambda: te.scan(I, step(lambda t, i: S[t - 2, i]), S), "an init of 1 rows is too short"),
    "another step at another time": (lambda: te.scan(I, step(
        lambda t, i: te.compute((6, 4), lambda t, i: S[t - 1, i], name="V")[t - 1, i]), S), "at another time"),
    "a step without time": (lambda: te.scan(I, step(
        lambda t, i: te.compute((4,), lambda i: S[0, i], name="V")[i]), S), "first dimension of a step is time: 6"),
    "one state twice": (lambda: te.scan([I, I], [step(lambda t, i: S[t - 1, i]), step(lambda t, i: S[t - 1, i])], [S, S]),
        "the state of two states"),
    "an update as an argument": (lambda: te.create_prim_func([A, (u := step(lambda t, i: S[t - 1, i])), te.scan(I, u, S)]),
        "`U`, the update of scan `scan`, is no result"),
    "a scan in a scan": (lambda: te.scan(I, te.scan(I, step(lambda t, i: S[t - 1, i]), te.placeholder((6, 4), name="R")), S),
        "a step of scan `scan`, is not made by te.compute"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_wrong_scan_is_an_error(name):
    call, *words = CASES[name]
    with pytest.raises(TensorExpressionError) as caught:
        call()
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert caught.value.place.filename == __file__
