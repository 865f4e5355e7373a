"""The parts of the testing kit one by one: arguments, comparisons, copies, what a reduction tries."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tir
from tir import testing
from tir.dtype import DType
from tir.interp.numbers import decode_table
from tir.interp.same_results import _array, _with_gaps, compare, copied, random_inputs, symbolic_sizes, usual_tolerance
from tir.schedule.trace import Entry, Trace
from tir.script import parse
from tir.testing import first_wrong, oracle, reduce
from tir.testing.decisions import SeededChoice
from tir.testing.sample_intrinsics import intrinsics

# ---------------------------------------------------------------- arguments


def drawn(dtype: str, low: int = -3, high: int = 3) -> list[float]:
    values = _array(np.random.default_rng(0), (300,), [], DType(dtype), low, high)
    small = dtype in ("bfloat16", "float8_e4m3fn")
    return sorted({*(decode_table(DType(dtype))[values] if small else values).tolist()})


@pytest.mark.parametrize(
    ("dtype", "low", "high", "least", "most"),
    [
        ("float32", -3, 3, -3, 3), ("int8", -3, 3, -3, 3), ("uint8", -3, 3, 0, 3), ("uint8", 1, 3, 1, 3), ("bool", -3, 3, 0, 1),
        ("bfloat16", -3, 3, -3, 3), ("float8_e4m3fn", 0, 2, 0, 2), ("int8", 120, 1000, 120, 127), ("uint8", 120, 1000, 120, 127),
        ("float16", 0, 0, 0, 0), ("int64", 5, 6, 5, 6),
    ],
)  # fmt: skip
def test_elements_are_small_integers(dtype, low, high, least, most):
    assert drawn(dtype, low, high) == list(range(least, most + 1))


@pytest.mark.parametrize(
    ("shape", "strides", "steps"),
    [
        ((3, 5), [None, None], [6, 1]), ((3, 5), [None, 1], [6, 1]), ((3, 5), [9, 1], [9, 1]), ((2, 3, 5), [None, None, 2], [34, 11, 2]),
        ((4,), [None], [1]), ((4,), [3], [3]), ((), [], []), ((1, 1), [None, None], [2, 1]),
    ],
)  # fmt: skip
def test_strides_that_are_not_known_leave_a_gap(shape, strides, steps):
    assert _with_gaps(shape, strides) == steps
    values = _array(np.random.default_rng(1), shape, strides, DType("int16"), -3, 3)
    assert values.shape == shape and (not shape or [s // 2 for s in values.strides] == steps)
    plain = _array(np.random.default_rng(1), shape, [], DType("int16"), -3, 3)
    assert (values == plain).all() and plain.flags.c_contiguous


def test_arguments_of_every_kind():
    func = parse("""
@T.prim_func
def f(a: T.handle, b: T.handle, p: T.handle("int8"), x: T.float32, y: T.bool, n: T.int32, m: T.int64):
    k, s = T.int32(), T.int32()
    A = T.match_buffer(a, (k, n), "float32", strides=[s, 1])
    B = T.match_buffer(b, (2,), "float16x4")
    T.evaluate(0)
""")
    for seed in range(40):
        a, b, p, x, y, n, m = random_inputs(func, seed)
        assert a.shape[1] == n and 1 <= n <= 9 and 1 <= a.shape[0] <= 9 and 1 <= m <= 9
        assert a.strides[1] == 4 and a.strides[0] == 4 * (n + 1)
        assert b.shape == (2, 4) and b.dtype == "float16" and p.shape == (64,) and p.dtype == "int8"
        assert isinstance(x, float) and x in range(-3, 4) and y in (True, False) and type(y) is bool
    rows = [random_inputs(func, seed) for seed in range(60)]
    assert {row[4] for row in rows} == {True, False} and {row[3] for row in rows} == {*map(float, range(-3, 4))}
    assert {row[5] for row in rows} == {*range(1, 10)} and {int(v) for row in rows for v in row[2]} == {*range(-3, 4)}
    a, *_, n, m = random_inputs(func, 0, {"n": 4, "k": 0, "m": 20})
    assert (a.shape, n, m) == ((0, 4), 4, 20)
    assert symbolic_sizes(func) == ["k", "n"]


def test_indices_are_within_the_smallest_axis_that_they_index():
    func = parse("""
@T.prim_func
def f(I: T.Buffer((200,), "int32"), J: T.Buffer((50,), "int64"), A: T.Buffer((9, 4), "float32"), B: T.Buffer((5,), "float32"),
      C: T.Buffer((50,), "float32"), E: T.Buffer((0,), "int32"), D: T.Buffer((1,), "float32")):
    for i in range(50):
        C[i] = A[I[i], 0] + A[T.cast(J[i], "int32"), 1]
    B[I[0]] = D[I[1 + 0] * 0]
