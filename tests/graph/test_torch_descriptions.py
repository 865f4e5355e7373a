"""Graphs of torch become plain data: told from stand-ins for what torch has, so that torch is not needed."""

from __future__ import annotations

import math
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tir.dtype import DType
from tir.graph import ModelError
from tir.importers import torch_program, torch_table
from tir.importers.torch_program import Program, Ref, Step
from tir.importers.torch_table import Result


class Kind:
    """A type of torch."""

    def __init__(self, name):
        self.name, self.itemsize = name, 2 if "16" in name else 1

    def __str__(self):
        return f"torch.{self.name}"


class Tensor:
    layout = "strided"

    def __init__(self, kind="float32", shape=(2, 3), array=None):
        self.dtype, self.shape, self.array = KINDS.setdefault(kind, Kind(kind)), shape, array

    detach = cpu = contiguous = lambda self: self

    def numpy(self):
        return self.array

    def view(self, kind):
        return Tensor(kind.name, self.shape, self.array)


class Node:
    def __init__(self, op, name="n", target=None, args=(), kwargs=(), val=None):
        self.op, self.name, self.target, self.args, self.kwargs, self.meta = (
            op,
            name,
            target,
            args,
            dict(kwargs),
            {"val": val},
        )
        self.users = {}
        for arg in args:
            if isinstance(arg, Node):
                arg.users[self] = None


KINDS = {name: Kind(name) for name in ("bool", "uint8", "int16", "bfloat16", "float32", "complex64", "quint8")}


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    made = ModuleType("torch")
    made.fx = SimpleNamespace(Node=Node, GraphModule=ModuleType)
    made.dtype, made.Tensor = Kind, Tensor
    made.bool, made.uint8, made.int16 = (KINDS[name] for name in ("bool", "uint8", "int16"))
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


def operator(name, *parameters, overload="", mutable=False):
    schema = SimpleNamespace(arguments=[SimpleNamespace(name=p) for p in parameters], is_mutable=mutable)
    return SimpleNamespace(_schema=schema, overloadpacket=name, _overloadname=overload)


def test_types_and_sizes():
    class Open:
        def __str__(self):
            return "s0"

    assert torch_program.described(Tensor("float16", (2, Open()))) == ("float16", (2, "s0"))
    assert torch_program.makes(Tensor("int8", (4, Open()))) == Result("int8", (4, None))
    assert torch_program.makes([Tensor(), 3, Tensor("int8", ())]) == (Result("float32", (2, 3)), Result("int8", ()))
    assert torch_program.makes(3) == () == torch_program.makes(None) and torch_program.makes((Tensor(),)) != Result(
        "float32", (2, 3)
    )
    one = Result("float32", (1,))
    assert torch_program.several(one) == (one,) and torch_program.several((one, one)) == (one, one)


def test_arguments_are_plain():
    node = Node("call_function", "y")
    for given, made in (
        (node, Ref("y")), ([node, (1, None)], [Ref("y"), [1, None]]), (KINDS["bfloat16"], DType("bfloat16")), (KINDS["complex64"], "torch.complex64"), (KINDS["quint8"], "torch.quint8"),
        (True, True), (2.5, 2.5), ("mean", "mean"), (None, None), (SimpleNamespace(), "namespace()"),
    ):  # fmt: skip
        assert torch_program.plain(given, lambda n: Ref(n.name)) == made
        assert type(torch_program.plain(given, lambda n: Ref(n.name))) is type(made)


def test_arguments_have_the_names_of_the_schema():
    add = operator("aten.add", "self", "other", "alpha", overload="Tensor")
    assert torch_program.named(add, (1, 2), {"alpha": 3}) == ("aten.add", "Tensor", {"x": 1, "other": 2, "alpha": 3})
    assert torch_program.named(operator("aten.f", "input"), (1,), {}) == ("aten.f", "", {"x": 1})
    import operator as python

    assert torch_program.named(python.mul, (4, 5), {"k": 6}) == (
        "operator.mul",
        "",
        {"argument0": 4, "argument1": 5, "k": 6},
    )


def test_the_steps_and_results_of_a_graph():
    x = Node("placeholder", "x")
    y = Node("call_function", "y", operator("aten.relu", "self", overload="default"), (x,), val=Tensor())
    nodes = [x, Node("get_attr", "w"), y, Node("output", "output", args=([y, 3],))]
    assert torch_program.steps_of(SimpleNamespace(nodes=nodes)) == (Step("y", "aten.relu", {"x": Ref("x")}, Result("float32", (2, 3)), "default"),)  # fmt: skip
    assert torch_program.output_of(SimpleNamespace(nodes=nodes)) == (Ref("y"), 3)
    nodes[-1] = Node("output", "output", args=(y,))
    assert torch_program.output_of(SimpleNamespace(nodes=nodes)) == (Ref("y"),)


