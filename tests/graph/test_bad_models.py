"""What comes wrong from outside: models whose shapes do not go together, sizes of 0, arrays of other libraries, forks, interrupts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from foreign_tensors import Foreign

import tir
from tir.graph import Builder, ModelError, compile_graph

FLOAT, CUDA = 2, 2  # a type code of DLPack, and a device of it


def sums(target="interpreter"):
    b = Builder()
    x = b.input("x", (2, 3))
    return compile_graph(b.graph({"y": b.call("add", x, b.constant(np.ones(3, "float32"), "one"))}), target)


X = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.mark.parametrize(
    ("node", "size", "said"),
    [
        (("Add", "x c", "y"), (3,), "Add of y .*shapes .2, 2. and .3,. do not broadcast: axis 1"),
        (("MatMul", "x c", "y"), (3, 2), "MatMul of y .*.2, 2. and .* .3, 2. adds over 2 elements of one and 3 of the other"),
        (("Concat", "x c", "y", {"axis": 0}), (2, 3), r"Concat of y .*\(2, 2\) and .*\(2, 3\) differ beside axis 0"),
        (("Reshape", "x s", "y"), (), "Reshape of y .*.2, 2. has 4 elements, and .5. has 5"),
        (("Expand", "x s", "y"), (), r"Expand of y .*\(2, 2\).*\(5,\)|Expand of y .*broadcast"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_go_together_are_named_with_the_node(node, size, said):
    pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
    from onnx import TensorProto, helper, numpy_helper

    from tir.importers.onnx import from_onnx

    operator, inputs, output, *attributes = node
    held = {"c": np.ones(size, "float32"), "s": np.array([5], "int64")}
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [2, 2]), ("y", None)))
    made = helper.make_node(operator, inputs.split(), [output], **(attributes[0] if attributes else {}))
    tensors = [numpy_helper.from_array(a, n) for n, a in held.items() if n in inputs.split()]
    with pytest.raises(ModelError, match=said):
        from_onnx(helper.make_model(helper.make_graph([made], "g", [x], [y], tensors)))


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_a_size_of_0_is_a_size(target):
    b = Builder()
    x = b.input("x", (0, 3))
    total = b.call("sum", b.call("exp", x), (0,))
    made = compile_graph(b.graph({"y": b.call("exp", x), "total": total}), target)(np.zeros((0, 3), "float32"))
    assert made[0].shape == (0, 3) and made[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_arrays_of_any_place_and_order_are_taken(target):
    memory = np.zeros(X.nbytes + 1, "uint8")
    crooked = memory[1:].view("float32").reshape(2, 3)
    crooked[...] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    model = sums(target)
    for x in (crooked, read_only, np.asfortranarray(X), X[::-1][::-1], Foreign(X, FLOAT)):
        assert model(x).tolist() == (X + 1).tolist()
    b = Builder()
    scalar = compile_graph(b.graph({"y": b.call("exp", b.input("x", ()))}), target)
    assert scalar(np.float32(0)) == scalar(0.0) == scalar(np.array(0, "float32")) == 1


def test_a_tensor_on_a_gpu_is_refused_with_the_way_out():
    with pytest.raises(tir.RunError, match=r"input x: float32.2, 3.: .*(cuda|GPU|device)"):
        sums()(Foreign(X, FLOAT, CUDA))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_a_model_runs_in_a_fork(target):
    model = sums(target)
    model(X)
    child = os.fork()
    if not child:
        os._exit(0 if model(X).tolist() == (X + 1).tolist() else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(("interrupted", "name"), [(1, "weights.bin"), (2, "model.o")])
def test_an_interrupt_leaves_the_file_that_was_there(interrupted, name, monkeypatch, tmp_path):
    model, write, written = sums("llvm"), Path.write_bytes, []
    for each in ("weights.bin", "model.o"):
        (tmp_path / each).write_bytes(b"before")

    def stopped(self, content):
        written.append(self)
        write(self, bytes(content)[:9] if len(written) == interrupted else content)
        if len(written) == interrupted:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "write_bytes", stopped)
        model.save(tmp_path / "model.o", weights=tmp_path / "weights.bin")
    assert (tmp_path / name).read_bytes() == b"before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.o", "weights.bin"]


def test_loops_in_loops_are_not_written_out_without_end(monkeypatch):
    monkeypatch.setattr("tir.importers.onnx.MOST_WRITTEN", 300)
    pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
    from onnx import TensorProto, helper, numpy_helper

    from tir.importers.onnx import from_onnx

    def tensor(name, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, [])

    def loop(depth):
        node = helper.make_node("Exp", ["s"], ["t"])
        if depth:
            node = helper.make_node("Loop", ["m", "", "s"], ["t"], body=loop(depth - 1))
        going = helper.make_node("Identity", ["go"], ["gone"])
        inputs = [tensor("n", TensorProto.INT64), tensor("go", TensorProto.BOOL), tensor("s")]
        return helper.make_graph([node, going], "b", inputs, [tensor("gone", TensorProto.BOOL), tensor("t")])

    outer = helper.make_node("Loop", ["m", "", "x"], ["y"], body=loop(2))
    many = numpy_helper.from_array(np.array(1000, "int64"), "m")
    graph = helper.make_graph([outer], "g", [tensor("x")], [tensor("y")], [many])
    with pytest.raises(ModelError, match="more than 300 nodes, when written out"):
        from_onnx(helper.make_model(graph))