""")
    i, j, *_, e, d = random_inputs(func, 3)
    assert {*i.tolist()} == {*range(5)} and {*j.tolist()} == {*range(9)} and e.shape == (0,) and d.shape == (1,)


# ---------------------------------------------------------------- comparisons


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        ("float64", 1e-9), ("float32", 1e-5), ("float16", 1e-2), ("bfloat16", 2.0**-5), ("float8_e4m3fn", 0.5), ("int32", 0.0),
        ("bool", 0.0),
    ],
)  # fmt: skip
def test_the_usual_tolerance(dtype, tolerance):
    assert usual_tolerance(DType(dtype)) == tolerance


def test_two_results_are_compared_element_by_element():
    one = np.array([[1.0, 2.0], [4.0, np.nan]], "float32")
    compare("A", DType("float32"), one, one * np.float32(1 + 9e-6), None, 0.0, "llvm")
    with pytest.raises(AssertionError, match=r"^llvm: A\[0, 1\] is 2\.0\d*, expected 2\.0 \(2 of 4 elements differ\)$"):
        compare("A", DType("float32"), one, one + np.float32([[0, 1e-4], [1e-4, 0]]), None, 0.0, "llvm")
    compare("A", DType("float32"), one, one + np.float32(0.01), 0.0, 0.02, "llvm")
    compare("A", DType("float32"), one, one + np.float32([[0.01, 0], [0, 0]]), 0.0, np.array([[0.02, 0], [0, 0]]), "x")
    with pytest.raises(AssertionError, match=r"^x: A\[0, 0\]"):
        compare("A", DType("float32"), one, one + np.float32([[0.01, 0], [0, 0]]), 0.0, np.zeros((2, 2)), "x")
    with pytest.raises(AssertionError, match=r"^x: A\[1\] is 3, expected 2 \(1 of 2 elements differ\)$"):
        compare("A", DType("int32"), np.array([1, 2]), np.array([1, 3]), 1.0, 9.0, "x")
    bits = np.array([0x3F80, 0x4000], "uint16")  # 1 and 2
    compare("A", DType("bfloat16"), bits, bits + np.uint16(1), None, 0.0, "x")
    with pytest.raises(AssertionError, match=r"^x: A\[0\] is 1\.5, expected 1\.0 \(1 of 2"):
        compare("A", DType("bfloat16"), bits, np.array([0x3FC0, 0x4000], "uint16"), None, 0.0, "x")


def test_a_call_is_compared_on_copies():
    double = parse("""