def test_a_tensor_is_an_array_in_the_same_memory():
    held = np.arange(6, dtype="float32")
    assert torch_program.array_of(Tensor("float32", (6,), held)) is held
    flags = np.ones(2, bool)
    assert torch_program.array_of(Tensor("bool", (2,), flags)) is flags
    bits = np.array([0x3F80, 0x4000], "int16")
    small = torch_program.array_of(Tensor("bfloat16", (2,), bits))
    assert small.dtype.itemsize == 2 and small.astype("float32").tolist() in ([1.0, 2.0], [16256.0, 16384.0])
    assert np.shares_memory(small, bits)
    with pytest.raises(ModelError, match="^a tensor of torch.quint8, strided, is no constant: "):
        torch_program.array_of(Tensor("quint8", (2,), held))


class Number(int):
    is_Integer = True


INFINITE = SimpleNamespace(is_Integer=False)


def exported(nodes, inputs, outputs, state=None, constants=None, decomposed=None):
    def spec(kind, arg, target=None):
        return SimpleNamespace(kind=SimpleNamespace(name=kind), arg=arg, target=target)

    signature = SimpleNamespace(input_specs=[spec("", *i) for i in inputs], output_specs=[spec(*o) for o in outputs])
    graph, part = SimpleNamespace(nodes=nodes), SimpleNamespace(w=Tensor("float32", (1,), np.ones(1, "float32")), n=3)
    return SimpleNamespace(
        graph=graph, graph_signature=signature, state_dict=state or {}, constants=constants or {},
        graph_module=SimpleNamespace(graph=graph, part=part), run_decompositions=decomposed,
        range_constraints={"s0": SimpleNamespace(lower=2, upper=INFINITE), "s1": SimpleNamespace(lower=3, upper=Number(9)), "s2": SimpleNamespace(lower=0, upper=Number(4))},
    )  # fmt: skip


def named(name, **more):
    return SimpleNamespace(name=name, **more)


def test_an_exported_program_is_described(monkeypatch, torch):
    monkeypatch.setattr(torch_table, "has_row", lambda name: name in ("relu", "add"))
    weight = np.ones(3, "float32")
    nodes = [
        Node("placeholder", "x", val=Tensor()), Node("placeholder", "n", val=7), Node("placeholder", "p_w"), Node("placeholder", "c"),
        Node("placeholder", "b_mean", val=Tensor()), Node("get_attr", "part_w", "part.w"), Node("get_attr", "part_n", "part.n"),
        Node("call_function", "y", operator("aten.relu", "self"), (Node("placeholder", "x"),), val=Tensor()),
    ]  # fmt: skip
    inputs = [(named("x"),), (named("n"),), (named("p_w"), "w"), (named("c"), "lifted"), (named("b_mean"), "mean")]
    outputs = [("USER_OUTPUT", named("y")), ("USER_OUTPUT", named("k", value=5)), ("BUFFER_MUTATION", named("y"), "mean"), ("USER_INPUT_MUTATION", named("y"))]  # fmt: skip
    state = {"w": Tensor("float32", (3,), weight)}, {"lifted": Tensor("float32", (3,), weight + 1)}
    made = torch_program.read_exported(exported(nodes, inputs, outputs, *state))
    assert made.inputs == dict.fromkeys(("x", "b_mean"), ("float32", (2, 3))) and made.numbers == {"n": 7}
    assert {k: v.tolist() for k, v in made.constants.items()} == {"p_w": [1] * 3, "c": [2] * 3, "part_w": [1]}
    assert made.outputs == (Ref("y"), 5) and made.updates == ("y",) and made.state == {"b_mean": "y"}
    assert [s.operator for s in made.steps] == ["aten.relu"] and isinstance(made, Program)
    assert made.limits == {"s1": (3, 9), "s2": (1, 4)}, "2 is the least of each size, for torch"


@pytest.mark.parametrize(("name", "mutable", "is_decomposed"), [("aten.relu", False, False), ("aten.relu", True, True), ("aten.odd", False, True)])  # fmt: skip
def test_what_has_no_row_or_changes_its_operands_is_decomposed(monkeypatch, torch, name, mutable, is_decomposed):
    monkeypatch.setattr(torch_table, "has_row", lambda name: name == "relu")
    known, unknown = operator("aten.relu", "self"), operator("aten.odd", "self")
    table, asked = {id(known): known, id(unknown): unknown}, []

    class Table(dict):
        def __iter__(self):
            return iter([known, unknown])

        def __delitem__(self, target):
            asked.append(target.overloadpacket)

    torch.export = SimpleNamespace(default_decompositions=lambda: Table(table))
    nodes = [
        Node("call_function", "y", operator(name, "self", mutable=mutable), (), val=Tensor()),
        Node("call_function", "z", math.ceil),
    ]
    plain = exported(nodes, [], [])
    plain.run_decompositions = lambda table: exported([], [], [])
    made = torch_program.read_exported(plain)
    assert (made.steps == ()) is is_decomposed and asked == (["aten.relu"] if is_decomposed else [])
