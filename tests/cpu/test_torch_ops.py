"""Functions of modules as operators of torch: eager, compiled, with symbolic sizes and gradients."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from polar_programs import BACK, POLAR

import tir
from tir.errors import BuildError, RunError
from tir.functional import Functional
from tir.script import parse

torch = pytest.importorskip("torch", reason="torch is not installed: operators of another library")
NUMBERS = itertools.count()

SCALE = """
@T.prim_func
def scale(x: T.handle, y: T.handle, k: T.float32, times: T.int32, on: T.bool):
    n, m = T.int32(), T.int32()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (m, n * 2), "{dtype}")
    for i, j in T.grid(m, n):
        if on:
            Y[i, j * 2] = T.Cast("{dtype}", X[j, i] * k * T.Cast("float32", times))
        Y[i, j * 2 + 1] = T.Cast("{dtype}", 1)
"""
ADD = """
@T.prim_func
def add(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = B[i] + A[i]
"""


def op(text: str, *, back: str | None = None, **options):
    module = tir.build(parse(text))
    if back is not None:
        options["backward"] = tir.build(parse(back))
    return tir.torch.op(module, f"tir_test_{next(NUMBERS)}::f", **options)


def scaled(x, k, times, on):
    y = torch.zeros(x.shape[1], 2 * x.shape[0])
    if on:
        y[:, ::2] = x.T * k * times
    y[:, 1::2] = 1
    return y


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "float64"])
def test_an_operator_makes_new_tensors_of_every_type(dtype):
    f = op(SCALE.format(dtype=dtype))
    x = torch.arange(6.0).reshape(2, 3)
    made = f(x, 2.0, 3, True)
    assert made.dtype == getattr(torch, dtype) and torch.equal(made, scaled(x, 2.0, 3, True).to(made.dtype))


def test_an_operator_is_one_node_of_a_compiled_graph_with_symbolic_sizes():
    f = op(SCALE.format(dtype="float32"))
    seen = []

    def backend(graph, inputs):
        seen.append([n.target for n in graph.graph.nodes if n.op == "call_function"])
        return graph.forward

    @torch.compile(backend=backend, fullgraph=True, dynamic=True)
    def program(x, k):
        return torch.sin(f(x + 1, k, x.shape[0], True)).sum(0)

    for shape in ((2, 3), (5, 4), (7, 9)):
        x = torch.rand(shape)
        torch.testing.assert_close(program(x, 2.5), torch.sin(scaled(x + 1, 2.5, shape[0], True)).sum(0))
    assert len(seen) == 1 and any("tir_test" in str(target) for target in seen[0])


def test_layouts_of_inputs_are_those_of_torch():
    f = op(SCALE.format(dtype="float32"))
    x = torch.rand(3, 2).T
    torch.testing.assert_close(f(x, 1.0, 1, True), scaled(x, 1.0, 1, True))
    torch.testing.assert_close(f(torch.tensor(1.0).expand(2, 3), 1.0, 1, False), scaled(torch.ones(2, 3), 1, 1, False))


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch looks at it itself
def test_gradients_are_those_of_the_function_that_is_given():
    f = op(POLAR, back=BACK)
    x, y = (torch.rand(5, requires_grad=True) for _ in "xy")

    def loss(x, y, polar):
        s, p = polar(x, y, 3)
        return (s * s + p.exp()).sum()

    expected = torch.autograd.grad(loss(x, y, lambda x, y, k: (x * x + y, x * y * k)), (x, y))
    for run in (loss, torch.compile(loss, backend="aot_eager", fullgraph=True)):
        for found, want in zip(torch.autograd.grad(run(x, y, f), (x, y)), expected):
            torch.testing.assert_close(found, want)
    torch.library.opcheck(f, (x, y, 3))


def test_a_gradient_of_which_torch_needs_a_part_is_computed():
    f = op(POLAR, back=BACK)
    x = torch.rand(4, requires_grad=True)
    (s, _) = f(x, torch.ones(4), 2)
    s.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


def test_without_a_gradient_torch_says_so():
    made = op(POLAR)(torch.rand(4, requires_grad=True), torch.rand(4), 1)[0]
    with pytest.raises(RuntimeError, match="no autograd formula"):
        made.sum().backward()


def test_tensors_are_updated_in_place_where_that_is_said():
    f = op(ADD, mutates=["B"])
    a, b = torch.arange(8.0), torch.ones(8)
    assert f(a, b) is None
    torch.compile(lambda a, b: f(a, b), backend="aot_eager", fullgraph=True)(a, b)
    assert torch.equal(b, 1 + 2 * a)
    assert torch.equal(op(ADD)(a), a)  # else it adds to zeros
    torch.library.opcheck(f, (a, b))


@pytest.mark.parametrize("compiled", [False, True])
def test_wrong_tensors_are_refused_in_our_words(compiled):
    f = op(SCALE.format(dtype="float32"))
    call = torch.compile(f, backend="eager", fullgraph=True) if compiled else f
    for x, says in [(torch.ones(2, 3).double(), "float32"), (torch.ones(2), "dimensions")]:
        with pytest.raises(Exception, match=rf"(?s)(scale|X).*{says}"):
            call(x, 1.0, 1, True)


def test_what_is_no_operator_is_refused():
    cases = [
        (ADD, {"mutates": ["A"]}, "add: mutates names `A`, and the function writes B"),
        (ADD.replace("):\n    for", ") -> T.int32:\n    for") + "    return 1\n", {}, "returns a number"),
        (
            POLAR,
            {"back": BACK.replace("grad_P", "dP")},
            "back takes `dP`; the gradient of polar takes X, Y, k, S, P, grad_S",
        ),
        (POLAR, {"back": POLAR}, "polar makes `P`; the gradient of polar makes grad_X, grad_Y"),
        (
            SCALE.format(dtype="float32").replace("(n, m)", "(n, 3)").replace("T.grid(m", "T.grid(3"),
            {},
            "no argument gives m",
        ),
    ]
    for text, options, says in cases:
        with pytest.raises(BuildError, match=says):
            op(text, **options)
    with pytest.raises(BuildError, match="'f' is no name of an operator of torch; .*'mine::f'"):
        tir.torch.op(tir.build(parse(ADD)), "f")


def test_names_that_are_none_in_python_are_arguments():
    text = ADD.replace("A: ", "lambda_: ").replace("A[i]", "lambda_[i]")
    assert op(text)(torch.ones(8)).sum() == 8
    assert Functional.of(tir.build(parse(text))).takes == ("lambda_",)
    assert np.asarray(op(ADD)(torch.ones(8))).tolist() == [1] * 8
    with pytest.raises(RunError, match="float32"):
        op(ADD)(torch.ones(8, dtype=torch.int32))