@T.prim_func
def f(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32"), k: T.int32):
    for i in range(3):
        B[i] = A[i] * T.float32(2)
""")
    a, b = np.arange(3, dtype="float32"), np.zeros(3, "float32")

    def call(x, y, k):
        assert k == 7
        y[...] = x * 2
        x[0] += wrong

    wrong = 0.0
    oracle.assert_same_call(double, call, [a, b, 7], "x")
    assert b.tolist() == [0, 0, 0]
    wrong = 1.0
    with pytest.raises(AssertionError, match=r"^x: A\[0\] is 1\.0, expected 0\.0"):
        oracle.assert_same_call(double, call, [a, b, 7], "x")
    oracle.assert_same_call(double, call, [a, b, 7], "x", atol={"A": 1.0})
    with pytest.raises(AssertionError):
        oracle.assert_same_call(double, call, [a, b, 7], "x", atol={"B": 1.0})
    memory = np.zeros(6, "float32")
    seen = []

    def together(x, y, k):
        seen.append(y.ctypes.data - x.ctypes.data)
        y[...] = x * 2

    oracle.assert_same_call(double, together, [memory[:3], memory[3:], 7], "x")
    oracle.assert_same_call(double, together, [memory[:3], memory[1:4].copy(), 7], "x")
    assert seen[0] == 12 and memory.tolist() == [0] * 6


def test_the_function_that_is_run_is_main_or_the_one_that_is_named():
    def func(value: int) -> tir.PrimFunc:
        return parse(f"@T.prim_func\ndef f(B: T.Buffer((1,), 'int32')):\n    B[0] = {value}\n")

    one, other = tir.IRModule({"a": func(1), "main": func(2)}), tir.IRModule({"a": func(1), "main": func(3)})
    with pytest.raises(AssertionError, match="is 3, expected 2"):
        testing.assert_same_result(one, other, engines=["interpreter"])
    testing.assert_same_result(one, other, engines=["interpreter"], func="a")
    testing.assert_same_result(tir.IRModule({"a": func(1), "b": func(2)}), tir.IRModule({"a": func(1), "b": func(3)}))


@pytest.mark.parametrize("value", [np.arange(12).reshape(3, 4), np.arange(12).reshape(3, 4)[:, :3], np.arange(12).reshape(3, 4).T, 3, "x"])  # fmt: skip
def test_copies_keep_their_strides(value):
    made = copied(value)
    if not isinstance(value, np.ndarray):
        assert made is value
        return
    assert (made == value).all() and made.strides == value.strides and not np.shares_memory(made, value)


# ---------------------------------------------------------------- stages


def test_passes_that_are_to_blame(monkeypatch):
    mod = tir.IRModule.of(parse("@T.prim_func\ndef f(B: T.Buffer((1,), 'int32')):\n    B[0] = 1\n"))
    wrong = tir.IRModule.of(parse("@T.prim_func\ndef f(B: T.Buffer((1,), 'int32')):\n    B[0] = 2\n"))
    unknown = tir.IRModule.of(parse("@T.prim_func\ndef f(B: T.Buffer((1,), 'int32')):\n    B[0] = T.call_pure_extern('no', dtype='int32')\n"))  # fmt: skip

    def to(made: tir.IRModule, name: str):
        def step(mod):
            return made

        step.__name__ = name
        return step

    def same(mod):
        return mod

    assert testing.check_lowering(mod, passes=[]) is not None
    assert tir.structural_equal(testing.check_lowering(mod, passes=[same, to(mod, "one")]), mod)
    with pytest.raises(AssertionError, match="^pass two changed the result: interpreter: B\\[0\\] is 2, expected 1"):
        testing.check_lowering(
            mod, passes=[to(tir.IRModule(mod.functions), "one"), same, to(wrong, "two"), to(mod, "three")]
        )
    with pytest.raises(AssertionError, match="^one of the passes odd, two changed the result: "):
        testing.check_lowering(mod, passes=[to(unknown, "odd"), to(wrong, "two")])
    assert first_wrong._threads_exchange(mod) is False


# ---------------------------------------------------------------- reductions


def test_what_a_reduction_tries_first():
    assert list(reduce._halves(9)) == [4, 2, 1] and list(reduce._halves(1)) == [1] and list(reduce._halves(0)) == []
    assert list(reduce._smaller_numbers(10)) == [1, 2, 3, 5, 9] and list(reduce._smaller_numbers(1)) == []
    assert list(reduce._smaller_numbers(3)) == [1, 2] and list(reduce._smaller_numbers(2)) == [1]
    assert list(reduce._smaller_values([4, (None, 2), True])) == [
        [1, (None, 2), True], [2, (None, 2), True], [3, (None, 2), True], [4, (None, 1), True],
    ]  # fmt: skip
    assert list(reduce._smaller_arguments({"a": "x", "b": 2})) == [{"a": "x", "b": 1}]
    steps = [Entry(name, {}, None) for name in "abcde"]
    case = SimpleNamespace(trace=Trace(steps), program=None)
    tried = ["".join(step.name for step in make()[1].steps) for make in reduce._smaller_traces(case)]
    assert tried == ["abc", "ade", "abcd", "abce", "abde", "acde", "bcde"]


def parts_of(body: str, params: str = 'A: T.Buffer((4,), "float32"), n: T.int32') -> list[str]:
    func = parse(f"@T.prim_func\ndef f({params}):\n{body}")
    root = func.body.block.body if isinstance(func.body, tir.BlockRealize) else func.body
    return [str(new) for _, new in reduce._smaller_parts(root)]


@pytest.mark.parametrize(
    ("body", "smaller"),
    [
        ("    A[0] = T.float32(2)\n    A[1] = T.float32(3)\n", ["A[1] = T.float32(3)", "A[0] = T.float32(2)"]),
        ("    for i in range(2, 4):\n        A[i] = T.float32(2)\n", ["A[2] = T.float32(2)"]),
        ("    for i in T.unroll(4):\n        A[i] = T.float32(2)\n", ["A[0] = T.float32(2)", "for i in range(4):\n    A[i] = T.float32(2)"]),
        ("    if n > 3:\n        A[0] = T.float32(2)\n    else:\n        A[1] = T.float32(3)\n", ["A[0] = T.float32(2)", "A[1] = T.float32(3)"]),
        ("    if n > 3:\n        A[0] = T.float32(2)\n", ["A[0] = T.float32(2)"]),
        ("    x: T.int32 = n + 1\n    A[x] = T.float32(2)\n", ["A[n + 1] = T.float32(2)", "n", "1"]),
        ("    while A[0] < T.float32(2):\n        A[0] = T.float32(3)\n", ["A[0] = T.float32(3)"]),
        ("    A[n] = A[0] + A[1] * T.float32(2)\n", ["A[n] = A[0]", "A[n] = A[1] * 2.0", "A[n] = T.float32(1)"]),
    ],
)  # fmt: skip
def test_smaller_parts_of_a_program(body, smaller):
    assert parts_of(body)[: len(smaller)] == smaller


def test_smaller_blocks():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32"), n: T.int32):
    for i, k in T.grid(4, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(i < n)
            T.block_attr({"x": 1})
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
""")
    realize = next(n for n in tir.visit.walk(func.body) if isinstance(n, tir.BlockRealize) and n.block.name == "B")
    plain, always, without_init, unmarked, *fewer = reduce._smaller_blocks(realize)
    assert str(plain) == "B[i] = T.float32(0)\nB[i] = B[i] + A[i, k]"
    assert tir.expr.is_const(always.predicate, 1) and always.block is realize.block
    assert without_init.block.init is None and without_init.predicate is realize.predicate
    assert not unmarked.block.annotations and unmarked.block.init is not None
    assert [[i.var.name for i in r.block.iter_vars] for r in fewer] == [["vk"], ["vi"]]
    assert [list(map(str, r.iter_values)) for r in fewer] == [["k"], ["i"]]
    assert reduce._extents(func) == {4}


