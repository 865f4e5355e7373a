"""Programs of torch as plain data: what becomes of them needs no torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tir.dtype import DType
from tir.errors import RunError
from tir.graph import ModelError, compile_graph
from tir.importers import torch_table
from tir.importers.torch import from_exported, imported
from tir.importers.torch_program import Program, Ref, Step
from tir.importers.torch_table import Result

X = {"x": ("float32", (2, 3))}


def step(name, operator, shape=(2, 3), dtype="float32", overload="", **arguments):
    return Step(name, operator, arguments, Result(dtype, shape), overload)


def run(program, *arrays, **options):
    return compile_graph(imported(program, **options), "interpreter")(*arrays)


def test_a_program_becomes_a_graph_of_operators():
    weight = np.arange(12, dtype="float32").reshape(4, 3)
    steps = (
        step("y", "aten.linear", (2, 4), x=Ref("x"), weight=Ref("w")),
        step("z", "aten.add", (2, 4), x=Ref("y"), other=1, alpha=2),
    )
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(run(Program(X, steps, (Ref("z"),), {"w": weight}), x), x @ weight.T + 2)


def test_parts_of_several_results_and_sizes_are_computed_at_import():
    size = Step("n", "aten.sym_size", {"x": Ref("x"), "dim": 1})
    twice = Step("m", "operator.mul", {"a": Ref("n"), "b": 2})
    parts = Step(
        "p",
        "aten.split",
        {"x": Ref("x"), "split_size": 2, "dim": 1},
        (Result("float32", (2, 2)), Result("float32", (2, None))),
    )
    second = Step("s", "operator.getitem", {"a": Ref("p"), "b": 1})
    full = step("f", "aten.full", (None,), size=[Ref("m")], fill_value=1.5, dtype=DType("float32"))
    program = Program({"x": ("float32", (2, "k"))}, (size, twice, parts, second, full), (Ref("s"), Ref("f"), Ref("m")))
    x = np.arange(6, dtype="float32").reshape(2, 3)
    made = run(program, x, shapes={"x": (2, 3)})
    assert [m.tolist() for m in made] == [[[2.0], [5.0]], [1.5] * 6, 6]
    with pytest.raises(ModelError, match="the size k is known only when the model runs"):
        imported(program)


def test_limits_decide_what_a_program_asks_of_its_sizes():
    rest = (
        Step("n", "aten.sym_size", {"x": Ref("x"), "dim": 0}),
        Step("m", "operator.sub", {"a": 8, "b": Ref("n")}),
        Step("begin", "torch.sym_max", {"a": Ref("m"), "b": 0}),
        step("y", "aten.slice", (None,), x=Ref("w"), dim=0, start=Ref("begin"), end=2**63 - 1),
        step("z", "aten.add", (None,), x=Ref("y"), other=Ref("x")),
    )
    held = np.arange(8, dtype="float32")
    program = Program({"x": ("float32", ("n",))}, rest, (Ref("z"),), {"w": held}, limits={"n": (1, 8)})
    for n in (1, 5, 8):
        np.testing.assert_array_equal(run(program, np.ones(n, "float32")), held[8 - n :] + 1)
    with pytest.raises(RunError, match="the size n is more than 8, the most .* have n = 9"):
        run(program, np.ones(9, "float32"))
    for limits in ({}, {"n": (1, 9)}):
        with pytest.raises(ModelError, match=r"T.max\(0 - n, -8\).* which are not known to be equal"):
            imported(replace(program, limits=limits))


def test_all_faults_are_one_table_and_steps_after_a_fault_are_tried():
    steps = (
        step("a", "aten.selu_or_so", x=Ref("x")),
        step("b", "aten.selu_or_so", x=Ref("a")),
        step("c", "aten.gelu", x=Ref("b"), approximate="none"),
        step("d", "other.gelu", x=Ref("c"), overload="out"),
        step("e", "aten.gelu", x=Ref("d"), exactly=True),
        step("f", "aten.relu", (3, 2), x=Ref("e")),
    )
    with pytest.raises(ModelError) as caught:
        imported(Program(X, steps, (Ref("f"),)))
    assert caught.value.faults[0][:4] == ("aten.selu_or_so", "", 2, "a")
    assert {row[3]: row[4] for row in caught.value.faults[1:]} == {
        "d": "there is no row for this operator",
        "e": "its argument exactly=True",
        "f": "its row makes float32[2, 3], torch float32[3, 2]",
    }
    assert "nearest" not in str(caught.value) and "first node" in str(caught.value)


def test_the_table_says_what_would_be_legal():
    with pytest.raises(ModelError, match="named twice.*; legal: each axis once"):
        imported(Program(X, (step("a", "aten.permute", (2, 3), x=Ref("x"), dims=[0, 0]),), (Ref("a"),)))


def test_the_nearest_row_is_named():
    with pytest.raises(ModelError, match="there is no row for this operator; did you mean|gelu"):
        imported(Program(X, (step("a", "aten.gelu_", x=Ref("x")),), (Ref("a"),)))


def test_a_result_that_is_not_made_is_a_fault_where_it_is_read():
    moment = Result("float32", (2, 1))
    norm = Step(
        "p", "aten.native_layer_norm", {"x": Ref("x"), "normalized_shape": [2]}, (Result("float32", (2, 2)), moment, moment)
    )  # fmt: skip
    first, second = (Step(f"p{n}", "operator.getitem", {"a": Ref("p"), "b": n}) for n in (0, 1))
    inputs = {"x": ("float32", (2, 2))}
    x = np.array([[-1, 1], [3, -3]], "float32")
    made = run(Program(inputs, (norm, first, second), (Ref("p0"),)), x)
    np.testing.assert_allclose(made, [[-1, 1], [1, -1]], rtol=1e-4)
    with pytest.raises(ModelError, match=r"(?s)1 node.*result .* p1 .* the moments"):
        imported(Program(inputs, (norm, first, second), (Ref("p1"),)))
    with pytest.raises(ModelError, match="the moments"):
        imported(Program(inputs, (norm, second, step("n", "aten.neg", (2, 1), "float32", x=Ref("p1"))), (Ref("n"),)))


def test_a_tensor_that_is_known_says_where_another_is_split():
    x = np.arange(14, dtype="float32").reshape(7, 2)
    for said in (np.int64(3), np.array([2, 9])):
        count = len(np.array_split(x, said))
        makes = tuple(Result("float32", (None, 2)) for _ in range(count))
        split = Step("p", "aten.tensor_split", {"x": Ref("x"), "tensor_indices_or_sections": Ref("w")}, makes)
        parts = [Step(f"p{n}", "operator.getitem", {"a": Ref("p"), "b": n}) for n in range(count)]
        outputs = tuple(Ref(each.name) for each in parts)
        made = run(Program({"x": ("float32", (7, 2))}, (split, *parts), outputs, {"w": np.asarray(said)}), x)
        for got, want in zip(made, np.array_split(x, said)):
            np.testing.assert_array_equal(got, want)


def test_programs_that_are_none_are_refused():
    relu = (step("y", "aten.relu", x=Ref("x")),)
    for program, says in [
        (Program(X, relu, ()), "no results"),
        (Program(X, relu, (None,)), "result 0 of the program is None"),
        (Program(X, relu, (Ref("y"),), updates=("cache",)), "it changes a tensor in place"),
        (Program({"x": ("complex64", (2,))}, (), (Ref("x"),)), "input 'x': torch.complex64 is no type"),
    ]:
        with pytest.raises(ModelError, match=says):
            imported(program)
    with pytest.raises(ModelError, match="ExportedProgram, not str"):
        from_exported("model.pt2")


def test_every_row_takes_arguments_by_the_names_of_a_schema():
    assert {"conv2d", "scaled_dot_product_attention", "layer_norm", "index_put"} <= set(torch_table.names())
    assert all(name == name.strip() and not name.startswith("aten.") for name in torch_table.names())
