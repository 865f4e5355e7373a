"""Symbolic sizes: one module that runs at any value, its memory, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tir.errors import ModelError, RunError
from tir.graph import Builder, check_plan, compile_graph, groups, parse
from tir.graph.memory_plan import Plan
from tir.graph.sizes import least, most, number, parsed, symbol, value_of

TARGETS = ["llvm", "interpreter"]
RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape).astype("float32")


def attention(rows="n"):
    """Softmax of x xᵀ, times x, times constant weights."""
    b = Builder()
    x = b.input("x", (rows, 8))
    scores = b.call("nn.softmax", b.call("matmul", x, b.call("transpose", x)))
    mixed = b.call("matmul", scores, x)
    return b.graph({"y": b.call("matmul", b.call("tanh", mixed), b.constant(np.ones((8, 4), "float32"), "w"))})


def attended(x):
    wide = x.astype("float64")
    scores = np.exp(wide @ wide.T)
    return np.tanh(scores / scores.sum(1, keepdims=True) @ wide) @ np.ones((8, 4))


# ---------------------------------------------------------------- sizes


def test_sizes_have_the_arithmetic_of_integers():
    n, m, rng = symbol("n"), symbol("m"), np.random.default_rng(1)
    made = [n, m, n + 1, n * 4 - 3, 7 - m, n * m, -n, (n + m) * (n - m), 2 * n * m + 4 * m]
    for _ in range(200):
        a, b = (made[int(k)] for k in rng.integers(len(made), size=2))
        values = {"n": int(rng.integers(1, 50)), "m": int(rng.integers(1, 50))}
        x, y = a.at(values), b.at(values)
        assert number(a + b, values) == x + y
        assert number(a - b, values) == x - y
        assert number(a * b, values) == x * y
        if y > 0:
            assert number(a // b, values) == x // y
            assert number(a % b, values) == x % y
        assert number(least(a, b), values) == min(x, y)
        assert number(most(a, b), values) == max(x, y)
        for size in (a, a * b, least(a, b), most(a, b), (a * b) // n, (a + b) % n):
            part = number(size, {"n": n, "m": values["m"]})  # n stays
            assert number(part, values) == number(size, values)


def test_sizes_are_equal_where_they_are_for_all_values():
    n, m = symbol("n"), symbol("m")
    assert (n + m) * (n - m) == n * n - m * m
    assert hash(m * n + 1) == hash(1 + n * m)
    assert n != m and n != 3 and (n == n + 1) is False
    assert (n * (m + 1) * 6) // (m + 1) == 6 * n
    assert (n * 6) % 3 == 0
    assert (n + n) // 2 is not n and (n + n) // 2 == n
    assert n - n == 0 and isinstance(n - n, int)


def test_comparisons_are_decided_or_refused():
    n = symbol("n")
    assert n >= 1 and n + 1 > 1 and not n < 1 and bool(n) and -n <= -1
    for question in (lambda: n > 1, lambda: n <= 8, lambda: bool(n - 1), lambda: n > 3):
        with pytest.raises(ModelError, match="known only when the model runs"):
            question()
    with pytest.raises(TypeError, match="the size n is known only"):
        int(n)
    with pytest.raises(ZeroDivisionError):
        n // 0


@pytest.mark.parametrize(
    "text", ["n", "n * 4", "n * m + n * 2 + 1", "n // 2", "n % 3 + 1", "T.min(n, 7)", "0 - n", "4"]
)
def test_sizes_are_read_from_what_they_print(text):
    values = {"n": 11, "m": 3}
    made = parsed(text)
    assert parsed(str(made)) == made
    assert number(made, values) == eval(text.replace("T.", ""), {}, {**values, "min": min})


def test_a_name_that_is_no_expression_is_a_symbol():
    assert str(parsed("batch size")) == "batch_size"
    assert str(parsed("f(n)")) == "f_n_"
    with pytest.raises(ModelError, match="no name of a size"):
        symbol("4")


def test_conditions_have_values():
    n = symbol("n").expr
    assert value_of(n * 2 <= 6, {"n": 3}) and not value_of(n * 2 <= 6, {"n": 4})


# ---------------------------------------------------------------- graphs


def test_a_graph_with_symbols_prints_and_parses():
    graph = attention()
    assert graph.symbols == ("n",)
    assert "%matmul: float32[n, n] = matmul(a=%x, b=%transpose)" in str(graph)
    again = parse(str(graph), {v.name: a for v, a in graph.constants.items()})
    assert str(again) == str(graph)
    b = Builder()
    moved = b.graph({"y": b.call("reshape", b.input("x", ("n", 6)), (symbol("n") * 2, 3))})
    assert str(parse(str(moved))) == str(moved)
    assert [v.shape for v in parse(str(moved)).outputs.values()] == [(symbol("n") * 2, 3)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("graph(%x: float32[n])\n  where n < 3\n  return y=%x", "`n < 3` is no limit of a size"),
        ("graph(%x: float32[n + ])\n  return y=%x", "expected values"),
        ("graph(%x: float32[n, 'a'])\n  return y=%x", "expected values"),
        ("graph(%x: float32[n])\n  %y: float32[m] = exp(x=%x)\n  return y=%y", r"makes float32\[n\]"),
        (
            "graph(%x: float32[n])\n  %y: float32[m, 2] = full(shape=[m, 2], fill_value=1)\n  return y=%y",
            "which no input has",
        ),
        ("graph(%x: float32[n])\n  %y: float32[n] = exp(x=n / 2)\n  return y=%y", "is no value, number, text or list"),
    ],
)
def test_a_text_with_wrong_sizes_is_refused(text, why):
    with pytest.raises(ModelError, match=why):
        parse(text)


def test_sizes_that_are_not_known_to_be_equal_are_refused():
    b = Builder()
    with pytest.raises(Exception, match="not known to be equal"):
        b.call("add", b.input("x", ("n",)), b.input("y", ("m",)))


def test_a_graph_at_values_has_numbers():
    graph = attention().at({"n": 5})
    assert graph.symbols == () and graph.outputs["y"].shape == (5, 4)
    graph.verify()


# ---------------------------------------------------------------- calls


@pytest.mark.parametrize("target", TARGETS)
def test_one_module_runs_at_any_size(target):
    model = compile_graph(attention(), target)
    for n in (1, 3, 16, 3, 45):
        x = array(n, 8)
        np.testing.assert_allclose(model(x), attended(x), rtol=1e-4, atol=1e-5)
        out = np.empty((n, 4), "float32")
        assert model(x, out=out) is out
        np.testing.assert_allclose(out, attended(x), rtol=1e-4, atol=1e-5)


def test_threads_of_several_sizes_run_at_once():
    from concurrent.futures import ThreadPoolExecutor

    model = compile_graph(attention())
    xs = [array(n, 8) for n in (2, 50, 7, 33) * 3]
    with ThreadPoolExecutor(4) as pool:
        for x, y in zip(xs, pool.map(model, xs)):
            np.testing.assert_allclose(y, attended(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_are_solved_from_all_inputs(target):
    b = Builder()
    x, y = b.input("x", ("2 * n + 1", "m")), b.input("y", ("n", "m"))
    model = compile_graph(b.graph({"a": b.call("exp", x), "b": b.call("sum", y, (0,))}), target)
    a, b = model(array(7, 2), array(3, 2))
    assert a.shape == (7, 2) and b.shape == (2,)
    for shapes, why in [
        (((8, 2), (3, 2)), r"n \* 2 \+ 1 is 8 by size 0 of input x, which is 8, and not so with n = 3"),
        (((7, 2), (3, 4)), "m is 4 by size 1 of input y, which is 4, and not so with m = 2 by size 1 of input x"),
        (((1, 2), (0, 2)), "the size n would be 0.*at least 1"),
        (((7, 2), (3,)), "1 dimensions"),
    ]:
        with pytest.raises(RunError, match=why):
            model(*(np.zeros(s, "float32") for s in shapes))


def test_calls_in_a_row_of_the_same_shapes_solve_sizes_once():
    b = Builder()
    x = b.input("x", ("n", 4))
    model = compile_graph(b.graph({"y": b.call("exp", x)}), "interpreter")
    two, three = np.ones((2, 4), "float32"), np.ones((3, 4), "float32")
    found = model.sized([two])
    assert model.sized([two.copy()]) is found and found.values == {"n": 2}
    assert model.sized([three]).outputs[0].shape == (3, 4) and model.sized([two]).values == {"n": 2}


def test_a_size_that_stands_only_in_expressions_is_solved():
    b = Builder()
    model = compile_graph(b.graph({"y": b.call("exp", b.input("x", ("4 * n",)))}), "interpreter")
    assert model(np.zeros(12, "float32")).shape == (12,)
    with pytest.raises(RunError, match=r"n \* 4 is 13"):
        model(np.zeros(13, "float32"))


def test_results_of_wrong_sizes_are_refused():
    model = compile_graph(attention(), "interpreter")
    with pytest.raises(RunError, match="size 0 is 4"):
        model(array(3, 8), out=np.empty((4, 4), "float32"))


def test_state_of_symbolic_size_is_updated_in_place():
    b = Builder()
    x, kept = b.input("x", ("n", 4)), b.input("kept", ("n", 4))
    model = compile_graph(b.graph({"kept": b.call("add", kept, x), "y": b.call("exp", x)}), "llvm", ["kept"])
    state = model.new_state(n=6)
    x = array(6, 4)
    for _ in range(2):
        model(x, state=state)
    np.testing.assert_allclose(state["kept"], 2 * x, rtol=1e-6)
    with pytest.raises(RunError, match="n is 6 by .*not so with n = 5"):
        model(array(5, 4), state=state)
    with pytest.raises(RunError, match=r"new_state\(n=128\)"):
        model.new_state()


def test_a_model_with_symbols_is_profiled():
    made = compile_graph(attention()).profile(array(16, 8), repeat=1)
    assert sum(k.operations for k in made.kernels if k.kernel.startswith("matmul")) > 2 * 16 * 16 * 8


def test_views_begin_at_symbolic_places():
    b = Builder()
    x = b.input("x", ("n", 4))
    rows = b.call("reshape", b.call("exp", x), (2, symbol("n") * 2))
    last = b.call("strided_slice", rows, (1,), (2,), (1,), (0,))
    graph = b.graph({"y": b.call("tanh", b.call("cumsum", last, 1)), "z": b.call("cumsum", rows, 1)})
    assert [g.view.begin for g in groups(graph) if g.view] == [symbol("n") * 8]
    for target in TARGETS:
        model = compile_graph(graph, target)
        for n in (2, 5):
            x = array(n, 4) * 0.1
            want = np.exp(x).reshape(2, -1).cumsum(1)
            y, z = model(x)
            np.testing.assert_allclose(y, np.tanh(want[1:]), rtol=1e-5)
            np.testing.assert_allclose(z, want, rtol=1e-5)


# ---------------------------------------------------------------- memory


def test_tensors_of_one_unit_share_memory():
    b = Builder()
    x, w = b.input("x", ("n", 16)), b.input("w", (16, 16))
    for _ in range(4):
        x = b.call("matmul", x, w)
    model = compile_graph(b.graph(b.call("cumsum", x, 0)), "interpreter")
    assert model.plan.nbytes == symbol("n") * 128 and model.plan.symbols == ("n",)
    assert model.plan.at({"n": 3}).bound == 2 * 192 == model.plan.at({"n": 3}).nbytes
    with pytest.raises(ModelError, match="the bytes in use depend on n"):
        _ = model.plan.bound
    assert "<rect" in model.plan.svg() and "n * 64" in repr(model.plan)


def test_parts_of_the_workspace_are_aligned_and_apart():
    b = Builder()
    x, y = b.input("x", ("n", 3)), b.input("y", (5, 7))
    outer = b.call("matmul", b.call("cumsum", x, 0), b.call("transpose", x))
    line = b.call("cumsum", b.call("cumsum", b.call("sum", x, (1,)), 0), 0)
    fixed = b.call("cumsum", b.call("cumsum", y, 0), 1)
    graph = b.graph({"a": b.call("cumsum", outer, 0), "b": b.call("exp", line), "c": b.call("exp", fixed)})
    model = compile_graph(graph, "interpreter")
    for n in (1, 2, 17):
        fixed = model.plan.at({"n": n})
        assert all(offset % 64 == 0 for offset in fixed.offsets.values())
        spans = sorted((o, o + v.nbytes, fixed.lives[v]) for v, o in fixed.offsets.items())
        for (_, end, one), (begin, _, other) in zip(spans, spans[1:]):
            assert end <= begin or one[1] < other[0] or other[1] < one[0]


def test_the_checker_finds_tensors_that_overlap_at_some_size():
    b = Builder()
    x = b.input("x", ("n", 16))
    one, other = b.call("cumsum", x, 0), b.call("cumsum", x, 1)
    graph = b.graph({"y": b.call("cumsum", b.call("matmul", one, b.call("transpose", other)), 0)})
    plan = compile_graph(graph, "interpreter").plan
    order = groups(graph)
    broken = {v: 64 * n * 16 for n, v in enumerate(plan.offsets)}  # apart up to 16 rows
    wrong = Plan(broken, plan.lives, plan.views, plan.nbytes * 64 + 64 * 64, plan.replaced)
    with pytest.raises(ModelError, match="which it uses|overwritten"):
        check_plan(wrong, order)


def test_tensors_of_more_elements_than_int32_counts_are_refused():
    """Inputs and results are small; what is between them is not, and its indices would wrap around."""
    b = Builder()
    x = b.input("x", ("n", 4), "int8")
    total = b.call("sum", b.call("cumsum", b.call("matmul", x, b.call("transpose", x, (1, 0))), 1), (0, 1))
    model = compile_graph(b.graph({"sum": total}))
    assert model(np.ones((3, 4), "int8")) == 4 * 3 * (1 + 2 + 3)
    with pytest.raises(RunError, match=r"int64\[n, n\]` has 2\*\*31 elements or more; .* have n = 46341"):
        model(np.ones((46341, 4), "int8"))


def test_a_wide_size_is_int64_throughout():
    n = symbol("n")
    assert str(((n * n + 63) // 64).wide) == '(T.Cast("int64", n) * T.Cast("int64", n) + 63) // 64'