def test_a_function_of_a_module_is_left_out_and_the_case_is_shown():
    one, other = (parse(f"@T.prim_func\ndef f(B: T.Buffer((4,), 'int32')):\n    B[0] = {n}\n") for n in (1, 2))

    def check(program):
        if "2" in program.script():
            raise ValueError("two")

    case = testing.reduce_case(tir.IRModule({"a": one, "b": other}), check)
    assert list(case.program) == ["b"] and str(case).endswith("\n\nValueError: two") and repr(case) == str(case)
    shown = str(testing.Case(one, Trace([]), KeyError("k"), 3))
    assert shown.endswith("B[0] = 1\n\n\nKeyError: 'k'")
    sch = tir.Schedule(
        parse("@T.prim_func\ndef f(B: T.Buffer((4,), 'int32')):\n    for i in range(4):\n        B[i] = i\n")
    )
    sch.unroll("i")
    assert 'sch.unroll("i")' in str(testing.Case(sch.mod, sch.trace, ValueError("x"), 3))


@pytest.mark.parametrize("tries", [1, 2, 3])
def test_so_many_checks_and_no_more(tries):
    asked = []

    def check(program):
        asked.append(program)
        raise ValueError("always")

    func = parse(
        "@T.prim_func\ndef f(B: T.Buffer((64,), 'int32')):\n    for i in range(64):\n        B[i] = i * 3 + 4\n"
    )
    assert testing.reduce_case(func, check).tried > 3
    asked.clear()
    testing.reduce_case(func, check, tries=tries)
    assert len(asked) == 1 + tries
    asked.clear()
    testing.reduce_case(func, check, seconds=-1.0)
    assert len(asked) == 1


def test_what_is_another_error_from_the_start():
    func = parse("@T.prim_func\ndef f(B: T.Buffer((4,), 'int32')):\n    B[0] = 1\n")

    def check(program):
        raise ValueError("first")

    with pytest.raises(
        ValueError, match=r"^nothing to reduce: the check raises another error \(first\) for this case$"
    ):
        testing.reduce_case(func, check, message="second")
    assert testing.reduce_case(func, check, message="fir").error.args == ("first",)


# ---------------------------------------------------------------- decisions


def test_decisions_of_a_seed():
    one, other = SeededChoice(3), SeededChoice(3)
    assert [one.pick("abc") for _ in range(9)] == [other.pick("abc") for _ in range(9)]
    assert {SeededChoice(seed).number(2, 4) for seed in range(40)} == {2, 3, 4}


def test_the_intrinsics_of_random_schedules_compute_what_they_describe():
    for name in intrinsics():
        found = tir.TensorIntrin.get(name)
        args = random_inputs(found.desc, 1)
        expected = [a.copy() for a in args]
        tir.interp.run(found.desc, *expected)
        tir.interp.run(found.impl, *args)
        assert (
            all((a == b).all() for a, b in zip(args, expected)) and (args[-1] != random_inputs(found.desc, 1)[-1]).any()
        )


@pytest.mark.parametrize("part", ["::-1", "::-1, 1::2", "::2, ::-1", "::-1, ::-3", "1:2, ::-1", "::-1, 2:2"])
def test_a_copy_of_an_argument_lies_in_memory_as_the_argument_does(part):
    array = np.arange(30).reshape(5, 6)
    given = eval(f"array[{part}]", {"array": array})
    made = copied(given)
    assert made.strides == given.strides or not given.size
    np.testing.assert_array_equal(made, given)
    made += 1
    np.testing.assert_array_equal(made, given + 1)
    assert (array.ravel() == np.arange(30)).all()
